"""A job that tries every way to change the rights, owners, times and attributes of a folder outside of its sandbox."""

import ctypes
import json
import os
import struct
from contextlib import suppress
from itertools import product
from pathlib import Path

if os.getuid() == 0:
    raise SystemExit("these ways are not for root, who could really go them")
numbers = json.loads(Path("numbers.json").read_text())
root = Path("root.txt").read_text()
libc = ctypes.CDLL(None, use_errno=True)
HERE, EMPTY = -100, 0x1000
answers = {}


def call(name, *arguments, to=""):
    """Call the kernel by number and keep its answer."""
    if name not in numbers:
        return
    words = [
        ctypes.c_char_p(os.fsencode(word)) if isinstance(word, str)
        else ctypes.c_long(word) if isinstance(word, int)
        else word
        for word in arguments
    ]  # fmt: skip
    ctypes.set_errno(0)
    answer = libc.syscall(ctypes.c_long(numbers[name]), *words)
    error = ctypes.get_errno() if answer < 0 else 0
    key = f"{name} {to}".strip()
    answers[key] = min(answers.get(key, error), error)


def buffer(data):
    return ctypes.create_string_buffer(data, len(data))


def opened(path, flags):
    with suppress(OSError):
        return os.open(path, flags)
    return -1


value = buffer(b"left here")
acl = buffer(struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, 7, 0xFFFFFFFF) for tag in (1, 4, 0x20)
))  # fmt: skip
new_attribute = buffer(struct.pack("=QII", ctypes.addressof(value), 9, 0))
flags, more_flags = buffer(struct.pack("=L", 0x40)), buffer(struct.pack("=IIIII8x", 0x80, 0, 0, 0, 0))
verity = buffer(struct.pack("=II", 1, 1) + bytes(120))
times = buffer(struct.pack("=4q", 1, 0, 1, 0))
file_attributes = buffer(struct.pack("=QIIII", 0x80, 0, 0, 0, 0))
mount_attributes = buffer(struct.pack("=QQQQ", 0, 1, 0, 0))
hint = buffer(struct.pack("=Q", 2))

for name in ("", "/theirs", "/ours", "/folder", "/folder/inner"):
    real = root + name
    bare, reading = opened(real, os.O_PATH), opened(real, os.O_RDONLY)
    writing = opened(real, os.O_WRONLY)
    me, group = os.getuid(), os.getgid()
    paths = [real] + [f"/proc/self/fd/{fd}" for fd in (bare, reading) if fd >= 0]
    for path in paths:
        call("chmod", path, 0o700)
        call("fchmodat", HERE, path, 0o700)
        call("fchmodat2", HERE, path, 0o700, 0)
        for way in ("chown", "lchown"):
            call(way, path, me, group)
        call("fchownat", HERE, path, me, group, 0)
        call("utime", path, 0)
        call("utimes", path, times)
        call("futimesat", HERE, path, 0)
        call("utimensat", HERE, path, 0, 0)
        call("utimensat", HERE, path, times, 0)
        for way in ("setxattr", "lsetxattr"):
            call(way, path, "user.note", value, 9, 0)
            call(way, path, "system.posix_acl_access", acl, len(acl), 0)
        call("setxattrat", HERE, path, 0, "user.note", new_attribute, 16)
        for way in ("removexattr", "lremovexattr"):
            call(way, path, "user.mark")
        call("removexattrat", HERE, path, 0, "user.mark")
        call("file_setattr", HERE, path, file_attributes, 24, 0)
        call("truncate", path, 0)
        call("inotify_add_watch", libc.syscall(ctypes.c_long(numbers["inotify_init1"]), 0), path, 0xFFF, to="outside")
        call("mount", "/usr", path, "none", 4096, 0)
        call("mount", "none", path, "none", 32 | 4096, 0)
        call("umount2", path, 2)
        call("open_tree", HERE, path, 1)
        call("open_tree_attr", HERE, path, 1, mount_attributes, 32)
        call("mount_setattr", HERE, path, 0, mount_attributes, 32)
        call("name_to_handle_at", HERE, path, buffer(bytes(200)), buffer(bytes(8)), 0)
        call("quotactl", 0x800007 << 8, path, 0, 0)
        call("acct", path)
        call("swapon", path, 0)
        call("unlink", path)
        call("rename", path, path + ".new")
        call("link", path, path + ".link")
        call("linkat", HERE, path, HERE, "mine", 0x400)
        call("mkdir", path + "/made", 0o777)
        call("chroot", path)
    for fd in (bare, reading, writing):
        if fd < 0:
            continue
        call("fchmod", fd, 0o700)
        call("fchmodat2", fd, "", 0o700, EMPTY)
        call("fchown", fd, me, group)
        call("fchownat", fd, "", me, group, EMPTY)
        call("utimensat", fd, 0, 0, 0)
        call("utimensat", fd, "", 0, EMPTY)
        call("futimesat", fd, 0, 0)
        call("fsetxattr", fd, "user.note", value, 9, 0)
        call("fsetxattr", fd, "system.posix_acl_access", acl, len(acl), 0)
        call("fremovexattr", fd, "user.mark")
        call("setxattrat", fd, "", EMPTY, "user.note", new_attribute, 16)
        call("removexattrat", fd, "", EMPTY, "user.mark")
        call("file_setattr", fd, "", file_attributes, 24, EMPTY)
        call("ioctl", fd, 0x40086602, flags, to="FS_IOC_SETFLAGS")
        call("ioctl", fd, 0x401C5820, more_flags, to="FS_IOC_FSSETXATTR")
        call("ioctl", fd, 0x40087602, buffer(bytes(8)), to="FS_IOC_SETVERSION")
        call("ioctl", fd, 0x40806685, verity, to="FS_IOC_ENABLE_VERITY")
        call("fcntl", fd, 1036, hint, to="F_SET_RW_HINT")
        call("fcntl", fd, 1024, 0, to="F_SETLEASE")
        call("fcntl", fd, 1026, 0x3F, to="F_NOTIFY")
        call("ftruncate", fd, 0)
        call("fallocate", fd, 0, 0, 100)
        for first, last in product((fd,), ("made", "folder/made")):
            call("mkdirat", first, last, 0o777)
    for fd in (bare, reading, writing):
        if fd >= 0:
            os.close(fd)

for name, *arguments in (
    ("io_uring_setup", 8, buffer(bytes(256))),
    ("io_uring_register", 0, 0, 0, 0),
    ("fanotify_init", 0x200, 0),
    ("process_madvise", 0, 0, 0, 4, 0),
    ("pidfd_getfd", 0, 0, 0),
    ("bpf", 0, 0, 0),
    ("unshare", 0x10020000),
    ("setns", 0, 0),
    ("ptrace", 16, os.getppid(), 0, 0),
    ("process_vm_readv", os.getppid(), 0, 0, 0, 0, 0),
    ("fsopen", "tmpfs", 0),
    ("statmount", 0, 0, 0, 0),
    ("listmount", 0, 0, 0, 0),
    ("shmget", 1, 4096, 0o1777),
    ("shmat", 0, 0, 0),
    ("mq_unlink", "x"),
    ("userfaultfd", 0),
):
    call(name, *arguments)
Path("answers.json").write_text(json.dumps(answers))
