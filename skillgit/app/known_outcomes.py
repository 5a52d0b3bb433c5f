"""Outcomes of a text, whatever commit holds it: what runs and notes tell of it under the conditions of a setup.

A text is known by the tree of its folder. So a version that was promoted, squashed or picked by hand into another
commit keeps its outcomes. They count if the setup and the content of the item are the same; the seed may be another
one, for it only chooses among draws of one distribution. Runs and notes that name no setup count by target, judge and
environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.conditions import Aspect, differences, of_event, of_setup
from skillgit.app.noted_outcomes import noted_outcomes
from skillgit.app.recorded_outcomes import event_outcomes
from skillgit.app.run_start import recorded_items, recorded_setup, started
from skillgit.domain.evaluation import Scored, item_set_digest
from skillgit.index import queries
from skillgit.plugin.environment import asks_judge
from skillgit.store import notes
from skillgit.store.skill_trees import skill_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.noted_outcomes import NotedOutcomes
    from skillgit.app.setup import Setup
    from skillgit.app.workspace import Workspace
    from skillgit.domain.evaluation import Split


class KnownOutcomes:
    """Finds outcomes that may stand for a measurement by ``setup`` on ``split``."""

    def __init__(self, workspace: Workspace, setup: Setup, split: Split) -> None:
        self._workspace = workspace
        self._setup = setup
        self._split = split
        self._items = {item.id: item.digest for item in setup.task.items[split]}
        self._target = setup.routes["target"].name
        task = setup.task
        # The form that was recorded before sources counted tells nothing of code that changes under one name.
        own = {task.environment.digest} if task.source is not None and not task.source.code else set()
        self._environments = {task.digest} | own

    @property
    def judge(self) -> str:
        """The model that scores; empty where none is asked."""
        return self._setup.routes["judge"].name if asks_judge(self._setup.task.environment) else ""

    def of(self, path: str, tree: str) -> dict[str, Scored]:
        """Return item to outcome of the skill ``path`` with the text ``tree``; events go before notes."""
        found: dict[str, Scored] = {}
        for outcomes in (*self._told(path, tree), *self._noted(path, tree)):
            found = {**outcomes, **found}
        return found

    def _told(self, path: str, tree: str) -> Iterator[dict[str, Scored]]:
        for run in queries.run_names(self._workspace.index):
            if self._workspace.index.skill_path(run) != path or not self._is_alike(run):
                continue
            items = self._common_items(run)
            for row in queries.log_rows(self._workspace.index, run):
                if skill_tree(self._workspace.repo, row.commit, path) == tree:
                    outcomes = event_outcomes(self._workspace, row, self._split)
                    yield {
                        item: outcome
                        for item, outcome in outcomes.items()
                        if item in items and isinstance(outcome, Scored)
                    }

    def _is_alike(self, run: str) -> bool:
        """Say whether ``run`` measured under the conditions of the setup; items are looked at one by one."""
        start = started(self._workspace, run)
        if start is None or start.environment not in self._environments:
            return False
        if recorded_setup(self._workspace, run) not in {"", self._setup.digest}:
            return False
        first = queries.row_of_version(self._workspace.index, run, 0)
        then = of_event(self._workspace, first, self._split) if first is not None else None
        if then is None:
            return False
        found = differences(then, of_setup(self._setup, self._split))
        return not any(one.matters and one.aspect is not Aspect.ITEMS for one in found)

    def _common_items(self, run: str) -> set[str]:
        """Return the items that ``run`` had with the same content; where its list is not here, all or none."""
        recorded = recorded_items(self._workspace, run, self._split)
        if recorded is None:
            start = started(self._workspace, run)
            return set(self._items) if start is not None and start.splits == self._setup.splits_digest else set()
        return {item for item, digest in self._items.items() if recorded.get(item) == digest}

    def _noted(self, path: str, tree: str) -> Iterator[dict[str, Scored]]:
        for commit, lines in notes.read_all(self._workspace.repo).items():
            told = [note for note in map(noted_outcomes, lines) if note is not None and self._counts(note)]
            if told and skill_tree(self._workspace.repo, commit, path) == tree:
                for note in told:
                    if path == (note.skill or self._only_skill(commit)):
                        yield dict(note.outcomes)

    def _counts(self, note: NotedOutcomes) -> bool:
        """Say whether ``note`` tells of items as they are here, under the same conditions."""
        if (note.split, note.target, note.judge) != (self._split.value, self._target, self.judge):
            return False
        if note.environment not in self._environments or note.setup not in {"", self._setup.digest}:
            return False
        if not note.outcomes.keys() <= self._items.keys():
            return False
        told = {item: self._items[item] for item in note.outcomes}
        return note.item_set in {item_set_digest(self._items), item_set_digest(told)}

    def _only_skill(self, commit: str) -> str:
        """Return the skill that a note on ``commit`` means if it names none: that of its run."""
        row = queries.row_of_commit(self._workspace.index, commit)
        return self._workspace.index.skill_path(row.run) if row is not None else ""
