#!/bin/sh
# Makes the image that test_podman runs in, and settings of podman for machines without systemd and without bridges.
# Wants root and a mirror of Debian; on Debian: apt install podman runc mmdebstrap, and podman-compose beside Harbor.
# SKILLGIT_CLAUDE may name a Claude Code, which is put into a root file system for bubblewrap.
# usage: make_image.sh FOLDER; then export what it prints, and run the tests
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
if [ -n "${SKILLGIT_CLAUDE:-}" ]; then
    mkdir -p "$folder/root"
    tar --extract --file "$folder/rootfs.tar" --directory "$folder/root" --exclude './dev/*'
    install -m 755 "$(readlink -f "$SKILLGIT_CLAUDE")" "$folder/root/usr/local/bin/claude"
    echo "export SKILLGIT_HARBOR_ROOT=$folder/root"
fi
echo "export CONTAINERS_CONF=$CONTAINERS_CONF CONTAINERS_STORAGE_CONF=$CONTAINERS_STORAGE_CONF"
