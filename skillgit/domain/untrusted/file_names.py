"""The one place where a name from a repository, an archive, a model or a data file becomes a path.

A name that gets through means the same file on Linux, macOS and Windows, inside the folder that it is joined to. What
is refused is what some file system takes for another place (``..``, ``/x``, ``C:``, ``file:stream``), for a part of
git's own folder (``.git`` in all the spellings that HFS+ and NTFS fold into it), for a device (``NUL``), for another
name (a trailing dot, letters that differ in case), or what hides from the reader (control and bidi characters).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Self

from skillgit.errors import UnsafeNameError

COMPONENT_BYTES = 255  # the longest name that ext4, APFS and NTFS all hold
PATH_BYTES = 4096  # ``PATH_MAX`` of Linux
DEPTH = 64  # folders in each other that a skill may have; programs that walk deeper ones fail in ways of their own
_SHOWN = 100
_HINT = "rename it where it comes from; skillgit fsck lists all such names of a run"

# What HFS+ leaves out when it compares names: utf8.c of git, next_hfs_char.
_IGNORED_BY_HFS = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
# NTFS drops dots and blanks at the end, and what follows a colon is a stream of the same file.
_GIT_FOLDER = re.compile(r"(?:\.git|git~1)[ .]*(?:[:\\].*)?", re.IGNORECASE | re.DOTALL)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\..*)?", re.IGNORECASE | re.DOTALL)
_LINE_END = r"\n"
_BYTE = re.compile(r"\\x[89a-f][0-9a-f]")  # how ``entry_name`` writes what is not UTF-8
_SIGNS = {"\\": "backslash", ":": "colon"}
_SLASH = r"\x2f"  # a slash inside the name of an entry, which is not a path of two parts
_JOINERS = "\u200c\u200d"  # invisible, and needed to write Persian, several scripts of India, and many emoji


class TreePath(str):
    """A relative path with ``/`` between its parts that stays inside the folder that it is joined to.

    To have one is to have passed the check, for nothing else makes one: an UnsafeNameError if the text could mean
    another place, another file or no file on some system.

    >>> TreePath('notes/units.md')
    'notes/units.md'
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        fault = path_fault(text)
        if fault:
            raise UnsafeNameError(f"{shown(text)} cannot be the path of a file: {fault}", hint=_HINT)
        return super().__new__(cls, text)


def file_name(text: str) -> TreePath:
    """Return ``text`` as the name of one file or folder; an UnsafeNameError if it cannot be one, or has a ``/``."""
    if "/" in text:
        raise UnsafeNameError(f"{shown(text)} cannot be the name of a file: it has a slash", hint=_HINT)
    return TreePath(text)


def tree_paths(names: Iterable[str]) -> tuple[TreePath, ...]:
    """Return ``names`` as paths of one folder; an UnsafeNameError if one is none, or two are one file somewhere."""
    paths = tuple(names)
    # An optimizer makes many skills of the same few files; a large listing comes once.
    return _few_paths(paths) if len(paths) <= 64 else _paths(paths)  # noqa: PLR2004 - see above


def _paths(names: tuple[str, ...]) -> tuple[TreePath, ...]:
    paths = tuple(TreePath(name) for name in names)
    for clash in clashes(names):
        raise UnsafeNameError(clash, hint=_HINT)
    return paths


_few_paths = lru_cache(maxsize=256)(_paths)


