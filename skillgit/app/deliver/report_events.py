"""The events and the rules of a run with all that a report says of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.app.attribution.blame import find_place
from skillgit.app.attribution.rule_lineage import RuleHistory
from skillgit.app.attribution.why import Stories
from skillgit.app.deliver.report import DETAILED, LISTED, RULES, DiffExcerpt
from skillgit.app.history.diff.rules import rules_diffed
from skillgit.app.recorded.check_scores import changes_from_base
from skillgit.app.recorded.step_evidence import StepEvidence
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.text_diff import detailed
from skillgit.domain.unified_diff import read
from skillgit.store import diff as store_diff
from skillgit.store.diff import PATCH
from skillgit.store.history_reader import read_commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.attribution.why import Story
    from skillgit.app.deliver.report import DiffAllowance
    from skillgit.app.history.diff.rules import RuleChange
    from skillgit.app.recorded.check_scores import CheckChange
    from skillgit.app.recorded.step_evidence import AppliedEdit, TrajectoryPattern
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.edit import LeftOut
    from skillgit.domain.event import Event
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """One event in full.

    Attributes:
        edits: The edits that took effect; none where the evidence is not here.
        left_out: The edits that were chosen and not applied; likewise.
        checks: How single checks fare, and did before; none where items have one score only.
    """

    event: Event
    difference: DiffExcerpt
    edits: tuple[AppliedEdit, ...]
    left_out: tuple[LeftOut, ...]
    findings: tuple[TrajectoryPattern, ...]
    checks: tuple[CheckChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStory:
    """One event.

    Attributes:
        telling: The event in full; absent where a report has no room for it.
    """

    row: LogRow
    telling: Telling | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Events of one sort, oldest first."""

    told: tuple[EventStory, ...]
    left_out: int
    brief: int


def tell(context: Context, rows: Sequence[LogRow], room: DiffAllowance) -> Events:
    """Return the events in ``rows``, oldest first; of many only the newest, and the newest of these in full."""
    last_rows = rows[-LISTED:]
    newest = last_rows[-DETAILED:][::-1]
    with open_workspace(context) as workspace:
        # the seed is no change, and its text is told by the skill itself
        changes = [row.commit for row in newest if row.version != 0]
        path = workspace.index.skill_path(rows[0].run) if rows else ""
        patches = dict(zip(changes, store_diff.patches(workspace.repo, changes, path, PATCH), strict=True))
        full = {row.commit: _telling(workspace, row, patches.get(row.commit, b""), room) for row in newest}
    return Events(
        told=tuple(EventStory(row=row, telling=full.get(row.commit)) for row in last_rows),
        left_out=len(rows) - len(last_rows),
        brief=len(last_rows) - len(full),
    )


def _telling(workspace: Workspace, row: LogRow, patch: bytes, room: DiffAllowance) -> Telling:
    record = read_commit(workspace.repo, row.commit)
    evidence = StepEvidence(workspace.repo, record.evidence)
    # words are compared where there is room for them
    diffs = room.take(read(patch.decode(errors="replace")))
    return Telling(
        event=record.event,
        difference=replace(diffs, files=detailed(diffs.files)),
        edits=evidence.edits(),
        left_out=evidence.left_out(),
        findings=evidence.findings(),
        checks=changes_from_base(workspace, row),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleStories:
    """What happened to the rules of a run.

    Attributes:
        stories: The rules of the best version, in the order of its text.
        gone: The rules of the seed that it has no more.
        absent: Whether evidence behind some of them is not here, as in a clone.
    """

    stories: tuple[Story, ...]
    left_out: int
    gone: tuple[RuleChange, ...]
    absent: bool


def rule_stories(context: Context, seed: str, best: str) -> RuleStories:
    """Return the rules of the revision ``best``, and those that only ``seed`` has."""
    with open_workspace(context) as workspace:
        row = event_in(workspace, best)
        history = RuleHistory(workspace)
        texts = history.skill(row.commit, workspace.index.skill_path(row.run))
        rule_lines = [(path, rule.first) for path, text in texts.items() for rule in text.rules]
        teller = Stories(workspace, history, find_place(workspace, best, rule_lines[0][0])) if rule_lines else None
        stories = tuple(teller.at_line(path, line) for path, line in rule_lines[:RULES]) if teller else ()
        removals = () if seed == best else rules_diffed(workspace, history, seed, best).rows
    return RuleStories(
        stories=stories,
        left_out=max(0, len(rule_lines) - RULES),
        gone=tuple(row for row in removals if row.change == "removed"),
        absent=any(story.absent for story in stories),
    )
