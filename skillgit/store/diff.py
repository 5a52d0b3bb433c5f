"""What commits change, byte for byte as git prints it; the files a push would publish; the commit of each line."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

import pygit2
from pygit2.enums import FileMode, SortMode

from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.file_names import entry_name
from skillgit.errors import HistoryError, NotFoundError, RevisionNotFoundError
from skillgit.store import refs, tree
from skillgit.store.git_binary import NO_PROGRAMS, git
from skillgit.store.repo import Repo, message_of

Sources = Mapping[str, Sequence[str]]
"""Commit to the commits that its text was made of, where these are not its parents in their order; the base first."""
_NO_SOURCES: Sources = MappingProxyType({})


def common_ancestor(repo: Repo, first: str, second: str) -> str | None:
    """Return the best common ancestor of two commits, as ``git merge-base`` does; None if they have none."""
    for commit in (first, second):
        repo.commit(commit)
    ancestor = repo.raw.merge_base(pygit2.Oid(hex=first), pygit2.Oid(hex=second))
    return str(ancestor) if ancestor is not None else None


WHOLE_FILES = 1_000_000
"""More lines of context than a file of a skill has."""
# colours and prefixes of the user's are for reading, and this is read by a program
_AS_DATA = ("--no-color", "--src-prefix=a/", "--dst-prefix=b/")
PATCH = ("-p", "-U3", *_AS_DATA)
"""The form of a patch that no setting of the user changes."""


def diff(repo: Repo, old: str, new: str, *paths: str, options: tuple[str, ...] = ()) -> bytes:
    """Return what ``git diff OLD NEW -- PATHS`` prints to a pipe; empty ``paths``, taken literally, do not count."""
    sides = [repo.commit(commit) for commit in (old, new)]
    for delta in sides[0].tree.diff_to_tree(sides[1].tree).deltas:
        # git reads both sides of a text, however large
        for side in (delta.old_file, delta.new_file):
            if side.mode in _FILES:
                tree.check_size(repo, side.id, side.path)
    answer = git(repo, "--literal-pathspecs", "diff", *NO_PROGRAMS, *options, old, new, "--", *filter(None, paths))
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot compare {old[:12]} with {new[:12]}: {answer.error}", hint="git fsck")
    return answer.out


def stat(repo: Repo, old: str, new: str, *paths: str) -> str:
    return diff(repo, old, new, *paths, options=("--stat",)).decode(errors="replace")


def whole(repo: Repo, old: str, new: str, *paths: str) -> str:
    """Return the difference with all lines of the files that differ, in a form that no setting of the user changes."""
    text = diff(repo, old, new, *paths, options=(*_AS_DATA, f"-U{WHOLE_FILES}"))
    return text.decode(errors="replace")


def change(repo: Repo, commit: str, path: str = "", sources: Sources = _NO_SOURCES) -> bytes:
    """Return what ``commit`` changed against the first of its ``sources``, else its first parent, else all of it."""
    parents = sources.get(commit) or repo.commit(commit).parent_ids
    if parents:
        return diff(repo, str(parents[0]), commit, path)
    arguments = (*NO_PROGRAMS, "--root", "-p", "--no-commit-id", "-r", commit, "--", *([path] if path else []))
    answer = git(repo, "diff-tree", *arguments)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show {commit[:12]}: {answer.error}", hint="git fsck")
    return answer.out


_AT_FIRST, _AT_MOST = 64, 1024
"""Commits for one git process: at first few enough to have them soon, later enough to make its start cheap."""
_COMMAND = (
    # what `git diff PARENT COMMIT` prints: no notes, the first parent of a merge, everything of a root
    *("-c", "log.showRoot=true", "log", "--no-walk=unsorted", "--stdin"),
    *("--diff-merges=first-parent", "--no-color", *NO_PROGRAMS),
)


def patches(
    repo: Repo,
    commits: Sequence[str],
    path: str,
    options: tuple[str, ...] = ("-p",),
    sources: Sources = _NO_SOURCES,
) -> Iterator[bytes]:
    """Yield what ``commits`` changed in ``path`` ("" for all), as ``git diff`` prints it.

    They are compared with the first of their ``sources``, else with their first parent.
    """
    start, count = 0, _AT_FIRST
    while part := commits[start : start + count]:
        changes = _changes(repo, [commit for commit in part if commit not in sources], path, options)
        for commit in part:
            own = sources.get(commit)
            yield diff(repo, own[0], commit, path, options=options) if own else changes.get(commit, b"")
        start, count = start + count, min(2 * count, _AT_MOST)


def _changes(repo: Repo, commits: Sequence[str], path: str, options: tuple[str, ...]) -> dict[str, bytes]:
    # a skill could hold any mark that is known beforehand
    mark = secrets.token_hex()
    query = "".join(f"{line}\n" for line in (*commits, "--", *([path] if path else []))).encode()
    answer = git(repo, *_COMMAND, f"--format=tformat:{mark}%H", *options, stdin=query)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show what changed: {answer.error}", hint="git fsck")
    changes: dict[str, bytes] = {}
    for entry in answer.out.split(mark.encode())[1:]:
        commit, _, rest = entry.partition(b"\n")
        changes[commit.decode()] = rest.removeprefix(b"\n")
    return changes


_HIDDEN = re.compile(r"(?:evidence|plan) of \S+\n\nevent [0-9a-f]{40}\n")
"""How the message of a commit of a chain of evidence, or of a plan, is written."""
_FILES = frozenset({FileMode.BLOB, FileMode.BLOB_EXECUTABLE, FileMode.LINK})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file that a commit adds or changes against all of its parents."""

    path: str
    blob: str
    before: tuple[str, ...]  # the ids of the contents that the parents have at the same path
    skill: str  # the skill folder that it belongs to; empty if it belongs to none


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommit:
    commit: str
    message: str
    files: tuple[NewFile, ...]
    hidden: bool  # whether it belongs to a hidden ref, such as the chain of evidence, and is not a version


