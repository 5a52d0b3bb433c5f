"""Which commit each line of a file comes from, according to git."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import FileMode

from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.store import tree
from skillgit.store.git_binary import git

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.store.repo import Repo

# Rules are moved, within a file and between the files of a skill, and have to keep where they come from. Git compares
# each changed stretch with the whole parent for that, which takes 20 times as long where 5,000 lines are changed here
# and there: it is asked only for the stretches that can have been moved. libgit2's blame does not follow moves.
_FOLLOWING = ("-M", "-C")
_MOVED_FROM = 20
"""Git takes for moved what has so many letters and digits."""
# A list of commits that a user keeps out of blame must not send a rule to the wrong step: no file name empties it.
_PLAIN = ("--ignore-revs-file=", "--no-textconv", "--porcelain")
_HEADER = re.compile(rb"([0-9a-f]{40}) (\d+) (\d+)(?: \d+)?")
_FILENAME = b"filename "
_FILES = frozenset({FileMode.BLOB, FileMode.BLOB_EXECUTABLE, FileMode.LINK})
_OTHER_SIGNS = re.compile(rb"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    line: int  # its number in the file, from 1
    text: str  # what it says, without the line end
    commit: str  # the commit that brought it, 40 hexadecimal characters
    original_line: int
    original_path: str


class Blamer:
    """Asks git where lines come from; what the parents of a commit hold is read once."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._before: dict[str, set[bytes] | None] = {}
        self._texts: dict[bytes, bytes] = {}

    def lines(self, commit: str, path: str) -> tuple[BlamedLine, ...]:
        """Return where each line of the file ``path`` of ``commit`` comes from; moved lines keep their origin.

        A line is attributed to a merge only if neither of its parents had it.
        """
        content = tree.read_file(self._repo.commit(commit).tree, path)
        if content is None:
            raise NotFoundError(f"there is no file '{path}' in {commit[:12]}", hint=f"git ls-tree -r {commit[:12]}")
        if not content:
            return ()
        lines = list(_parsed(self._blame(commit, path)))
        if stretches := self._perhaps_moved(lines, content.split(b"\n")):
            ranges = [f"-L{stretch[0].line},{stretch[-1].line}" for stretch in stretches]
            for line in _parsed(self._blame(commit, path, *_FOLLOWING, *ranges)):
                lines[line.line - 1] = line
        return tuple(lines)

    def _blame(self, commit: str, path: str, *options: str) -> bytes:
        plain = ("--no-replace-objects", "-c", "core.quotePath=false", "blame", *_PLAIN)
        answer = git(self._repo, *plain, *options, commit, "--", path)
        if answer.code != 0:
            raise RevisionNotFoundError(f"git cannot blame {path} at {commit[:12]}: {answer.error}", hint="git fsck")
        return answer.out

    def _perhaps_moved(self, lines: Sequence[BlamedLine], texts: Sequence[bytes]) -> list[list[BlamedLine]]:
        """Return the stretches of one commit each that git would look for in its parents, and may find there.

        A line was moved only if a parent has it. Stretches stay whole: git weighs their lines together.
        """
        stretches = [list(stretch) for _, stretch in groupby(lines, lambda line: line.commit)]
        for commit in {line.commit for line in lines} - self._before.keys():
            self._before[commit] = self._lines_before(commit)
        return [stretch for stretch in stretches if _has_moved(stretch, texts, self._before[stretch[0].commit])]

    def _lines_before(self, commit: str) -> set[bytes] | None:
        """Return the lines that the parents of ``commit`` have in files that it changed; None if a file is missing."""
        child, lines = self._repo.commit(commit), set[bytes]()
        for parent in child.parent_ids:
            older = self._repo.raw.get(parent)
            if older is None:
                # a shallow clone ends here, for git too
                continue
            for delta in child.tree.diff_to_tree(older.tree).deltas:
                if delta.new_file.mode in _FILES:
                    blob = self._repo.raw.get(delta.new_file.id)
                    if not isinstance(blob, pygit2.Blob):
                        return None
                    # versions share most of their lines
                    lines.update(self._texts.setdefault(line, line) for line in blob.data.split(b"\n"))
        return lines


def _has_moved(stretch: Sequence[BlamedLine], texts: Sequence[bytes], before: set[bytes] | None) -> bool:
    weight = 0
    for line in stretch:
        text = texts[line.line - 1]
        weight = weight + len(_OTHER_SIGNS.sub(b"", text)) if before is None or text in before else 0
        if weight >= _MOVED_FROM:
            return True
    return False


def _parsed(porcelain: bytes) -> Iterator[BlamedLine]:
    paths: dict[str, str] = {}
    commit, original, line = "", 0, 0
    for row in porcelain.split(b"\n"):
        if row.startswith(b"\t"):
            text = row[1:].decode(errors="replace")
            path = paths.get(commit, "")
            yield BlamedLine(line=line, text=text, commit=commit, original_line=original, original_path=path)
        elif header := _HEADER.fullmatch(row):
            commit, original, line = header[1].decode(), int(header[2]), int(header[3])
        elif row.startswith(_FILENAME):
            paths[commit] = _path(row.removeprefix(_FILENAME))


def _path(text: bytes) -> str:
    """Unquote a path as git prints it: in quotation marks and with escapes if it holds such characters."""
    if not text.startswith(b'"'):
        return text.decode(errors="replace")
    return text[1:-1].decode("unicode_escape").encode("latin-1").decode(errors="replace")
