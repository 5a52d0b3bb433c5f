"""What a run would cost, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from skillgit.calls.pricing import dollars
from skillgit.domain.evaluation import Split
from skillgit.domain.rewrite import UpdateMode
from skillgit.domain.skill import DOCUMENT
from skillgit.engine.batches import steps_per_epoch
from skillgit.engine.companions import delivered
from skillgit.engine.dialect import DIALECTS
from skillgit.engine.prompts import FILES, prompt
from skillgit.engine.rendering import CHARACTERS_PER_TOKEN
from skillgit.engine.settings import ControlMode, PairPolicy
from skillgit.plugin.backend import Usage
from skillgit.plugin.environment import asks_judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.engine.session import Task
    from skillgit.engine.settings import MethodSettings, OptimizerSettings
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
    steps = steps_per_epoch(len(task.items[Split.TRAIN]), settings.train.step_size) * settings.train.num_epochs
    rows = _rows(settings, task, skill, steps, item=_mean(_item_tokens(task)))
    priced = [_priced(role, stage, calls, used, prices.get(role)) for role, stage, calls, used in rows if calls]
    return Estimate(steps=steps, stages=tuple(priced))


def rollouts_row(items: Sequence[Item], skills: Sequence[Skill], price: Price | None) -> PlanRow:
    """Return what it costs to roll out ``items`` with each of ``skills``, with one target call for each rollout.

    Items that were rolled out before make it cheaper; further turns make it dearer.
    """
    asked = _mean([_tokens(str(dict(item.content))) for item in items])
    document = _mean([_tokens(skill.document) for skill in skills])
    return _priced("target", "evaluation", len(items) * len(skills), (asked + document, ANSWER_TOKENS), price)


def largest_prompts(settings: MethodSettings, task: Task, skill: Skill) -> dict[str, int]:
    """Return role to the tokens of its longest prompt, at four characters a token.

    It is that of the longest item, with the skill as long as it is at the start.
    """
    found: dict[str, int] = {}
    for role, _, calls, (tokens_in, _) in _rows(settings, task, skill, 1, item=max(_item_tokens(task), default=0)):
        found[role] = max(found.get(role, 0), tokens_in if calls else 0)
    return found | ({"judge": found["target"] + ANSWER_TOKENS} if asks_judge(task.environment) else {})


def _rows(
    settings: MethodSettings, task: Task, skill: Skill, steps: int, *, item: int
) -> Iterator[tuple[str, str, int, tuple[int, int]]]:
    """Yield role, stage, number of calls, and tokens in and out of one; ``item`` is the length of an item."""
    yield from _target_rows(settings, task, skill, steps, item=item)
    yield from _optimizer_rows(settings, task, skill, steps, item=item)


def _priced(role: str, stage: str, calls: int, used: tuple[int, int], price: Price | None) -> PlanRow:
    tokens_in, tokens_out = calls * used[0], calls * used[1]
    usd = dollars(Usage(tokens_in=tokens_in, tokens_out=tokens_out), price)
    return PlanRow(role=role, stage=stage, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, usd=usd)


def _slow_updates(settings: MethodSettings) -> int:
    wanted = settings.optimizer.use_slow_update or settings.optimizer.use_meta_skill
    return max(settings.train.num_epochs - 1, 0) if wanted else 0


def _reflections(settings: MethodSettings) -> int:
    return settings.train.num_epochs if settings.optimizer.use_meta_reflect else 0


def _probed(settings: MethodSettings) -> int:
    """Return how many items a step rolls out again with a probe."""
    gradient = settings.gradient
    return gradient.deep_reflect_failures + gradient.deep_reflect_successes if gradient.use_deep_reflect else 0


def _target_rows(
    settings: MethodSettings, task: Task, skill: Skill, steps: int, *, item: int
) -> Iterator[tuple[str, str, int, tuple[int, int]]]:
    train, selection, test = (len(task.items[split]) for split in (Split.TRAIN, Split.SELECTION, Split.TEST))
    slow = _slow_updates(settings)
    used = (item + _tokens(delivered(skill, settings.target).document), ANSWER_TOKENS)
    yield "target", "baseline", selection, used
    yield "target", "rollout", train * settings.train.num_epochs, used
    yield "target", "selection", selection * steps, used
    sample = min(settings.optimizer.slow_update_samples, train)
    gated = selection if settings.optimizer.use_slow_update else 0
    # Changed pairs may be topped up until all train items have been rolled out with both versions.
    changed = settings.optimizer.longitudinal_pair_policy is PairPolicy.CHANGED
    yield "target", "slow update", slow * (2 * (train if changed else sample) + gated), used
    yield "target", "probe", steps * _probed(settings), used
    yield "target", "meta reflect", selection * _reflections(settings), used
    yield "target", "placebo", selection * settings.train.placebo, used
    yield "target", "test", test * 3 if settings.evaluation.eval_test else 0, used


def _other_files(settings: OptimizerSettings, skill: Skill) -> int:
    """Return the tokens of what the optimizer reads of other files than ``SKILL.md``, and of how to edit them."""
    files = settings.trainable
    lengths = (
        min(_tokens(text), settings.max_file_tokens)
        for path, text in skill.text_files()
        if path != DOCUMENT and (path.endswith(".md") or files.covers(path))
    )
    return sum(lengths) + (_tokens(prompt(FILES)) if files.beyond_document else 0)


def _optimizer_rows(
    settings: MethodSettings, task: Task, skill: Skill, steps: int, *, item: int
) -> Iterator[tuple[str, str, int, tuple[int, int]]]:
    gradient, optimizer = settings.gradient, settings.optimizer
    words = DIALECTS[optimizer.skill_update_mode]
    whole = optimizer.skill_update_mode is UpdateMode.FULL
    items = min(settings.train.step_size, len(task.items[Split.TRAIN]))
    # Failures and successes of a batch have minibatches of their own, so that two may be short.
    analysts = ceil(items / gradient.minibatch_size) + ceil(items / settings.train.batch_size)
    shown = min(item + ANSWER_TOKENS, gradient.max_trajectory_tokens)
    document = _tokens(skill.document) + _other_files(optimizer, skill)
    reply = REPLY_TOKENS + (document if whole else 0)
    analyst = (_tokens(prompt(words.failures)) + document + gradient.minibatch_size * shown, reply)
    yield "optimizer", "analyst", steps * analysts, analyst
    at_once = analysts if optimizer.merges_in_one_call else gradient.merge_batch_size
    merges = 1 if optimizer.merges_in_one_call else ceil(analysts / gradient.merge_batch_size) + 2
    merge = (_tokens(prompt(words.merge)) + document + at_once * reply, reply)
    yield "optimizer", "merge", steps * merges, merge
    chosen = (_tokens(prompt("rank")) + document + REPLY_TOKENS, REPLY_TOKENS)
    yield "optimizer", "budget", steps if optimizer.control is ControlMode.AUTONOMOUS else 0, chosen
    ranked = optimizer.control is not ControlMode.NONE and not optimizer.merges_in_one_call
    yield "optimizer", "rank", steps if ranked else 0, chosen
    rewritten = optimizer.skill_update_mode is UpdateMode.SUGGESTIONS
    rewrite = (_tokens(prompt("rewrite")) + document + REPLY_TOKENS, document + REPLY_TOKENS)
    yield "optimizer", "rewrite", steps if rewritten else 0, rewrite
    pairs = 2 * min(optimizer.slow_update_samples, len(task.items[Split.TRAIN])) * shown
    slow = (_tokens(prompt("slow_update")) + 2 * document + pairs, REPLY_TOKENS)
    asked = optimizer.use_slow_update + optimizer.use_meta_skill
    yield "optimizer", "slow update", _slow_updates(settings) * asked, slow
    yield from _rows_of_features(settings, document, shown, steps)


def _rows_of_features(
    settings: MethodSettings, document: int, shown: int, steps: int
) -> Iterator[tuple[str, str, int, tuple[int, int]]]:
    """Yield the optimizer's calls that are made only where a feature is switched on."""
    gradient, optimizer = settings.gradient, settings.optimizer
    seen = (_tokens(prompt("probe")) + document + _probed(settings) * shown, REPLY_TOKENS)
    yield "optimizer", "probe", 2 * steps if _probed(settings) else 0, seen
    record = (_tokens(prompt("meta_reflect")) + document + 2 * gradient.max_history_tokens, REPLY_TOKENS)
    yield "optimizer", "meta reflect", _reflections(settings), record
    reminded = optimizer.use_skill_aware_reflection and optimizer.skill_aware_consolidate_threshold > 0
    yield "optimizer", "appendix", steps if reminded else 0, (2 * document, REPLY_TOKENS)


def _item_tokens(task: Task) -> list[int]:
    return [_tokens(str(dict(item.content))) for split in Split for item in task.items[split]]


def _mean(numbers: Sequence[int]) -> int:
    return ceil(sum(numbers) / max(len(numbers), 1))


def _tokens(text: str) -> int:
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


def least_calls(settings: MethodSettings, task: Task) -> int:
    """Return the calls that the baseline and the cheapest first step need."""
    batch = min(settings.train.step_size, len(task.items[Split.TRAIN]))
    return len(task.items[Split.SELECTION]) + batch + 1
