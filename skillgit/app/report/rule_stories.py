"""The rules of the best version, each with its story, and the rules of the seed that it has no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.blame import find_place
from skillgit.app.diff.rules import rules_diffed
from skillgit.app.lineage import RuleHistory
from skillgit.app.report.limits import RULES
from skillgit.app.revision import event_in
from skillgit.app.why import Stories
from skillgit.app.workspace import open_workspace

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.diff.rules import RuleChange
    from skillgit.app.why import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleStories:
    """What became of the rules of a run.

    Attributes:
        stories: The rules of the best version, in the order of its text.
        left_out: How many further rules it has.
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
        places = [(path, rule.first) for path, text in texts.items() for rule in text.rules]
        told = Stories(workspace, history, find_place(workspace, best, places[0][0])) if places else None
        stories = tuple(told.at_line(path, line) for path, line in places[:RULES]) if told else ()
        gone = () if seed == best else rules_diffed(workspace, history, seed, best).rows
    return RuleStories(
        stories=stories,
        left_out=max(0, len(places) - RULES),
        gone=tuple(row for row in gone if row.change == "removed"),
        absent=any(story.absent for story in stories),
    )
