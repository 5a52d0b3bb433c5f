"""Write files and folders in one step: a reader sees the old content or the new one, never a mix."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os.path import normpath
from pathlib import Path

from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.file_names import git_fault
from skillgit.errors import ConflictError, UsageError
from skillgit.files import locked
from skillgit.plugin.seed_folder import write_files

_HERE = -100  # ``AT_FDCWD``: paths are those of the process
_EXCHANGE = 2  # ``RENAME_EXCHANGE`` of Linux (``linux/fs.h``), and ``RENAME_SWAP`` of macOS (``sys/stdio.h``)
_CANNOT = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def exchange(first: Path, second: Path) -> bool:
    """Swap what two names that exist stand for; False, and nothing happened, if the file system cannot do it."""
    call = _call()
    if call is None:
        return False
    if call(os.fsencode(first), os.fsencode(second)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(first))


def _call() -> Callable[[bytes, bytes], int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        return lambda first, second: int(library.renameat2(_HERE, first, _HERE, second, ctypes.c_uint(_EXCHANGE)))
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return lambda first, second: int(library.renamex_np(first, second, ctypes.c_uint(_EXCHANGE)))
    return None


def typed_path(directory: Path, text: str) -> Path:
    """Return ``text`` in ``directory`` without ``..`` or following links; ``~`` works as in ``--to=~/skills`` too."""
    path = Path(text)
    with suppress(RuntimeError):  # no user has that name: it is a name like any other
        path = path.expanduser()
    return Path(normpath(directory / path))


def refuse_way_out(path: Path, *, follow: bool = False) -> Path:
    """Return ``path``, which is to be written, unless a link in a work tree leads from it to somewhere else.

    A commit can hold links, so that checking out a stranger's commit brings them: ``.claude`` could lead to the
    user's home, ``report.html`` to one of the user's files. A place outside of every work tree is as the user made it.
    ``follow`` means that a link at ``path`` itself is written through; else it is replaced.
    """
    target = Path(normpath(path))
    top = _work_tree(target)
    if top is None:
        return path
    real = path.resolve() if follow else path.parent.resolve() / path.name
    is_inside = real.is_relative_to(top.resolve()) and not _is_gits(real.relative_to(top.resolve()))
    is_device = real.exists() and not real.is_file() and not real.is_dir()
    if not is_inside and not _is_gits(target.relative_to(top)) and not is_device:
        raise UsageError(f"{path} leads out of the repository at {top}, over a link, to {real}", hint=f"name {real}")
    return path


def _work_tree(path: Path) -> Path | None:
    top = None
    for folder in reversed(path.parents):
        if top is not None and folder.is_symlink():
            break
        if os.path.lexists(folder / ".git"):
            top = folder
    return top


def _is_gits(inside: Path) -> bool:
    return any(git_fault(part) for part in inside.parts)


_MARK, _ENDING = ".skillgit-", ".tmp"
_NEW, _OLD, _GONE = "new", "old", "gone"
"""What is in a holder: what is to take the place, what stood there, what is taken away for good."""
_WRITE, _PRIVATE = 0o200, 0o700


def write_skill(folder: Path, skill: Skill) -> None:
    """Write the files of ``skill`` into the new folder ``folder``, and have them on the disk."""
    write_files(folder, skill.files, skill.executable, durable=True)


def copy(source: Path, target: Path) -> None:
    """Make ``target``, which is not there yet, the same as ``source``: bytes, permissions, times and links."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def remove_tree(folder: Path) -> None:
    """Remove a folder with everything in it, folders that cannot be written included."""
    for name, _, _ in os.walk(folder):
        with suppress(OSError):
            Path(name).chmod(_PRIVATE)
    shutil.rmtree(folder, ignore_errors=True)


def put(path: Path, write: Callable[[Path], None], on_displaced: Callable[[Path], None] | None = None) -> None:
    """Let what ``write`` makes take ``path``; ``on_displaced`` gets what was there before it is removed."""
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _holder(path) as holder:
            beside = holder / _NEW
            write(beside)
            old = _swap(beside, path, holder / _OLD)
            if old is not None and on_displaced is not None:
                on_displaced(old)


