"""A run with many versions and many items, each step of which solves a little more or is rejected."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from sample_run import RUN, as_json, candidate, clock_from, rows, seed_skill, started

from skillgit.domain.edit import Edit, Op
from skillgit.domain.evaluation import Evaluation, Scored, Split
from skillgit.store.event_writer import RunWriter

if TYPE_CHECKING:
    from skillgit.store.repo import Repo


def evaluation(solved: int, items: int) -> Evaluation:
    """Return the evaluation under which the first ``solved`` of ``items`` items are solved."""
    outcomes = {
        f"item-{number:04d}": Scored(1.0, 1.0) if number < solved else Scored(0.0, 0.5 * (number % 2))
        for number in range(items)
    }
    return Evaluation(split=Split.SELECTION, item_set="4be1", outcomes=outcomes, seed=42)


def write_long_run(repo: Repo, *, versions: int, items: int, rule: str = "Rule {}.", rejected_every: int = 2) -> None:
    """Write a run with so many versions after the seed; every so many of them follow a rejected candidate."""
    writer = RunWriter(repo, RUN, clock_from(count()))
    skill, current = seed_skill(), evaluation(1, items)
    first = started()
    begun = replace(first.event, evaluation=current.summary())
    writer.append(begun, skill, {**first.evidence, "selection.json": rows(current)})
    steps = count(1)
    for version in range(versions):
        step, best = next(steps), current.summary().hard
        if version % rejected_every == 0:
            refused = candidate(
                skill, (Edit(op=Op.APPEND, content=f"- Refused {step}. {rule.format(step)}"),), step=step, epoch=1,
                base=version, measured=current, current=current, best=best, title=f"refused {step}",
            )  # fmt: skip
            writer.append(refused.event, refused.skill, refused.evidence)
            step = next(steps)
        better = evaluation(2 + version * (items - 2) // versions + version % 2, items)
        made = candidate(
            skill, (Edit(op=Op.APPEND, content=f"- {rule.format(step)}", items=("t1",)),), step=step,
            epoch=1 + step // 40, base=version, measured=_more(current, better), current=current, best=best,
            title=f"more {step}", why="Some rollouts failed.",
        )  # fmt: skip
        writer.append(made.event, made.skill, {**made.evidence, "rollout.json": as_json([])})
        assert made.skill is not None
        skill, current = made.skill, _more(current, better)


def _more(current: Evaluation, better: Evaluation) -> Evaluation:
    """Return ``better``, or the current evaluation with one more solved item where it is none."""
    solved = sum(outcome.hard for outcome in better.scored.values())
    before = sum(outcome.hard for outcome in current.scored.values())
    return better if solved > before else evaluation(int(before) + 1, len(current.outcomes))
