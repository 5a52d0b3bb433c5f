"""Histories written through ``git fast-import``, with the messages of skillgit's own codec.

All ids are computed here, so that messages can name evidence and evidence its event, and one stream does for all. Refs
are then written as git itself keeps many of them: packed. ``git fsck`` and ``skillgit fsck`` find nothing to say.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from itertools import islice
from typing import IO, TYPE_CHECKING

from bench.histories.story import PATH, finished_story, gain_of, run_story, seed_skill

from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.protected_regions import with_slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.store import commit_message, refs
from skillgit.store.history_reader import MEMORY
from skillgit.store.work_tree import ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench.histories.story import Chapter


START = datetime(2026, 1, 1, tzinfo=UTC)
RUNS = 100
_SIGNATURE = "skillgit <skillgit@localhost>"
_NOTES = "refs/import/notes"
_SCRATCH = "refs/import/line"
_NOTED = 50
"""Of so many versions one has a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was written: run to the number of its events and to the seed of its story, and every ref.

    All runs are finished but the last one.
    """

    path: Path
    events: Mapping[str, int]
    seeds: Mapping[str, int]
    refs: Mapping[str, str]

    @property
    def open_run(self) -> str:
        """The run that goes on."""
        return list(self.events)[-1]


def write_history(path: Path, events: int, *, runs: int | None = None, seed: int = 0) -> History:
    """Make the repository ``path`` with ``events`` events in ``runs`` runs, by default 100, of ten events at least."""
    count = runs or max(1, min(RUNS, events // 10))
    shares = {f"demo-{place:03d}": events // count + (place < events % count) for place in range(count)}
    seeds = {run: seed * RUNS + place for place, run in enumerate(shares)}
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)
    # compressing well would take longer than everything else
    command = ["git", "-c", "core.compression=1", "-C", str(path), "fast-import", "--quiet", "--force"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        stream = Stream(process.stdin)
        write_runs(stream, shares, seeds)
    if process.returncode:
        raise RuntimeError("git fast-import failed")
    _write_refs(path, stream.refs)
    return History(path=path, events=shares, seeds=seeds, refs=stream.refs)


def write_runs(stream: Stream, shares: Mapping[str, int], seeds: Mapping[str, int]) -> None:
    """Write the runs ``shares`` with so many events each, and what stands beside them."""
    start = stream.seed()
    *finished, last = shares
    for place, run in enumerate(shares):
        line = _Line(stream, run, start, place, len(shares))
        if run in finished:
            chapters = finished_story(run, shares[run], seeds[run])
        else:
            chapters = islice(run_story(last, seeds[last], gain_of(shares[last])), shares[last])
        for chapter in chapters:
            line.write(chapter)
    stream.notes()


def _write_refs(path: Path, wanted: dict[str, str]) -> None:
    """Replace the branches of the import by the refs of the history, packed."""
    git = ("git", "-C", str(path))
    notes = subprocess.run([*git, "rev-parse", _NOTES], check=True, capture_output=True, text=True)
    wanted[refs.NOTES] = notes.stdout.strip()
    told = "--format=delete %(refname)"
    listed = subprocess.run([*git, "for-each-ref", told, "refs/import"], check=True, capture_output=True)
    subprocess.run([*git, "update-ref", "--stdin"], input=listed.stdout, check=True)
    lines = [f"{oid} {name}\n" for name, oid in sorted(wanted.items())]
    header = "# pack-refs with: peeled fully-peeled sorted \n"
    (path / ".git" / "packed-refs").write_text(header + "".join(lines), encoding="utf-8")
    subprocess.run([*git, "reset", "-q", "--hard"], check=True)


class Stream:
    """What ``git fast-import`` reads, and the refs that the history is to have."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.refs: dict[str, str] = {}
        self.noted: dict[str, bytes] = {}
        self._marks: dict[str, int] = {}

    def seed(self) -> str:
        """Write ``main`` with the seed skill."""
        tree = _Tree(skill=seed_skill())
        oid = self.commit(tree.oid, "Seed skill\n", [], START, tree.changed(None))
        self.refs["refs/heads/main"] = oid
        return oid

    def commit(self, tree: str, message: str, parents: list[str], time: datetime, files: Mapping[str, bytes]) -> str:
        """Write a commit whose tree differs from its first parent's by ``files``; return its id."""
        oid = _commit_oid(tree, message, parents, time)
        mark = self._marks[oid] = len(self._marks) + 1
        self._begin(f"{_SCRATCH}\nmark :{mark}", message, time)
        for word, parent in zip(("from", "merge"), parents, strict=False):
            self._stream.write(f"{word} :{self._marks[parent]}\n".encode())
        self._files(files)
        return oid

    def chain(self, run: str, files: Mapping[str, bytes], message: str, time: datetime) -> None:
        """Add the evidence ``files`` to the chain of ``run``."""
        name = refs.evidence_ref(run)
        parents = [self.refs[name]] if name in self.refs else []
        self.refs[name] = _commit_oid(_flat_tree(files), message, parents, time)
        self._begin(f"refs/import/evidence/{run}", message, time)
        self._stream.write(b"deleteall\n")
        self._files(files)

    def _begin(self, head: str, message: str, time: datetime) -> None:
        self._stream.write(f"commit {head}\ncommitter {_signed(time)}\n".encode() + _data(message.encode()))

    def _files(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            self._stream.write(b"M 100644 inline %s\n" % name.encode() + _data(content))
        self._stream.write(b"\n")

    def notes(self) -> None:
        """Write all notes in one commit."""
        self._begin(_NOTES, "Notes\n", START)
        for commit, line in self.noted.items():
            self._stream.write(b"N inline :%d\n" % self._marks[commit] + _data(line))
        self._stream.write(b"\n")


class _Line:
    """The branches of one run."""

    def __init__(self, stream: Stream, run: str, start: str, place: int, runs: int) -> None:
        self.stream, self.run, self.start = stream, run, start
        self.minutes, self.place, self.runs = 0, place, runs
        self.tree = _Tree(skill=seed_skill())
        self.trees: dict[str, _Tree] = {start: self.tree}
        self.versions: dict[int, str] = {}

    def write(self, chapter: Chapter) -> None:
        """Write one event, its evidence and its refs."""
        event, known = chapter.event, self.stream.refs
        time = START + timedelta(minutes=self.minutes, seconds=self.place * 60 // self.runs)
        self.minutes += 1
        parents = self._parents(event)
        tree = self._tree(chapter, parents[0])
        proof = _flat_tree(chapter.evidence) if chapter.evidence else ""
        message = commit_message.encode(event, proof)
        oid = self.stream.commit(tree.oid, message, parents, time, tree.changed(self._tree_of(parents[0])))
        branch = refs.branch_of(event)
        known[branch] = oid
        self._remember(event, oid, tree)
        if proof:
            subject = f"evidence of {refs.short(branch)}"
            self.stream.chain(self.run, chapter.evidence, f"{subject}\n\nevent {oid}\n", time)

    def _remember(self, event: Event, oid: str, tree: _Tree) -> None:
        if event.kind is EventKind.SLOW_PROPOSED:
            self.trees[refs.slow_branch(self.run)] = tree
        elif event.kind is not EventKind.REJECTED:
            self.tree = tree
        if event.kind is EventKind.RUN_STARTED:
            self.trees["v0"] = tree
        if event.kind in {EventKind.RUN_STARTED, EventKind.ACCEPTED, EventKind.SLOW_MERGED}:
            self.versions[event.version] = oid
            self.stream.refs[refs.version_tag(self.run, event.version)] = oid
            if event.kind is EventKind.RUN_STARTED or event.verdict.decision is Decision.ACCEPT_NEW_BEST:
                self.stream.refs[refs.best_branch(self.run)] = oid
            if event.version % _NOTED == 1:
                self.stream.noted[oid] = _note(event)

    def _parents(self, event: Event) -> list[str]:
        known = self.stream.refs
        line, slow = known.get(refs.run_branch(self.run)), known.get(refs.slow_branch(self.run))
        match event.kind:
            case EventKind.RUN_STARTED:
                return [self.start]
            case EventKind.REJECTED:
                return [self.versions[event.base]]
            case EventKind.SLOW_PROPOSED:
                return [slow or self.versions[0]]
            case EventKind.SLOW_MERGED:
                return [str(line), str(slow)]
            case _:
                return [str(line)]

    def _tree_of(self, parent: str) -> _Tree:
        if parent == self.stream.refs.get(refs.slow_branch(self.run)):
            return self.trees[refs.slow_branch(self.run)]
        return self.trees["v0"] if parent == self.versions.get(0) else self.tree

    def _tree(self, chapter: Chapter, parent: str) -> _Tree:
        event = chapter.event
        if event.kind is EventKind.SLOW_PROPOSED:
            before = self._tree_of(parent).skill
            skill = before.with_text(DOCUMENT, with_slow_guidance(before.document, event.guidance))
            return _Tree(skill=skill, memory=event.memory.encode())
        if event.kind in {EventKind.SKIPPED, EventKind.RUN_FINISHED} or chapter.skill is None:
            return self.tree
        return _Tree(skill=chapter.skill)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """The tree of a commit: one skill, git's attributes and on the slow line the memory."""

    skill: Skill
    memory: bytes = b""
    oid: str = field(init=False, default="")

    def __post_init__(self) -> None:
        name = PATH.rpartition("/")[2]
        folder = _tree_oid([("40000", name, _flat_tree(self.skill.files))])
        entries = [("100644", ".gitattributes", _oid("blob", ATTRIBUTES)), ("40000", "skills", folder)]
        if self.memory:
            entries.insert(1, ("100644", MEMORY, _oid("blob", self.memory)))
        object.__setattr__(self, "oid", _tree_oid(entries))

    def changed(self, before: _Tree | None) -> dict[str, bytes]:
        """Return the files that differ from those of ``before``."""
        if before is None:
            return {".gitattributes": ATTRIBUTES, **{f"{PATH}/{name}": text for name, text in self.skill.files.items()}}
        found = {
            f"{PATH}/{name}": text for name, text in self.skill.files.items() if before.skill.files.get(name) != text
        }
        return found | ({MEMORY: self.memory} if self.memory and self.memory != before.memory else {})


def _note(event: Event) -> bytes:
    row = {"hard": 0.0, "item_set": "4be1", "kind": "evaluation", "n": 20, "scored": 20, "seed": 42, "soft": 0.5}
    return (json.dumps({**row, "split": "test", "version": event.version}, sort_keys=True) + "\n").encode()


def _signed(time: datetime) -> str:
    return f"{_SIGNATURE} {int(time.timestamp())} +0000"


def _commit_oid(tree: str, message: str, parents: list[str], time: datetime) -> str:
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {_signed(time)}", f"committer {_signed(time)}"]
    return _oid("commit", "\n".join([*lines, "", message]).encode())


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _oid(kind: str, content: bytes) -> str:
    return sha1(b"%s %d\0%s" % (kind.encode(), len(content), content), usedforsecurity=False).hexdigest()


def _tree_oid(entries: list[tuple[str, str, str]]) -> str:
    return _oid("tree", b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(oid) for mode, name, oid in entries))


def _flat_tree(files: Mapping[str, bytes]) -> str:
    return _tree_oid([("100644", name, _oid("blob", content)) for name, content in sorted(files.items())])