def take_away(path: Path, on_displaced: Callable[[Path], None] | None = None) -> None:
    """Free ``path`` at once of what is there; ``on_displaced`` gets the path of that before it is removed."""
    with _told(path), _holder(path) as holder:
        discard = holder / _GONE
        with _movable(path):
            path.rename(discard)
        if on_displaced is not None:
            on_displaced(discard)


def write_file(file: Path, content: bytes) -> None:
    with _told(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with _holder(file) as holder:
            beside = holder / _NEW
            with beside.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(file)


def write_output(path: Path, content: bytes) -> None:
    """Write what a user names a file for: through a link or into a pipe too, else at one moment."""
    refuse_way_out(path.absolute(), follow=True)
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(content)  # a link, pipe or device, as /dev/stdout: nothing may take its place
            return
        young = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            young.write_bytes(content)
            if path.exists():
                shutil.copymode(path, young)
            young.replace(path)
        finally:
            young.unlink(missing_ok=True)
    except BrokenPipeError:
        raise  # the file is a pipe, as /dev/stdout may be
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ConflictError(f"cannot write {path}: {reason}", hint="check the folder and its permissions") from error


def clear_output(path: Path) -> None:
    """Remove what an earlier command wrote to ``path``; a ConflictError if nothing can be written there.

    For before the work whose result is written: it may cost money, and may end without one.
    """
    if path.is_file() or path.is_dir() or not path.exists():  # what a pipe or a device was given is gone
        write_output(path, b"")
        if not path.is_symlink():
            path.unlink()


def sweep(path: Path) -> None:
    """Remove what killed processes left next to ``path``, and bring back what they took away without a swap."""
    for entry in sorted(path.parent.iterdir()) if path.parent.is_dir() else ():
        if not (entry.name.startswith(f".{path.name}{_MARK}") and entry.name.endswith(_ENDING)):
            continue
        with suppress(OSError):
            handle = os.open(entry, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            with locked(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
                # Where names cannot swap in one step, a kill leaves the old content here and its name free.
                if not os.path.lexists(path) and os.path.lexists(entry / _OLD):
                    (entry / _OLD).rename(path)
                remove_tree(entry)


def _swap(beside: Path, path: Path, aside: Path) -> Path | None:
    """Give ``path`` what ``beside`` holds; return where its old content is now."""
    if not os.path.lexists(path):
        with _movable(beside) as mode:
            beside.rename(path)
            _restore(path, mode)
        return None
    with _movable(beside) as new_mode, _movable(path) as old_mode:
        if exchange(beside, path):
            old = beside
        else:
            path.rename(aside)
            beside.rename(path)
            old = aside
        _restore(path, new_mode)
        _restore(old, old_mode)
    return old


@contextmanager
def _movable(folder: Path) -> Iterator[int | None]:
    """Let ``folder`` be moved into another one, which needs permission to write it; give its mode if that changed."""
    mode = None if folder.is_symlink() or not folder.is_dir() else stat.S_IMODE(folder.stat().st_mode)
    if mode is None or mode & _WRITE:
        yield None
        return
    folder.chmod(mode | _WRITE)
    try:
        yield mode
    except BaseException:
        folder.chmod(mode)
        raise


def _restore(folder: Path, mode: int | None) -> None:
    if mode is not None:
        folder.chmod(mode)


@contextmanager
def _holder(path: Path) -> Iterator[Path]:
    """Give a folder next to ``path``, locked while in use, and remove those that killed processes left."""
    sweep(path)
    holder = Path(tempfile.mkdtemp(prefix=f".{path.name}{_MARK}", suffix=_ENDING, dir=path.parent))
    with locked(os.open(holder, os.O_RDONLY | os.O_CLOEXEC)):
        try:
            yield holder
        finally:
            remove_tree(holder)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell of what the operating system refuses in a sentence."""
    try:
        yield
    except (NotADirectoryError, FileExistsError) as error:
        raise UsageError(
            f"{path} cannot be written: a file is where a folder must be", hint=f"ls -la {path.parent}"
        ) from error
    except OSError as error:
        raise ConflictError(
            f"{path} cannot be written: {error.strerror or error}", hint=f"ls -la {path.parent}"
        ) from error
