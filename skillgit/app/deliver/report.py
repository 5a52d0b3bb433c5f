"""``skillgit report``: everything that a run came to, as one value; equal histories give equal values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final

from skillgit.app.attribution.provenance import Blame, blame, find_place
from skillgit.app.attribution.rule_lineage import RuleHistory
from skillgit.app.attribution.why import Stories, Story
from skillgit.app.deliver.summary import RunSummary, summary
from skillgit.app.history.cost import Spending, cost
from skillgit.app.history.diff.rules import RuleChange, rules_diffed
from skillgit.app.history.diff.text import diff
from skillgit.app.history.items import ItemTable, items
from skillgit.app.history.requests import ItemOrder, ItemsRequest
from skillgit.app.history.show import RunSetting, recorded_settings
from skillgit.app.recorded.outcomes import CheckChange, changes_from_base
from skillgit.app.recorded.step_evidence import AppliedEdit, StepEvidence, TrajectoryPattern
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace, or_none
from skillgit.domain.address import version_label
from skillgit.domain.edit import LeftOut
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.text_diff import DiffAllowance, DiffExcerpt, detailed, read_patch
from skillgit.index import version_queries
from skillgit.index.rows import LogRow
from skillgit.store import diff as store_diff
from skillgit.store.history_reader import read_commit

ITEMS: Final = 320  # items of the map, those that changed most often
COLUMNS: Final = 110  # versions of the map: the first one, the best one and the newest ones
DETAILED: Final = 150  # versions, and as many rejected candidates, that are reported in full, the newest ones
LISTED: Final = 600  # versions, and as many rejected candidates, that have a line in a table, the newest ones
RULES: Final = 150  # rules that have a story, the first ones of the skill
_CONTEXT: Final = 3  # unchanged lines around a change; what the reader's git is set to must not change a page


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStory:
    """An event; ``event`` and what follows are there where a report has room for it in full."""

    row: LogRow
    event: Event | None = None
    difference: DiffExcerpt = field(default_factory=DiffExcerpt)
    edits: tuple[AppliedEdit, ...] = ()  # the edits that took effect; none where the evidence is not here
    left_out: tuple[LeftOut, ...] = ()  # the edits that were chosen and not applied; likewise
    findings: tuple[TrajectoryPattern, ...] = ()
    checks: tuple[CheckChange, ...] = ()  # how single checks fare, and did before; none where items have one score only


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    stories: tuple[EventStory, ...]
    left_out: int
    brief: int


def tell(workspace: Workspace, rows: Sequence[LogRow], room: DiffAllowance) -> Events:
    """Return the events in ``rows``, oldest first; of many only the newest, and the newest of these in full."""
    last_rows = rows[-LISTED:]
    newest = last_rows[-DETAILED:][::-1]
    full: dict[str, EventStory] = {}
    # the seed changes nothing, and the skill itself shows its text
    changes = [row.commit for row in newest if row.version != 0]
    path = workspace.index.skill_path(rows[0].run) if rows else ""
    sources = version_queries.sources(workspace.index, changes)
    texts = store_diff.patches(workspace.repo, changes, path, store_diff.PATCH, sources)
    patches = dict(zip(changes, texts, strict=True))
    for row in newest:
        record = read_commit(workspace.repo, row.commit)
        evidence = StepEvidence(workspace.repo, record.evidence)
        # words are compared where there is room for them
        excerpt = room.take(read_patch(patches.get(row.commit, b"").decode(errors="replace")))
        full[row.commit] = EventStory(
            row=row,
            event=record.event,
            difference=replace(excerpt, files=detailed(excerpt.files)),
            edits=evidence.edits(),
            left_out=evidence.left_out(),
            findings=evidence.findings(),
            checks=changes_from_base(workspace, row),
        )
    return Events(
        stories=tuple(full.get(row.commit) or EventStory(row=row) for row in last_rows),
        left_out=len(rows) - len(last_rows),
        brief=len(last_rows) - len(full),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMap:
    table: ItemTable  # the items, those that were solved first on top, under the versions
    versions: int

    @property
    def items_left_out(self) -> int:
        return self.table.items - len(self.table.rows)

    @property
    def versions_left_out(self) -> int:
        return self.versions - len(self.table.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleStories:
    stories: tuple[Story, ...]  # the rules of the best version, in the order of its text
    left_out: int
    removals: tuple[RuleChange, ...]  # the rules of the seed that it has no more


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(RunSummary):
    """A run, for people who do not have its repository."""

    difference: DiffExcerpt  # how the best version's text differs from the seed's
    text: Blame | None  # the lines of the best version's ``SKILL.md`` with their origins; absent where it has none
    rules: RuleStories
    item_map: ItemMap | None  # which item is solved by which version; absent where outcomes are not known here
    versions: Events
    rejections: Events
    slow: Events
    skips: tuple[LogRow, ...]  # steps that ended without a candidate
    cost: Spending
    settings: tuple[RunSetting, ...]  # the settings that it recorded; none where they are not here

    @property
    def absent(self) -> bool:
        """Whether a part of the evidence is not here, as in a clone."""
        return any(story.absent for story in self.rules.stories) or self.item_map is None or not self.settings


def report(workspace: Workspace, run: str | None) -> RunReport:
    # which process trains the run now does not belong to its history
    base = summary(workspace, run, most=None, live={})
    name, best = base.run.name, base.best
    seed_name, best_name = f"{name}/v0", f"{name}/{version_label(best.version)}"
    room = DiffAllowance()
    difference = room.take(diff(workspace, seed_name, best_name, lines=_CONTEXT, as_data=True).files)
    kinds = (EventKind.REJECTED, EventKind.SLOW_PROPOSED, EventKind.SKIPPED)
    rejections, proposals, skips = ([event for event in base.rows if event.kind == kind] for kind in kinds)
    return RunReport(
        **{field.name: getattr(base, field.name) for field in fields(base)},
        difference=difference,
        text=or_none(lambda: blame(workspace, best_name)),
        rules=_rules(workspace, seed_name, best_name),
        item_map=_item_map(workspace, name),
        versions=tell(workspace, [event for event in base.rows if event.version is not None], room),
        rejections=tell(workspace, rejections, room),
        slow=tell(workspace, proposals, room),
        skips=tuple(skips),
        cost=cost(workspace, name),
        settings=recorded_settings(workspace, version_queries.start_evidence(workspace.index, name)),
    )


def _rules(workspace: Workspace, seed: str, best: str) -> RuleStories:
    """Return the rules of the revision ``best``, and those that only ``seed`` has."""
    row, history = event_in(workspace, best), RuleHistory(workspace)
    texts = history.skill(row.commit, workspace.index.skill_path(row.run))
    rule_lines = [(path, rule.first) for path, text in texts.items() for rule in text.rules]
    teller = Stories(workspace, history, find_place(workspace, best, rule_lines[0][0])) if rule_lines else None
    changes = () if seed == best else rules_diffed(workspace, history, seed, best).rows
    return RuleStories(
        stories=tuple(teller.at_line(path, line) for path, line in rule_lines[:RULES]) if teller else (),
        left_out=max(0, len(rule_lines) - RULES),
        removals=tuple(change for change in changes if change.change == "removed"),
    )


def _item_map(workspace: Workspace, run: str) -> ItemMap | None:
    """Return the items that flip most, under the first, best and newest versions; None without outcomes."""
    table = or_none(lambda: items(workspace, run, ItemsRequest(order=ItemOrder.FIRST)))
    if table is None:
        return None
    indexes = [index for index, column in enumerate(table.columns) if index == 0 or column.is_best]
    newest = [index for index in reversed(range(len(table.columns))) if index not in indexes]
    indexes = sorted([*indexes, *newest[: COLUMNS - len(indexes)]])
    often = sorted(range(len(table.rows)), key=lambda index: (-table.rows[index].flips, index))[:ITEMS]
    rows = tuple(
        replace(table.rows[index], cells=tuple(table.rows[index].cells[column] for column in indexes))
        for index in sorted(often)
    )
    columns = tuple(table.columns[index] for index in indexes)
    return ItemMap(table=replace(table, columns=columns, rows=rows), versions=len(table.columns))
