"""Names that a stranger gives to the entries of trees, and trees that hold them as plumbing would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2
from hypothesis import strategies as st
from pygit2.enums import FileMode, ObjectType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.store.repo import Repo

GIT_FOLDERS = (
    *(
        b".git",
        b".GIT",
        b".Git",
        b"git~1",
        b"GIT~1",
        b".git.",
        b".git ",
        b".git. . .",
        b"git~1 .",
        b".git::$INDEX_ALLOCATION",
    ),
    *(
        ".g\u200cit".encode(),
        "\u200e.GIT".encode(),
        ".git\ufeff".encode(),
        ".gi\u206at".encode(),
        ".\u202egit".encode(),
    ),
    *(b".git\\hooks", b"a\\.git", b".git:x"),
)
ELSEWHERE = (
    b"..",
    b".",
    b"/abs",
    b"../../x",
    b"a/b",
    b".git/hooks/x",
    b"/",
    b"a/../../b",
    b"\\\\host\\share",
    b"C:\\x",
    b"C:",
)
UNSAFE = (
    *GIT_FOLDERS,
    *ELSEWHERE,
    *(b"CON", b"nul", b"NUL.txt", b"aux.c", b"com1.md", b"LPT9", "COM\u00b9".encode(), b"con .md", b"CONIN$"),
    *(b"a\\b", b"a:b", b"file:stream", b"a\nb", b"a\tb", b"\x1b[31m", b"\x7f", "\u0085".encode(), "\u2028".encode()),
    *("gpj.\u202eexe".encode(), "\u200b".encode(), "\u200d".encode(), "\U000e0041".encode()),
    *(b"\xff", b"a\xc0\xafb", b"\xed\xa0\x80", b"trailing.", b"trailing ", b"..."),
    *(b"x" * 256, "ä".encode() * 128, b"x" * 5000),
)
"""One name of an entry each that no path comes from."""
SAFE = (
    *(b"a", b"README.md", b".gitignore", b".gitattributes", b"git~10", b".github", b"consult.md", b"com.md", b"com10"),
    *(
        "naïve.md".encode(),
        "数学.md".encode(),
        "\u0645\u06cc\u200c\u062e.md".encode(),
        "👩\u200d🔬.md".encode(),
        b" leading",
        b"a..b",
    ),
    *(b"x" * 255, b"-rf", b"~", b"$HOME", b"a;b", b"*", b"..x", b"con-1"),
)
"""Names that people have, and that stay as they are."""

_PIECES = st.sampled_from(
    [*UNSAFE, *SAFE, b"A", "É".encode(), "é".encode(), "e\u0301".encode(), b"skill.md", b"ss", "ß".encode()]
)
_TEXTS = st.text(min_size=1, max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass"))
ENTRY_NAMES = st.one_of(_PIECES, _TEXTS, st.binary(min_size=1, max_size=6)).filter(lambda name: b"\0" not in name)
"""Names of entries, most of them hostile."""


def literal_tree(repo: Repo, entries: Iterable[tuple[bytes, pygit2.Oid, int]]) -> pygit2.Tree:
    """Write a tree with any names, in git's order, as ``git hash-object --literally`` does."""
    ordered = sorted(entries, key=lambda entry: entry[0] + b"/" * (entry[2] == FileMode.TREE))
    raw = b"".join(b"%o %s\0%s" % (mode, name, oid.raw) for name, oid, mode in ordered)
    found = repo.raw[repo.raw.write(ObjectType.TREE, raw)]
    assert isinstance(found, pygit2.Tree)
    return found


def with_entries(
    repo: Repo, folder: pygit2.Tree | None, names: Iterable[bytes], mode: int = FileMode.BLOB
) -> pygit2.Tree:
    """Return ``folder`` with files under ``names``, whatever they are."""
    blob = repo.raw.create_blob(b"#!/bin/sh\ntouch /tmp/owned\n")
    old = [(entry.raw_name, entry.id, entry.filemode) for entry in folder or ()]
    return literal_tree(repo, [*old, *((name, blob, mode) for name in names)])


def replaced(repo: Repo, root: pygit2.Tree, path: str, inner: pygit2.Tree) -> pygit2.Tree:
    """Return ``root`` with the folder ``path`` being ``inner``, without looking at any name."""
    head, slash, rest = path.partition("/")
    new = replaced(repo, root[head], rest, inner) if slash else inner
    kept = [(entry.raw_name, entry.id, entry.filemode) for entry in root if entry.raw_name != head.encode()]
    return literal_tree(repo, [*kept, (head.encode(), new.id, FileMode.TREE)])
