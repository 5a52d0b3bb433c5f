"""Runs written into real repositories, from the stories of ``stories``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pygit2
from stories import ITEMS, Story

from skillgit.domain.event import CANDIDATES, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.protected_regions import with_slow_guidance
from skillgit.domain.skill import Skill
from skillgit.store import refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.history_reader import read_commit
from skillgit.store.tree import with_skill

if TYPE_CHECKING:
    from skillgit.store.repo import Repo

RUN = "demo-20261121-aaaa"
SEED = "---\nname: demo\ndescription: Answers questions.\n---\n\n# Demo\n\nBe brief.\n"
PLAN = {
    "config.json": json.dumps(
        {
            "env": {"name": "searchqa"},
            "evaluation": {"gate_metric": "hard", "gate_mixed_weight": 0.5},
            "train": {"num_epochs": 2, "batch_size": 2},
        }
    ).encode(),
    "splits.json": json.dumps({"train": [{"id": f"t{place}", "digest": "0"} for place in range(5)]}).encode(),
}


class Clock:
    """A clock that goes on by a minute with every look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def selection(hard: float) -> bytes:
    """Return a ``selection.json`` whose first items pass, so that the mean is ``hard``; one item failed to evaluate."""
    solved = round(hard * ITEMS)
    rows = [
        {"id": f"q{place}", "task_type": "unit", "hard": float(place < solved), "soft": float(place < solved) / 2}
        for place in range(ITEMS)
    ]
    return json.dumps([*rows, {"id": "q9", "task_type": "unit", "failed": "timeout"}]).encode()


def evidence(event) -> dict[str, bytes]:
    """Return the evidence of ``event`` as a trainer would write it."""
    if event.kind is EventKind.RUN_STARTED:
        return PLAN | {"selection.json": selection(event.evaluation.hard)}
    if event.kind is EventKind.MEASURED:
        return {"selection.json": selection(event.evaluation.hard)}
    if event.kind in CANDIDATES:
        return {"selection.json": selection(event.evaluation.hard), "rollout/trajectories/0.json": b"{}"}
    if event.kind is EventKind.SLOW_PROPOSED and event.evaluation is not None:
        return {"selection.json": selection(event.evaluation.hard)}
    return {}


def skill(number: int) -> Skill:
    """Return a skill whose text tells ``number``."""
    return Skill("demo", {"SKILL.md": f"{SEED}\nRule {number}.\n".encode()})


class Chronicle:
    """Writes the events of a story into a repository, one by one."""

    def __init__(self, repo: Repo, story: Story, *, with_evidence: bool = True) -> None:
        self.waiting = list(story.events)
        self.repo, self.clock = repo, Clock()
        self.writer = RunWriter(repo, story.events[0].run, self.clock)
        self.with_evidence = with_evidence
        self.records = []

    def go_on(self, count: int | None = None) -> Chronicle:
        """Write so many events, or all that are left."""
        for _ in range(len(self.waiting) if count is None else min(count, len(self.waiting))):
            event = self.waiting.pop(0)
            if event.kind is EventKind.EDITED:
                self.records.append(self._edit(event))
                continue
            proof = evidence(event) if self.with_evidence else {}
            self.records.append(self.writer.append(event, self._skill(event), proof))
        return self

    def _edit(self, event: Event):
        """Commit as a person does, behind the writer's back."""
        branch = refs.run_branch(event.run)
        tip = self.repo.commit(self.repo.tip(branch))
        changed = with_skill(self.repo, tip.tree, event.skill, skill(2000 + event.version))
        ada = pygit2.Signature(event.author, "ada@example.org", int(self.clock().timestamp()), 0)
        message = f"{event.title}\n\n{event.why}\n"
        commit = str(self.repo.raw.create_commit(branch, ada, ada, message, changed.id, [tip.id]))
        self.writer = RunWriter(self.repo, event.run, self.clock)
        return read_commit(self.repo, commit)

    def _skill(self, event) -> Skill | None:
        if event.kind is EventKind.SLOW_MERGED:
            text = with_slow_guidance(skill(event.step).document, "Prefer exact spans.")
            return Skill("demo", {"SKILL.md": text.encode()})
        if event.kind is EventKind.REVERTED:
            return skill(1000 + event.version)
        if event.kind is EventKind.RUN_STARTED:
            return skill(0)
        return skill(event.step) if event.kind in CANDIDATES else None