def new_commits(repo: Repo, tips: Iterable[str], old_tips: Iterable[str]) -> Iterator[NewCommit]:
    """Yield the commits that ``tips`` lead to and ``old_tips``, as far as they are here, do not, the oldest first."""
    try:
        walk = repo.raw.walk(None, SortMode.TOPOLOGICAL | SortMode.REVERSE)
        for tip in tips:
            walk.push(_commit_of(repo, tip))
        for oid in old_tips:
            if repo.has_object(oid):
                walk.hide(_commit_of(repo, oid))
        for commit in walk:
            message, files = message_of(commit), tuple(_new_files(commit))
            hidden = _HIDDEN.match(message) is not None
            yield NewCommit(commit=str(commit.id), message=message, files=files, hidden=hidden)
    except (pygit2.GitError, KeyError) as error:
        raise HistoryError(f"git cannot read what is to be published: {error}", hint="git fsck") from error


def content(repo: Repo, blob: str) -> bytes:
    try:
        obj = repo.raw[pygit2.Oid(hex=blob)]
    except (pygit2.GitError, KeyError) as error:
        raise HistoryError(f"git cannot read the file {blob[:12]}: {error}", hint="git fsck") from error
    return tree.content_of(repo, obj, blob[:12]) if isinstance(obj, pygit2.Blob) else b""


def publishable(repo: Repo, *, evidence: bool) -> tuple[list[str], list[str]]:
    """Return what all branches and tags, remotes' too, point to; with ``evidence``, hidden refs of these as well."""
    own = ["refs/heads/", "refs/tags/", refs.NOTES, *(["refs/skillgit/"] if evidence else [])]
    tips: list[str] = []
    remote_tips: list[str] = []
    for name in repo.raw.references:
        oid = repo.tip(name)
        if oid is not None and name.startswith(("refs/remotes/", "refs/skillgit/remotes/")):
            remote_tips.append(oid)
        elif oid is not None and name.startswith(tuple(own)):
            tips.append(oid)
    return tips, remote_tips


def _commit_of(repo: Repo, oid: str) -> pygit2.Oid:
    obj = repo.raw[pygit2.Oid(hex=oid)]
    return obj.peel(pygit2.Commit).id