def clashes(names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for paths that clash as equal names or file and folder, up to case, accents and HFS+ signs."""
    folders: dict[str, str] = {}
    files: dict[str, str] = {}
    for name in names:
        for end in (index for index, letter in enumerate(name) if letter == "/"):
            folder = name[:end]
            if folders.setdefault(folder_key := name_key(folder), folder) != folder:
                yield _clash(folders[folder_key], folder)
        key = name_key(name)
        if key in files:
            yield _clash(files[key], name)
        files[key] = name
    for key in files.keys() & folders.keys():
        yield _clash(folders[key], files[key])


def leads_out(path: str, target: str) -> bool:
    """Say whether a link at ``path`` of a folder may lead out of it to ``target``, regardless of other links.

    >>> leads_out('notes/units.md', '../SKILL.md'), leads_out('notes/units.md', '../../SKILL.md')
    (False, True)
    """
    parts = [part for part in target.split("/") if part not in {"", "."}]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    # behind the name of another link ``..`` would be where that one leads
    return target.startswith("/") or up > path.count("/") or ".." in parts[up:]


def path_fault(path: str) -> str:
    """Return why ``path`` cannot be the path of a file; empty if it can.

    >>> path_fault('../outside.md')
    'it leads out of its folder'
    >>> path_fault('notes/units.md')
    ''
    """
    if path.startswith("/"):
        return "it is absolute"
    if len(path.encode(errors="replace")) > PATH_BYTES:
        return f"it is longer than {PATH_BYTES} bytes"
    return next((fault for part in path.split("/") if (fault := name_fault(part))), "")


def git_fault(name: str) -> str:
    """Return why git itself refuses an entry called ``name`` in a tree, on any of its systems; empty if it does not."""
    if not name:
        return "a part of it is empty"
    if name == ".":
        return "'.' is not a name"
    if name == "..":
        return "it leads out of its folder"
    if "/" in name or _SLASH in name:
        return "the name has a slash"
    bare = name.translate(_IGNORED_BY_HFS)
    if any(_GIT_FOLDER.fullmatch(part) for part in (*name.split("\\"), *bare.split("\\"))) or (
        _GIT_FOLDER.fullmatch(name) or _GIT_FOLDER.fullmatch(bare)
    ):
        return "some systems take it for git's own folder"
    return ""


def name_fault(name: str) -> str:
    """Return why ``name`` cannot be one part of a path; empty if it can."""
    if fault := git_fault(name):
        return fault
    if any(unicodedata.category(letter) == "Cs" for letter in name):
        return "it is not UTF-8"
    if sign := next((sign for sign in "\\:" if sign in name), ""):
        return "it is not UTF-8" if _BYTE.search(name) else f"it has a {_SIGNS[sign]}"
    if any(not _is_seen(letter) and letter not in _JOINERS for letter in name):
        return "it has a character that cannot be seen"
    if name.endswith((".", " ")):
        return "it ends in a dot or a blank, which Windows drops"
    if _DEVICE.fullmatch(name):
        return "Windows takes it for a device"
    if not name.translate(_IGNORED_BY_HFS):
        return "nothing of it can be seen"
    return f"a part of it is longer than {COMPONENT_BYTES} bytes" if len(name.encode()) > COMPONENT_BYTES else ""


def entry_name(raw: bytes) -> str:
    """Return the name of an entry as text; without UTF-8 or with a slash it gets a backslash and is not a path."""
    return raw.decode(errors="backslashreplace").replace("/", _SLASH)


def name_key(path: str) -> str:
    """Return what is equal for two paths exactly if some system takes one for the other."""
    plain = unicodedata.normalize("NFD", path.translate(_IGNORED_BY_HFS)).casefold()
    return unicodedata.normalize("NFC", plain)


def shown(name: str) -> str:
    """Return ``name`` in quotation marks, cut if it is long, with escapes for all that is not to be seen."""
    return f"'{shortened(name)}'"


def shortened(name: str) -> str:
    """Return ``name``, cut if it is long, with escapes for all that is not to be seen."""
    cut = f"{name[:_SHOWN]}…" if len(name) > _SHOWN else name
    return escaped(cut).replace("\n", _LINE_END)


def escaped(text: str) -> str:
    """Return ``text``, in which a program quotes names of others, with escapes for all that is not to be seen."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else letter.encode("unicode_escape", "surrogatepass").decode()
        for letter in text
    )


def _is_seen(letter: str) -> bool:
    return unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _clash(first: str, second: str) -> str:
    return f"{shown(first)} and {shown(second)} are the same place on some systems"
