"""Which rules came and went between two versions, by which step, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.app.diff.credit import Deed, Deeds
from skillgit.app.diff.sides import Sides, sides
from skillgit.app.lineage import RuleHistory
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.domain.rules import Region, Rule, RuleDiff, match, rules
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import RevisionNotFoundError
from skillgit.store import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.context import Context
    from skillgit.domain.address import Address
    from skillgit.index.rows import LogRow

Change = Literal["added", "removed", "changed", "moved"]

_PROSE = (".md", ".markdown", ".txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """One rule that the two sides do not share.

    Attributes:
        change: What became of it.
        file: The file inside the skill folder.
        heading: The nearest heading above it.
        region: Which part of the skill it stands in.
        text: What it says; of a removed rule, what it said.
        before: What it said on the older side, if that is something else.
        first: Its first line on the newer side; of a removed rule, on the older side.
        last: Its last line.
        deed: Whether ``by`` brought the rule, or its words, or removed it.
        address: What the event that did is called; absent for the seed and for people.
        by: The run whose event did; empty for the seed and for people.
        version: The version that did; absent for a rejected candidate and for what is no event.
        step: The step that did; absent for what is no event.
        epoch: Its epoch; absent for what is no event.
        kind: The event's name in trailers; empty for what is no event.
        origin: Where the event's candidate comes from; empty for what is no event.
        number: Which intervention of its run it was; 0 for everything else.
        commit: The commit that did; empty where it cannot be told.
        source: What the edit rests on: ``failure``, ``success``, ``mixed``, ``meta``, ``slow``, ``human`` or ``seed``.
        support: How many trajectories the edit rests on; absent where that is not known.
        gain: How much the version scores above what it was compared with; absent where that was not measured.
    """

    change: Change
    file: str
    heading: str
    region: Region
    text: str
    before: str
    first: int
    last: int
    deed: Literal["brought", "removed"]
    address: Address | None
    by: str
    version: int | None
    step: int | None
    epoch: int | None
    kind: str
    origin: str
    number: int
    commit: str
    source: str
    support: int | None
    gain: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesDiffed:
    """Two versions rule by rule.

    Attributes:
        a: The older side's event; absent for a commit that is no event.
        b: The newer side's event; absent for a commit that is no event.
        rows: The rules that came, went, changed or moved, in the order of the newer text, then those that went.
        kept: How many rules are the same.
    """

    a: LogRow | None
    b: LogRow | None
    rows: tuple[RuleChange, ...]
    kept: int


def rule_diff(context: Context, a: str, b: str | None = None, paths: Sequence[str] = ()) -> RulesDiffed:
    """Return which rules the revisions ``a`` and ``b`` do not share.

    What may be compared, and what is refused, :func:`skillgit.app.diff.sides.sides` says. Besides, one of the two has
    to belong to a run, which tells where the skill is.
    """
    with open_workspace(context) as workspace:
        return rules_diffed(workspace, RuleHistory(workspace), a, b, paths)


def rules_diffed(
    workspace: Workspace, history: RuleHistory, a: str, b: str | None = None, paths: Sequence[str] = ()
) -> RulesDiffed:
    """Do what :func:`rule_diff` does in an open repository, of whose rules ``history`` may have read some."""
    both = sides(workspace, a, b, paths)
    if not all(both.skills):
        raise RevisionNotFoundError(
            "neither side belongs to a run, and nothing else tells which folder is the skill",
            hint="name a version, as in v3",
        )
    found = tuple(matches(workspace, both))
    deeds = Deeds(workspace, history, both)
    return RulesDiffed(
        a=both.a.row,
        b=both.b.row,
        rows=tuple(row for file, diff in found for row in _rows(file, diff, deeds)),
        kept=sum(len(diff.kept) for _, diff in found),
    )


def matches(workspace: Workspace, both: Sides) -> Iterator[tuple[str, RuleDiff]]:
    """Yield path and rules of every file of prose, by path inside the skill folder; none where no run tells it."""
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
    wanted = [path for path in paths if path != folder]
    return {
        file: text
        for file, text in sorted(tree.read_texts(workspace.repo.commit(commit).tree, folder).items())
        if file.endswith(_PROSE)
        and "\0" not in text
        and (not wanted or any(f"{folder}/{file}/".startswith(f"{path}/") for path in wanted))
    }


def _rows(file: str, found: RuleDiff, deeds: Deeds) -> Iterator[RuleChange]:
    came: list[tuple[int, RuleChange]] = [
        *((rule.first, _row("added", file, rule, "", deeds.added(file, rule))) for rule in found.added),
        *(
            (pair.new.first, _row("changed", file, pair.new, pair.old.text, deeds.here(file, pair.new)))
            for pair in found.changed
        ),
        *((pair.new.first, _row("moved", file, pair.new, "", deeds.here(file, pair.new))) for pair in found.moved),
    ]
    yield from (row for _, row in sorted(came, key=lambda entry: entry[0]))
    for rule in found.removed:
        yield _row("removed", file, rule, "", deeds.removed(file, rule))


def _row(change: Change, file: str, rule: Rule, before: str, deed: Deed) -> RuleChange:
    by = deed.by
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
        address=by.address if by else None,
        by=by.run if by else "",
        version=by.version if by else None,
        step=by.step if by else None,
        epoch=by.epoch if by else None,
        kind=by.kind if by else "",
        origin=by.origin if by else "",
        number=by.number if by else 0,
        commit=by.commit if by else deed.commit,
        source=deed.source,
        support=deed.support,
        gain=None if by is None else by.delta,
    )