def _new_files(commit: pygit2.Commit) -> Iterator[NewFile]:
    parents = [parent.tree for parent in commit.parents]
    folders: dict[str, bool] = {}
    for path, entry, before in sorted(_differing(commit.tree, parents), key=lambda file: file[0]):
        yield NewFile(path=path, blob=str(entry.id), before=before, skill=_skill_of(commit.tree, path, folders))


def _differing(root: pygit2.Tree, before: list[pygit2.Tree]) -> Iterator[tuple[str, pygit2.Object, tuple[str, ...]]]:
    """Yield path, entry and the parents' contents of every file that no parent has at the same path."""
    waiting = [(root, before, "")]  # no recursion: a stranger's folders may be of any depth
    while waiting:
        tree, parents, prefix = waiting.pop()
        for entry in tree:
            name, path = str(entry.name), f"{prefix}{entry_name(entry.raw_name or b'')}"
            peers = [parent[name] for parent in parents if name in parent]
            if any(peer.id == entry.id for peer in peers):
                continue
            if isinstance(entry, pygit2.Tree):
                waiting.append((entry, [peer for peer in peers if isinstance(peer, pygit2.Tree)], f"{path}/"))
            elif entry.filemode in _FILES:
                yield path, entry, tuple(str(peer.id) for peer in peers if isinstance(peer, pygit2.Blob))


def _skill_of(root: pygit2.Tree, path: str, cache: dict[str, bool]) -> str:
    parts = path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        folder = "/".join(parts[:depth])
        if folder not in cache:
            cache[folder] = f"{folder}/{DOCUMENT}" in root
        if cache[folder]:
            return folder
    return ""


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
_OTHER_SIGNS = re.compile(rb"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    line: int  # its number in the file, from 1
    text: str  # what it says, without the line end
    commit: str  # the commit that brought it, 40 hexadecimal characters
    original_line: int
    original_path: str


class Blamer:
    """Asks git where lines come from, along ``sources``; what the parents of a commit hold is read once."""

    def __init__(self, repo: Repo, sources: Sources = _NO_SOURCES) -> None:
        self._repo, self.sources = repo, sources
        # git reads them like a file of grafts
        self._grafts = "".join(f"{' '.join((commit, *parents))}\n" for commit, parents in sources.items()).encode()
        self._before: dict[str, set[bytes] | None] = {}
        self._texts: dict[bytes, bytes] = {}

    def lines(self, commit: str, path: str) -> tuple[BlamedLine, ...]:
        """Return where each line of ``path`` comes from; a merge only gets lines that neither of its parents had."""
        content = tree.read_file(self._repo, self._repo.commit(commit).tree, path)
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
        grafts = ("-S", "/dev/stdin") if self._grafts else ()
        answer = git(self._repo, *plain, *grafts, *options, commit, "--", path, stdin=self._grafts)
        if answer.code != 0:
            raise RevisionNotFoundError(f"git cannot blame {path} at {commit[:12]}: {answer.error}", hint="git fsck")
        return answer.out

    def _perhaps_moved(self, lines: Sequence[BlamedLine], texts: Sequence[bytes]) -> list[list[BlamedLine]]:
        """Return stretches of one commit each with a line that a parent has; whole, as git weighs lines together."""
        stretches = [list(stretch) for _, stretch in groupby(lines, lambda line: line.commit)]
        for commit in {line.commit for line in lines} - self._before.keys():
            self._before[commit] = self._lines_before(commit)
        return [stretch for stretch in stretches if _has_moved(stretch, texts, self._before[stretch[0].commit])]

    def _lines_before(self, commit: str) -> set[bytes] | None:
        """Return the lines that the parents of ``commit`` have in files that it changed; None if a file is missing."""
        child, lines = self._repo.commit(commit), set[bytes]()
        for parent in self.sources.get(commit) or child.parent_ids:
            older = self._repo.raw.get(parent)
            if older is None:
                # a shallow clone ends here, for git too
                continue
            for delta in child.tree.diff_to_tree(older.tree).deltas:
                if delta.new_file.mode in _FILES:
                    blob = self._repo.raw.get(delta.new_file.id)
                    if not isinstance(blob, pygit2.Blob):
                        return None
                    content = tree.content_of(self._repo, blob, delta.new_file.path)
                    # versions share most of their lines
                    lines.update(self._texts.setdefault(line, line) for line in content.split(b"\n"))
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
