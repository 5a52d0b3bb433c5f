"""Which rules came and went between two versions, which event brought or removed each, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skillgit.app.attribution.provenance import Credits
from skillgit.app.attribution.rule_lineage import RuleHistory, RuleText
from skillgit.app.history.diff.text import Sides, sides
from skillgit.app.recorded.step_evidence import AppliedEdit
from skillgit.app.workspace.revision import Resolved
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import Address
from skillgit.domain.edit import normalised
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.skill_rules import Region, Rule, RuleDiff, match, rules
from skillgit.errors import RevisionNotFoundError
from skillgit.index import rule_queries, version_queries
from skillgit.index.rows import LogRow
from skillgit.index.rule_queries import OriginRow
from skillgit.store import tree

_SOURCES = {EventKind.SLOW_MERGED: "slow", EventKind.EDITED: "human", EventKind.REVERTED: "revert"}
_REMOVING = frozenset({"delete", "replace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    deed: Literal["brought", "removed"]
    by: OriginRow | None  # the event that did it; absent for the seed, for people and where it is unknown
    commit: str = ""  # the commit that did it; empty where it is unknown
    source: str = ""  # what it rests on, see :class:`skillgit.app.attribution.provenance.Credit`
    support: int | None = None  # how many trajectories it rests on; absent where that is not known


class Deeds:
    """Finds what was done to the rules of two sides.

    Where one side grew out of the other, a rule that the younger one lacks was removed by one of the versions between
    them. Otherwise a rule is attributed to the event that brought it to its side.
    """

    def __init__(self, workspace: Workspace, history: RuleHistory, both: Sides) -> None:
        self._workspace = workspace
        self._both = both
        self._history = history
        self._credits: dict[str, Credits] = {}
        forward, backward = _between(workspace, both.a, both.b), _between(workspace, both.b, both.a)
        self._gone = _Removal(history, both.skills[0], forward) if forward else None
        self._undone = _Removal(history, both.skills[1], backward) if backward else None

    def added(self, file: str, rule: Rule) -> Deed:
        """Return what brought a rule that only ``b`` has, or, if ``a`` grew out of ``b``, what removed it."""
        return self._removed(self._undone, file, rule) or self.here(file, rule)

    def here(self, file: str, rule: Rule) -> Deed:
        return self._brought(self._both.b, self._both.skills[1], file, rule)

    def removed(self, file: str, rule: Rule) -> Deed:
        """Return what removed a rule that only ``a`` has; if ``b`` did not grow out of ``a``, what brought it."""
        removal = self._removed(self._gone, file, rule)
        return removal or self._brought(self._both.a, self._both.skills[0], file, rule)

    def _brought(self, side: Resolved, skill: str, file: str, rule: Rule) -> Deed:
        path = f"{skill}/{file}" if skill else file
        lines = self._history.tracer.trace(side.commit, path, rule.first, rule.last)
        own = [line for line in lines if line.text.strip()]
        # a rule of several lines is as new as its newest line
        line = max(own, key=lambda line: (line.origin.step, line.origin.version or 0) if line.origin else (-1, -1))
        credit = self._credited(side, skill).credit(line)
        return Deed(deed="brought", by=line.origin, commit=line.commit, source=credit.source, support=credit.support)

    def _removed(self, removal: _Removal | None, file: str, rule: Rule) -> Deed | None:
        commit = removal.find(file, rule) if removal else None
        if commit is None:
            return None
        by = rule_queries.origins(self._workspace.index, {commit}).get(commit)
        if by is None:
            return Deed(deed="removed", by=None, commit=commit, source="human")
        side = self._both.b if removal is self._gone else self._both.a
        edits = self._credited(side, self._both.skills[0]).edits(by)
        edit = removing_edit(rule.text, [edit for edit in edits if edit.file == file])
        sources = {edit.source for edit in edits}
        return Deed(
            deed="removed",
            by=by,
            commit=commit,
            source=edit.source if edit else sources.pop() if len(sources) == 1 else _SOURCES.get(by.kind, ""),
            support=edit.support if edit else None,
        )

    def _credited(self, side: Resolved, skill: str) -> Credits:
        run = side.run or ""
        if run not in self._credits:
            start = rule_queries.commit_of_version(self._workspace.index, run, 0) if run else None
            self._credits[run] = Credits(self._workspace, skill, start)
        return self._credits[run]


def removing_edit(text: str, edits: Sequence[AppliedEdit]) -> AppliedEdit | None:
    """Return the edit that removed a rule with ``text``; None if several may have and none names it."""
    removing = [edit for edit in edits if edit.op in _REMOVING]
    key = normalised(text)
    anchors = [(edit, normalised(edit.anchor)) for edit in removing]
    candidates = [edit for edit, anchor in anchors if anchor and (anchor in key or key in anchor)]
    return candidates[0] if candidates else removing[0] if len(removing) == 1 else None


def _between(workspace: Workspace, older: Resolved, newer: Resolved) -> list[str]:
    """Return the commits through which ``newer``, maybe a rejected candidate, was made of ``older``; else none."""
    a, b = older.row, newer.row
    if a is None or b is None or a.run != b.run or a.version is None:
        return []
    end = b.version if b.version is not None else b.base
    if end is None or not (a.version < end or (a.version == end and b.version is None)):
        return []
    versions = version_queries.lineage(workspace.index, a.run, a.version, end)
    commits = version_queries.commits_of_versions(workspace.index, a.run, versions)
    return list(commits) if b.version is not None or not commits else [*commits, b.commit]


class _Removal:
    """Finds the version that removed a rule by bisecting ``commits``: the first has the rule, the last has not."""

    def __init__(self, history: RuleHistory, skill: str, commits: Sequence[str]) -> None:
        self._history = history
        self._skill = skill
        self._commits = commits

    def find(self, file: str, rule: Rule) -> str | None:
        """Return the commit that removed ``rule``, followed through rewordings; None if the last version has a copy."""
        first, text = 0, rule.text
        if self._has(len(self._commits) - 1, file, text):
            return None
        while True:
            last = len(self._commits) - 1
            while last - first > 1:
                middle = (first + last) // 2
                first, last = (middle, last) if self._has(middle, file, text) else (first, middle)
            became = self._history.changes(self._at(last - 1, file), self._at(last, file)).after.get(text)
            if became is None or self._has(len(self._commits) - 1, file, became.text):
                return self._commits[last]
            first, text = last, became.text

    def _has(self, index: int, file: str, text: str) -> bool:
        return text in self._at(index, file).by_words

    def _at(self, index: int, file: str) -> RuleText:
        path = f"{self._skill}/{file}" if self._skill else file
        return self._history.text(self._commits[index], path, is_document=file == DOCUMENT)


Change = Literal["added", "removed", "changed", "moved"]

_PROSE = (".md", ".markdown", ".txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    change: Change
    file: str  # inside the skill folder
    heading: str
    region: Region
    text: str  # what it says; of a removed rule, what it said
    before: str  # what it said on the older side, if that is something else
    first: int  # its first line on the newer side; of a removed rule, on the older side
    last: int
    deed: Literal["brought", "removed"]  # whether `by` brought the rule, or its words, or removed it
    address: Address | None = None  # what the event that did is called; absent for the seed and for people
    by: str  # the run whose event did; empty for the seed and for people
    version: int | None = (
        None  # the version that did; absent for a rejected candidate and if a commit that is not an event did it
    )
    step: int | None = None  # the step that did; absent if a commit that is not an event did it
    epoch: int | None = None  # its epoch; absent if a commit that is not an event did it
    kind: str  # the event's name in trailers; empty if a commit that is not an event did it
    origin: str  # where the event's candidate comes from; empty if a commit that is not an event did it
    number: int  # which intervention of its run it was; 0 for everything else
    commit: str  # the commit that did; empty where it is unknown
    source: str  # what the edit rests on: failure, success, mixed, meta, slow, human or seed
    support: int | None  # how many trajectories the edit rests on; absent where that is not known
    gain: float | None = None  # how much the version scores above what it was compared with; absent where not measured


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesDiffed:
    a: LogRow | None  # the older side's event; absent if the commit is not an event
    b: LogRow | None  # the newer side's event; absent if the commit is not an event
    rows: tuple[RuleChange, ...]  # what came, went, changed or moved, in the order of the newer text, then what went
    kept: int


def rule_diff(workspace: Workspace, a: str, b: str | None = None, paths: Sequence[str] = ()) -> RulesDiffed:
    """Return which rules two revisions do not share; see :func:`sides`, and one of the two must belong to a run."""
    return rules_diffed(workspace, RuleHistory(workspace), a, b, paths)


def rules_diffed(
    workspace: Workspace, history: RuleHistory, a: str, b: str | None = None, paths: Sequence[str] = ()
) -> RulesDiffed:
    """Do what :func:`rule_diff` does in an open repository, of whose rules ``history`` may have read some."""
    both = sides(workspace, a, b, paths)
    if not all(both.skills):
        raise RevisionNotFoundError(
            "neither side belongs to a run, and nothing else says which folder is the skill",
            hint="name a version, as in v3",
        )
    pairs = tuple(matches(workspace, both))
    deeds = Deeds(workspace, history, both)
    return RulesDiffed(
        a=both.a.row,
        b=both.b.row,
        rows=tuple(row for file, diff in pairs for row in _rows(file, diff, deeds)),
        kept=sum(len(diff.matches) for _, diff in pairs),
    )


def matches(workspace: Workspace, both: Sides) -> Iterator[tuple[str, RuleDiff]]:
    """Yield path and rules of every file of prose, by path inside the skill folder; none where no run has it."""
    if not all(both.skills):
        return
    before, after = (
        _texts(workspace, side.commit, skill, both.paths)
        for side, skill in zip((both.a, both.b), both.skills, strict=True)
    )
    for file in sorted(before.keys() | after.keys()):
        is_document = file == DOCUMENT
        old, new = before.get(file, ""), after.get(file, "")
        yield file, match(rules(old, is_document=is_document), rules(new, is_document=is_document))


def _texts(workspace: Workspace, commit: str, folder: str, paths: Sequence[str]) -> dict[str, str]:
    names = [path for path in paths if path != folder]
    return {
        file: text
        for file, text in sorted(tree.read_texts(workspace.repo, workspace.repo.commit(commit).tree, folder).items())
        if file.endswith(_PROSE)
        and "\0" not in text
        and (not names or any(f"{folder}/{file}/".startswith(f"{path}/") for path in names))
    }


def _rows(file: str, diff: RuleDiff, deeds: Deeds) -> Iterator[RuleChange]:
    def row(change: Change, rule: Rule, deed: Deed, before: str = "") -> RuleChange:
        by = deed.by
        event: dict[str, Any] = {"by": "", "kind": "", "origin": "", "number": 0, "commit": deed.commit}
        if by is not None:
            same = ("address", "version", "step", "epoch", "kind", "origin", "number", "commit")
            event = {"by": by.run, "gain": by.delta, **{name: getattr(by, name) for name in same}}
        return RuleChange(
            change=change,
            file=file,
            heading=rule.heading,
            region=rule.region,
            text=rule.text,
            before=before,
            first=rule.first,
            last=rule.last,
            deed=deed.deed,
            source=deed.source,
            support=deed.support,
            **event,
        )

    came = [
        *(row("added", rule, deeds.added(file, rule)) for rule in diff.additions),
        *(row("changed", pair.new, deeds.here(file, pair.new), pair.old.text) for pair in diff.changes),
        *(row("moved", pair.new, deeds.here(file, pair.new)) for pair in diff.moves),
    ]
    yield from sorted(came, key=lambda change: change.first)
    yield from (row("removed", rule, deeds.removed(file, rule)) for rule in diff.removals)
