"""Which of an event's edits brought a line, and what the event did to the items: the credit that a line gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.step_evidence import AppliedEdit, StepEvidence
from skillgit.domain.edit import normalised
from skillgit.index import rule_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.provenance import TracedLine
    from skillgit.app.workspace import Workspace
    from skillgit.index.rule_queries import OriginRow

_STEPS = frozenset({"accepted", "rejected"})
_SOURCES = {"run-started": "seed", "slow-proposed": "slow", "slow-merged": "slow", "edited": "human"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What a line rests on.

    Attributes:
        source: ``failure``, ``success``, ``mixed``, ``meta``, ``slow``, ``human`` or ``seed``; where the edit cannot be
            told, what the event is; empty if nothing tells.
        support: How many trajectories its edit rests on; absent where that is not known.
        edit: The place of its edit among those of its event, from 0; absent where that is not known.
        op: What its edit did.
        items: The train items that moved its edit.
        fixed: Selection items that its version solves better than the version's base.
        broken: Selection items that its version solves worse.
    """

    source: str
    support: int | None = None
    edit: int | None = None
    op: str = ""
    items: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


class Credits:
    """Credits the lines of one skill; every event is looked up once.

    Args:
        workspace: The repository and its index.
        skill: The skill folder.
        start: The commit that the run started from; what lies before it is the seed.
    """

    def __init__(self, workspace: Workspace, skill: str, start: str | None) -> None:
        self._workspace = workspace
        self._skill = skill
        self._start = start
        self._evidence: dict[str, StepEvidence] = {}
        self._edits: dict[str, tuple[AppliedEdit, ...]] = {}
        self._brought: dict[tuple[str, str], BroughtLines] = {}
        self._flips: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._seeds: dict[str, bool] = {}

    def credit(self, line: TracedLine) -> Credit:
        """Return what ``line`` rests on."""
        origin = line.origin
        if origin is None:
            return Credit(source="seed" if self._is_seed(line.commit) else "human")
        fixed, broken = self.flips(origin)
        if origin.kind not in _STEPS:
            items = tuple(seen.item for seen in self.evidence(origin).compared())
            return Credit(source=_SOURCES.get(origin.kind, ""), items=items, fixed=fixed, broken=broken)
        file = line.original_path.removeprefix(f"{self._skill}/")
        edit = self._brought_lines(origin, file).edit_of(line.text)
        if edit is None:
            return Credit(source=self._shared_source(origin), fixed=fixed, broken=broken)
        return Credit(
            source=edit.source,
            support=edit.support,
            edit=edit.position,
            op=edit.op,
            items=edit.items,
            fixed=fixed,
            broken=broken,
        )

    def evidence(self, origin: OriginRow) -> StepEvidence:
        """Return the evidence of an event."""
        if origin.commit not in self._evidence:
            self._evidence[origin.commit] = StepEvidence(self._workspace.repo, origin.evidence)
        return self._evidence[origin.commit]

    def edits(self, origin: OriginRow) -> tuple[AppliedEdit, ...]:
        """Return the edits of an event; without its evidence they have neither text nor items."""
        if origin.commit not in self._edits:
            told = rule_queries.edits(self._workspace.index, origin.commit)
            self._edits[origin.commit] = self.evidence(origin).edits() or tuple(
                AppliedEdit(
                    position=place,
                    op=row.op,
                    file=row.file,
                    anchor="",
                    content="",
                    support=row.support,
                    source=row.source,
                    items=(),
                )
                for place, row in enumerate(told)
            )
        return self._edits[origin.commit]

    def flips(self, origin: OriginRow) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the items that an event's text fixed, and those that it broke, as far as that is known."""
        if origin.commit not in self._flips:
            found = rule_queries.flipped(self._workspace.index, origin.commit)
            self._flips[origin.commit] = found if any(found) else self._told_flips(origin)
        return self._flips[origin.commit]

    def _brought_lines(self, origin: OriginRow, file: str) -> BroughtLines:
        if (origin.commit, file) not in self._brought:
            edits = [edit for edit in self.edits(origin) if edit.file == file]
            self._brought[origin.commit, file] = BroughtLines(edits)
        return self._brought[origin.commit, file]

    def _told_flips(self, origin: OriginRow) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the items that the commit message names: in a clone nothing else tells them."""
        from skillgit.store import reader  # noqa: PLC0415 - decoding is for clones without evidence

        event = reader.read_commit(self._workspace.repo, origin.commit).event
        return tuple(getattr(event, "fixed", ())), tuple(getattr(event, "broken", ()))

    def _shared_source(self, origin: OriginRow) -> str:
        """Return the source that all edits of an event have; where they differ, where the event came from."""
        sources = {edit.source for edit in self.edits(origin)}
        if len(sources) == 1:
            return sources.pop()
        return "mixed" if sources else (origin.origin if origin.origin != "step" else "")

    def _is_seed(self, commit: str) -> bool:
        if commit not in self._seeds:
            self._seeds[commit] = self._start is not None and self._workspace.repo.reaches(self._start, commit)
        return self._seeds[commit]


class BroughtLines:
    """The lines that the edits of one event brought to one file.

    Args:
        edits: The edits, in the order of their application.
    """

    def __init__(self, edits: Sequence[AppliedEdit]) -> None:
        self._only = edits[0] if len(edits) == 1 else None
        self._last: dict[str, AppliedEdit] = {}
        for edit in reversed(edits):
            for line in map(normalised, edit.content.splitlines()):
                if line:
                    self._last.setdefault(line, edit)

    def edit_of(self, text: str) -> AppliedEdit | None:
        """Return the last edit that brought a line with ``text``; None if several may have and none holds it.

        An edit may change a part of a line: where none has the whole line, one line has to hold the other.
        """
        wanted = normalised(text)
        if not wanted:
            return self._only
        part = (edit for line, edit in self._last.items() if line in wanted or wanted in line)
        return self._last.get(wanted) or next(part, self._only)
