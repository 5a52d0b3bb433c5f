"""What a run would cost, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.engine.batches import steps_per_epoch
from skillgit.engine.prompts import prompt
from skillgit.engine.rendering import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.domain.skill import Skill
    from skillgit.engine.session import Task
    from skillgit.engine.settings import MethodSettings
    from skillgit.plugin.backend import Price

ANSWER_TOKENS = 100
"""Tokens that a target's reply is taken to have."""
REPLY_TOKENS = 400
"""Tokens that an optimizer's reply is taken to have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """What one stage of a run costs at most.

    Attributes:
        role: ``target`` or ``optimizer``.
        stage: The stage.
        calls: Model calls.
        tokens_in: Prompt tokens.
        tokens_out: Reply tokens.
        usd: US dollars; None if the model's price is not known.
    """

    role: str
    stage: str
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Steps and stages of a run that has not started.

    Attributes:
        steps: Steps of the whole run.
        stages: One row per role and stage.
    """

    steps: int
    stages: tuple[PlanRow, ...]

    @property
    def calls(self) -> int:
        """All calls."""
        return sum(row.calls for row in self.stages)

    @property
    def tokens(self) -> int:
        """All tokens, in and out."""
        return sum(row.tokens_in + row.tokens_out for row in self.stages)

    @property
    def usd(self) -> float | None:
        """The price of everything; None if a price is not known."""
        prices = [row.usd for row in self.stages]
        return None if None in prices else sum(price for price in prices if price is not None)


def estimate(settings: MethodSettings, task: Task, skill: Skill, prices: Mapping[str, Price | None]) -> Estimate:
    """Return the most that a run can cost, with one target call for each rollout.

    Items that were rolled out before make it cheaper; retries make it dearer. Tokens are estimated from the lengths of
    items, skill and prompts.
    """
    steps = steps_per_epoch(len(task.items[Split.TRAIN]), settings.train.batch_size) * settings.train.num_epochs
    rows = [*_target_rows(settings, task, skill, steps), *_optimizer_rows(settings, task, skill, steps)]
    priced = [_priced(role, stage, calls, used, prices.get(role)) for role, stage, calls, used in rows if calls]
    return Estimate(steps=steps, stages=tuple(priced))


def _priced(role: str, stage: str, calls: int, used: tuple[int, int], price: Price | None) -> PlanRow:
    tokens_in, tokens_out = calls * used[0], calls * used[1]
    usd = None if price is None else (tokens_in * price.usd_in + tokens_out * price.usd_out) / 1e6
    return PlanRow(role=role, stage=stage, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, usd=usd)


def _slow_updates(settings: MethodSettings) -> int:
    wanted = settings.optimizer.use_slow_update or settings.optimizer.use_meta_skill
    return max(settings.train.num_epochs - 1, 0) if wanted else 0


def _target_rows(
    settings: MethodSettings, task: Task, skill: Skill, steps: int
) -> Iterator[tuple[str, str, int, tuple[int, int]]]:
    train, selection, test = (len(task.items[split]) for split in (Split.TRAIN, Split.SELECTION, Split.TEST))
    slow = _slow_updates(settings)
    used = (_item_tokens(task) + _tokens(skill.document), ANSWER_TOKENS)
    yield "target", "baseline", selection, used
    yield "target", "rollout", train * settings.train.num_epochs, used
    yield "target", "selection", selection * steps, used
    sample = min(settings.optimizer.slow_update_samples, train)
    gated = selection if settings.optimizer.use_slow_update else 0
    yield "target", "slow update", slow * (2 * sample + gated), used
    yield "target", "test", test * 3 if settings.evaluation.eval_test else 0, used


def _optimizer_rows(
    settings: MethodSettings, task: Task, skill: Skill, steps: int
) -> Iterator[tuple[str, str, int, tuple[int, int]]]:
    gradient, optimizer = settings.gradient, settings.optimizer
    batch = min(settings.train.batch_size, len(task.items[Split.TRAIN]))
    analysts = ceil(batch / gradient.minibatch_size) + 1
    shown = min(_item_tokens(task) + ANSWER_TOKENS, gradient.max_trajectory_tokens)
    document = _tokens(skill.document)
    analyst = (_tokens(prompt("analyse_failures")) + document + gradient.minibatch_size * shown, REPLY_TOKENS)
    yield "optimizer", "analyst", steps * analysts, analyst
    merge = (_tokens(prompt("merge")) + document + gradient.merge_batch_size * REPLY_TOKENS, REPLY_TOKENS)
    yield "optimizer", "merge", steps * (ceil(analysts / gradient.merge_batch_size) + 2), merge
    yield "optimizer", "rank", steps, (_tokens(prompt("rank")) + document + REPLY_TOKENS, REPLY_TOKENS)
    pairs = 2 * min(optimizer.slow_update_samples, len(task.items[Split.TRAIN])) * shown
    slow = (_tokens(prompt("slow_update")) + 2 * document + pairs, REPLY_TOKENS)
    asked = optimizer.use_slow_update + optimizer.use_meta_skill
    yield "optimizer", "slow update", _slow_updates(settings) * asked, slow


def _item_tokens(task: Task) -> int:
    items = [item for split in Split for item in task.items[split]]
    return ceil(sum(_tokens(str(dict(item.content))) for item in items) / max(len(items), 1))


def _tokens(text: str) -> int:
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


def least_calls(settings: MethodSettings, task: Task) -> int:
    """Return the calls that the baseline and the cheapest first step need."""
    batch = min(settings.train.batch_size, len(task.items[Split.TRAIN]))
    return len(task.items[Split.SELECTION]) + batch + 1
