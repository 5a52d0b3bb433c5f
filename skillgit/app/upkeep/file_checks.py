"""Whether the files of a run's trees and its notes can be used: their names, hidden characters, readable lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.skill import hidden_characters
from skillgit.domain.untrusted.file_names import (
    PATH_BYTES,
    entry_name,
    git_fault,
    name_fault,
    name_key,
    path_fault,
    shown,
)
from skillgit.errors import SkillgitError
from skillgit.store import notes, refs
from skillgit.store.integrity import Blob, GitError, IntegrityProblem, Object, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo


class NameChecks:
    """Checks the names that the events of one run bring; each is reported once, at the first event that has it."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._trees: set[tuple[str, bool]] = set()
        """Trees, each with whether it was looked at by the rules of a skill."""
        self._sentences: set[str] = set()

    def problems(self, record: Recorded) -> Iterator[str]:
        skill = record.event.skill
        if fault := path_fault(skill):
            yield from self._new(f"its skill folder {shown(skill)} is no path: {fault}")
        for sentence in self._faults(record.tree, skill, strict=False):
            yield from self._new(f"its tree has {sentence}")
        for sentence in self._faults(record.evidence, "", strict=True) if record.evidence else ():
            yield from self._new(f"its evidence has {sentence}")

    def _new(self, sentence: str) -> Iterator[str]:
        if sentence not in self._sentences:
            self._sentences.add(sentence)
            yield sentence

    def _faults(self, tree: str, skill: str, *, strict: bool) -> Iterator[str]:
        """Yield every name in ``tree``, and in the folders in it, that cannot be written to, with the reason."""
        waiting = [(tree, "", strict)]
        while waiting:
            oid, path, strict = waiting.pop()
            folder = self._repo.raw.get(oid)
            if not isinstance(folder, Tree) or (oid, strict) in self._trees:
                continue
            if strict or not f"{skill}/".startswith(path):
                # Folders that lead to a skill are looked at again: another event may have its skill elsewhere in them.
                self._trees.add((oid, strict))
            names: dict[str, str] = {}
            for entry in folder:
                name = entry_name(entry.raw_name or b"")
                inside = f"{path}{name}"
                if fault := _fault(name, names, strict=strict):
                    yield f"the name {shown(inside)}: {fault}"
                if isinstance(entry, Tree) and len(inside) <= PATH_BYTES:
                    waiting.append((str(entry.id), f"{inside}/", strict or inside == skill))
                elif isinstance(entry, Tree):
                    yield f"the name {shown(inside)}: it is longer than {PATH_BYTES} bytes"


def _fault(name: str, beside: dict[str, str], *, strict: bool) -> str:
    """Return why ``name`` cannot be in a folder; ``beside`` are the names before it, which it is added to."""
    key = name_key(name) if strict else name
    twin = beside.get(key)
    beside[key] = name
    if fault := name_fault(name) if strict else git_fault(name):
        return fault
    if twin == name:
        return "it is there twice"
    return "" if twin is None else f"on some systems it is the same as {shown(twin)}"


def text_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[IntegrityProblem]:
    """Yield which files hold hidden characters, each with the first of ``records`` that has it."""
    contents = set[str]()
    for record in records:
        try:
            folder = repo.commit(record.commit).tree[record.event.skill]
            for path, content in _new_files(folder, contents):
                if hidden := hidden_characters(path, content):
                    yield IntegrityProblem(commit=record.commit, sentence=hidden.sentence, remark=True)
        except (GitError, KeyError):
            continue  # what is missing or damaged is reported where objects are checked


def _new_files(entry: Object, contents: set[str], path: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the files of ``entry`` that are not in ``contents``, which is added to."""
    if str(entry.id) in contents:
        return
    contents.add(str(entry.id))
    if isinstance(entry, Tree):
        for inner in entry:
            if isinstance(inner, Tree | Blob):
                yield from _new_files(inner, contents, f"{path}/{inner.name}" if path else str(inner.name))
    elif isinstance(entry, Blob):
        yield path, entry.data


_SHOWN = 40


def note_problems(repo: Repo) -> Iterator[IntegrityProblem]:
    """Yield what is wrong with the notes of all commits.

    A missing commit is no problem: ``gate`` notes what it measured on the head of a pull request, whose branch is never
    pushed, or deleted after the merge, and the note travels all the same.
    """
    try:
        notes_by_commit = notes.read_all(repo)
    except SkillgitError as error:
        yield IntegrityProblem(sentence=f"{refs.short(refs.NOTES)} cannot be read: {error.message}")
        return
    for commit, lines in notes_by_commit.items():
        for line in lines:
            if notes.parsed(line) is None:
                yield IntegrityProblem(
                    commit=commit, sentence=f"a line of its note is no JSON object: '{line[:_SHOWN]}'"
                )
