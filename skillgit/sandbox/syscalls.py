"""Owns which calls to the kernel a job may not make: the seccomp filter, which libseccomp writes for this processor."""

from __future__ import annotations

import errno
import importlib
import os
import tempfile
from functools import cache
from typing import TYPE_CHECKING, Any

from skillgit.errors import SandboxError

if TYPE_CHECKING:
    from types import ModuleType

_PROCESSES = "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp perf_event_open"
_NAMESPACES = (
    "unshare setns mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr"
)
_KERNEL = (
    "bpf userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key init_module "
    "finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl syslog settimeofday "
    "clock_settime clock_adjtime adjtimex sethostname setdomainname iopl ioperm personality lookup_dcookie nfsservctl "
    "open_by_handle_at name_to_handle_at fanotify_init vhangup modify_ldt"
)
_UNCOUNTED = "memfd_create memfd_secret shmget msgget semget mq_open"
"""Memory that belongs to no process and to no folder, so that no limit would see it."""
_PRIORITY = (
    "setpriority ioprio_set sched_setaffinity sched_setscheduler sched_setparam sched_setattr move_pages migrate_pages"
)
_SIGNALS = "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal"
_METADATA = "chmod fchmodat fchmodat2 chown lchown fchownat utime utimes utimensat futimesat"
_ATTRIBUTES = "setxattr lsetxattr removexattr lremovexattr"
_NEW_NAMESPACES = (0x00000080, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_AF_UNIX = 1
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


@cache
def seccomp_filter(*, unix_sockets: bool, foreign_files: bool, foreign_processes: bool) -> bytes:
    """Return the filter as a program for the kernel.

    ``unix_sockets`` allows local sockets; others never are. ``foreign_files`` says that the job's user owns files that
    Landlock alone protects: changing mode, owner and times by name, which Landlock does not cover, then only seems to
    succeed, for programs that copy do it in passing. With ``foreign_processes`` in reach, a job can send no signals.
    """
    library = _library()
    rules = library.SyscallFilter(library.ALLOW)
    refuse = library.ERRNO(errno.EPERM)
    for name in f"{_PROCESSES} {_NAMESPACES} {_KERNEL} {_UNCOUNTED} {_PRIORITY}".split():
        _add(library, rules, refuse, name)
    # The flags of clone3 cannot be seen; the C library then uses clone.
    _add(library, rules, library.ERRNO(errno.ENOSYS), "clone3")
    for flag in _NEW_NAMESPACES:
        _add(library, rules, refuse, "clone", library.Arg(0, library.MASKED_EQ, flag, flag))
    for request in (_TIOCSTI, _TIOCLINUX):
        _add(library, rules, refuse, "ioctl", library.Arg(1, library.MASKED_EQ, 0xFFFFFFFF, request))
    _add(library, rules, refuse, "prlimit64", library.Arg(0, library.NE, 0))
    _add(library, rules, refuse, "socket", *((library.Arg(0, library.NE, _AF_UNIX),) if unix_sockets else ()))
    if foreign_files:
        for name in _METADATA.split():
            _add(library, rules, library.ERRNO(0), name)
        for name in _ATTRIBUTES.split():
            _add(library, rules, library.ERRNO(errno.ENOTSUP), name)
    for name in _SIGNALS.split() if foreign_processes else ():
        _add(library, rules, refuse, name)
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0, os.SEEK_SET)
        return file.read()


def _add(library: ModuleType, rules: Any, action: int, name: str, *conditions: object) -> None:  # noqa: ANN401 - untyped
    """Add a rule for a system call that libseccomp knows by name."""
    if library.resolve_syscall(library.system_arch(), name) != -1:
        rules.add_rule(action, name, *conditions)


def _library() -> ModuleType:
    try:
        # It loads the system's library, which may be missing.
        return importlib.import_module("pyseccomp")
    except (ImportError, OSError, RuntimeError) as error:
        raise SandboxError("libseccomp is not installed", hint="install it: apt install libseccomp2") from error
