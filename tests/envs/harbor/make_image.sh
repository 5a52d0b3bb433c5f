#!/bin/sh
# Makes the image that test_podman runs in, and settings of podman for machines without systemd and without bridges.
# Wants root and a mirror of Debian; on Debian: apt install podman runc mmdebstrap, and podman-compose beside Harbor.
# usage: make_image.sh FOLDER; then export what it prints, and run the test
set -eu
folder=$1
mkdir -p "$folder"
cat >"$folder/containers.conf" <<END
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=8192:8192"]
netns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
END
cat >"$folder/storage.conf" <<END
[storage]
driver = "vfs"
graphroot = "$folder/graph"
runroot = "$folder/run"
END
export CONTAINERS_CONF="$folder/containers.conf" CONTAINERS_STORAGE_CONF="$folder/storage.conf"
[ -f "$folder/rootfs.tar" ] || mmdebstrap --variant=minbase --include=python3,ca-certificates,bash bookworm "$folder/rootfs.tar"
podman import "$folder/rootfs.tar" localhost/skillgit-slips:1
echo "export CONTAINERS_CONF=$CONTAINERS_CONF CONTAINERS_STORAGE_CONF=$CONTAINERS_STORAGE_CONF"
