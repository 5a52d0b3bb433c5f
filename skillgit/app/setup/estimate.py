"""What a training asks, stage by stage: bounds of its calls, provided that none fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from skillgit.app.setup.planner import ANSWER_TOKENS, REPLY_TOKENS, RUBRIC_TOKENS, Asks, Planner, tokens_of
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.evaluation import Split
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.engine.method_settings import ControlMode, MethodSettings, PairPolicy
from skillgit.engine.prompt_sections import FILES, prompt
from skillgit.engine.replies import DIALECTS
from skillgit.engine.rollout import delivered
from skillgit.engine.search import Task, steps_per_epoch
from skillgit.engine.step import MOST_PARTS
from skillgit.engine.strategy import Strategy
from skillgit.plugin.environment import asks_judge
from skillgit.strategies.racing import TRIED
from skillgit.strategies.refine import ATTEMPTS, DRAFTS, LOOKED_FAILING, LOOKED_SOLVED, READ

_PLANNED = frozenset({"skillopt", "racing", "pareto", "refine", "compose"})
"""The strategies whose calls are known here."""
_TRY_EDITS = frozenset({"racing", "pareto", "refine"})
_UNITE = frozenset({"racing", "pareto"})
_TESTED = 3
"""Versions that are measured on the test split: the first, the best and the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """What is left of a training."""

    steps: int
    slow: int  # slow updates
    reflections: int  # on epochs

    @classmethod
    def of_all(cls, settings: MethodSettings, task: Task) -> Remainder:
        optimizer, epochs = settings.optimizer, settings.train.num_epochs
        has_slow = optimizer.use_slow_update or optimizer.use_meta_skill
        slow, reflections = max(epochs - 1, 0) if has_slow else 0, epochs if optimizer.use_meta_reflect else 0
        return cls(steps=steps_of(settings, task), slow=slow, reflections=reflections)

    @classmethod
    def after(cls, settings: MethodSettings, task: Task, state: RunState) -> Remainder:
        """Return what is left of a run that has come to ``state``."""
        total = cls.of_all(settings, task)
        merging = state.pending_merge.epoch if state.pending_merge is not None else 0
        # the first epoch has no slow update
        return cls(
            steps=max(total.steps - state.step, 0),
            slow=max(total.slow - max(max(state.slow_epoch, merging) - 1, 0), 0),
            reflections=max(total.reflections - state.meta_epoch, 0),
        )


def plan_training(planner: Planner, skill: Skill) -> None:
    """Add everything that a training which starts with ``skill`` may ask."""
    session = planner.session
    planner.preflight(optimizer=True)
    planner.roll_out("baseline", [(skill, session.task.items[Split.SELECTION], 0)])
    _plan_stages(planner, skill, Remainder.of_all(session.settings, session.task))


def plan_rest(planner: Planner, skill: Skill, state: RunState) -> None:
    """Add everything that a run may ask which has come to ``state``, where ``skill`` is its current version."""
    session = planner.session
    if state.known_evaluation(state.version) is None:
        planner.roll_out("measurement", [(skill, session.task.items[Split.SELECTION], 0)])
    if state.outcome is None:
        _plan_stages(planner, skill, Remainder.after(session.settings, session.task, state))


def largest_prompts(settings: MethodSettings, task: Task, skill: Skill) -> dict[str, int]:
    """Return role to the tokens of its longest prompt, that of the longest item with the first skill."""
    longest = max(_lengths(task), default=0)
    target = longest + tokens_of(delivered(skill, settings.target).document)
    stages = _optimizer_stages(settings, task, skill, Remainder.of_all(settings, task), item=longest)
    optimizer = max(asks.prompt for asks in stages if asks.calls)
    judge = {"judge": target + ANSWER_TOKENS + RUBRIC_TOKENS} if asks_judge(task.environment) else {}
    return {"target": target, "optimizer": optimizer} | judge


def least_calls(strategy: Strategy, settings: MethodSettings, task: Task) -> int:
    """Return the calls that the baseline and the cheapest first step need; a first round is computed as a whole."""
    steps = min(strategy.width(settings), steps_per_epoch(len(task.items[Split.TRAIN]), settings.train.step_size))
    batch = min(steps * settings.train.step_size, len(task.items[Split.TRAIN]))
    return len(task.items[Split.SELECTION]) + batch + steps


def steps_of(settings: MethodSettings, task: Task) -> int:
    return steps_per_epoch(len(task.items[Split.TRAIN]), settings.train.step_size) * settings.train.num_epochs


def strategies_of(settings: MethodSettings) -> tuple[str, ...]:
    """Return the strategies that a run may go through, by name."""
    train = settings.train
    return train.strategies if train.strategy == "compose" else (train.strategy,)


def strategy_notes(settings: MethodSettings) -> tuple[str, ...]:
    """Return what a plan cannot say of the strategies: what those ask that are not skillgit's own."""
    unplanned = [name for name in strategies_of(settings) if name not in _PLANNED]
    return tuple(f"what the strategy {name} asks of its own is not known and not counted" for name in unplanned)


def _lengths(task: Task) -> list[int]:
    return [tokens_of(str(dict(item.content))) for split in Split for item in task.items[split]]


def _probed(settings: MethodSettings) -> int:
    """Return how many items a step rolls out again with a probe."""
    gradient = settings.gradient
    return gradient.deep_reflect_failures + gradient.deep_reflect_successes if gradient.use_deep_reflect else 0


def _rounds(steps: int, per_epoch: int, width: int) -> int:
    """Return how many rounds of ``width`` steps there are in ``steps`` steps; a round ends with its epoch."""
    epochs, rest = divmod(steps, max(per_epoch, 1))
    return epochs * ceil(per_epoch / width) + ceil(rest / width)


def _plan_stages(planner: Planner, skill: Skill, remainder: Remainder) -> None:
    """Add what is left after the baseline: the rollouts, of whose texts only the lengths can be guessed, and asks."""
    session = planner.session
    settings, items = session.settings, session.task.items
    gradient, optimizer, strategies = settings.gradient, settings.optimizer, strategies_of(settings)
    steps, slow, reflections = remainder.steps, remainder.slow, remainder.reflections
    train, selection = items[Split.TRAIN], items[Split.SELECTION]
    width, per_epoch = planner.setup.strategy.width(settings), session.per_epoch
    epochs, rest = divmod(steps, max(per_epoch, 1))
    waits = _rounds(steps, per_epoch, width)

    def measure(stage: str, times: int, rounds: int | None = None) -> None:
        planner.may_roll_out(stage, skill, selection, times, rounds=times if rounds is None else rounds)

    def sample(stage: str, size: int, times: int, rounds: int, *, certain: bool = True) -> None:
        planner.may_roll_out(stage, skill, planner.dearest(train, size), times, rounds=rounds, certain=certain)

    # which items the rest of an epoch has is not known
    to_come = [(train, epochs), (planner.dearest(train, rest * settings.train.step_size), 1)]
    rollouts = [(group, gradient.samples * count) for group, count in to_come]
    planner.may_roll_out_each("rollout", skill, rollouts, rounds=waits)
    # what is tried before a candidate is measured: itself, in a round on all items of it, and its edits
    screenings = 1 + (width > 1) if settings.gate.screening else 0
    screening_groups = [(group, screenings * count) for group, count in to_come]
    planner.may_roll_out_each("screening", skill, screening_groups, rounds=2 * waits)
    trials = optimizer.learning_rate * steps if _TRY_EDITS.intersection(strategies) else 0
    size, rounds = TRIED, waits
    if "refine" in strategies:
        size, rounds = LOOKED_FAILING + LOOKED_SOLVED, 2 * ATTEMPTS * steps
        trials += DRAFTS * ATTEMPTS * steps
    # how many edits a step has only a fixed budget of edits limits
    is_limited = optimizer.control is ControlMode.FIXED and optimizer.budget_unit == "edits"
    sample("trial", size, trials, rounds, certain=is_limited)
    measure("selection", steps, 2 * waits if waits < steps else steps)
    salvages = optimizer.salvage and optimizer.skill_update_mode.proposals is ProposalKind.EDITS
    parts = MOST_PARTS * steps if salvages else 0
    measure("salvage", parts)
    # Changed pairs may be topped up until all train items have been rolled out with both versions.
    only_changes = optimizer.longitudinal_pair_policy is PairPolicy.CHANGED
    sample("slow update", len(train) if only_changes else optimizer.slow_update_samples, 2 * slow, slow)
    guidance = slow if optimizer.use_slow_update else 0
    measure("guidance", guidance)
    sample("probe", _probed(settings), steps, steps)
    measure("meta reflect", reflections)
    placebo = settings.train.placebo
    measure("placebo", placebo)
    # Guidance and reflections have gates of their own, which do not depend on those of the steps.
    evaluations = reflections + (guidance if optimizer.slow_update_gate_with_selection else 0)
    evaluations += steps + parts + placebo if settings.evaluation.use_gate else 0
    repeats = settings.gate.repeats
    measure("repeats", 2 * repeats * evaluations, evaluations if repeats else 0)
    planner.may_roll_out("test", skill, items[Split.TEST], _TESTED if settings.evaluation.eval_test else 0)
    lengths = _lengths(session.task)
    mean = ceil(sum(lengths) / max(len(lengths), 1))
    for asks in _optimizer_stages(settings, session.task, skill, remainder, item=mean):
        planner.ask(asks)


def _optimizer_stages(
    settings: MethodSettings, task: Task, skill: Skill, remainder: Remainder, *, item: int
) -> Iterator[Asks]:
    """Yield what the optimizer is asked in what is left of a run; ``item`` is the length of an item in tokens."""
    gradient, optimizer, steps = settings.gradient, settings.optimizer, remainder.steps
    words, width, refines = (
        DIALECTS[optimizer.skill_update_mode],
        gradient.analyst_workers,
        "refine" in strategies_of(settings),
    )
    # it reads other files than the document too, and how to edit them
    files = optimizer.trainable
    document = tokens_of(skill.document) + (tokens_of(prompt(FILES)) if files.beyond_document else 0)
    for path, text in skill.text_files():
        if path != DOCUMENT and (path.endswith(".md") or files.covers(path)):
            document += min(tokens_of(text), optimizer.max_file_tokens)
    reply = REPLY_TOKENS + (document if optimizer.skill_update_mode.proposals is ProposalKind.DOCUMENTS else 0)
    trajectory = min(item + ANSWER_TOKENS, gradient.max_trajectory_tokens)

    def asks(stage: str, calls: int, more: int, *, to: str = "", out: int = REPLY_TOKENS, in_a_row: int = -1) -> Asks:
        """Return ``calls`` with the prompt ``to``, the document and ``more`` tokens, each after the one before."""
        length = (tokens_of(prompt(to)) if to else 0) + document + more
        return Asks(stage=stage, calls=calls, prompt=length, reply=out, in_a_row=calls if in_a_row < 0 else in_a_row)

    analysts = [most_analysts(batches, settings) for batches in _batches_of_steps(settings, task)]
    read = gradient.minibatch_size * trajectory + gradient.contrast * min(
        trajectory, gradient.max_trajectory_tokens // 2
    )
    calls = _sum_of_last(analysts, steps)
    yield replace(asks("analyst", calls, read, to=words.failures, out=reply, in_a_row=steps), width=width)
    if refines:
        # the whole text of a step from several minibatches of failures, and each draft once more with its look
        read += (READ * gradient.minibatch_size + LOOKED_FAILING + LOOKED_SOLVED) * trajectory
        calls = (1 + DRAFTS * (ATTEMPTS - 1)) * steps
        draft = asks("draft", calls, read, to=words.failures, out=reply + document, in_a_row=2 * steps)
        yield replace(draft, width=width)
    drafts = [count + (_probed(settings) > 0) for count in analysts]
    in_one_call = optimizer.merges_in_one_call
    merges = [1 if in_one_call else most_merges(count, gradient.merge_batch_size) for count in drafts]
    merge = asks("merge", 0, (max(drafts) if in_one_call else gradient.merge_batch_size) * reply, to=words.merge)
    # merges that join the drafts of a step, or the steps of a round
    joins = steps if refines else 0
    if not refines and _UNITE.intersection(strategies_of(settings)):
        per_epoch = steps_per_epoch(len(task.items[Split.TRAIN]), settings.train.step_size)
        joins = _rounds(steps, per_epoch, settings.train.round_steps)
    length = merge.prompt
    if joins:
        reply += document
        length = max(length, tokens_of(prompt("merge_rewrites")) + document + DRAFTS * reply)
    calls = _sum_of_last(merges, steps) + joins
    in_a_row = min(calls, 2 * steps)
    yield replace(merge, calls=calls, prompt=length, reply=reply, in_a_row=in_a_row, width=width)
    control, proposals = optimizer.control, optimizer.skill_update_mode.proposals
    yield asks("budget", steps if control is ControlMode.AUTONOMOUS else 0, REPLY_TOKENS, to="rank")
    ranks = control is not ControlMode.NONE and not in_one_call
    yield asks("rank", steps if ranks else 0, REPLY_TOKENS, to="rank")
    rewrites = steps if proposals is ProposalKind.SUGGESTIONS else 0
    yield asks("rewrite", rewrites, REPLY_TOKENS, to="rewrite", out=document + REPLY_TOKENS)
    # at the ends of epochs
    pairs = 2 * min(optimizer.slow_update_samples, len(task.items[Split.TRAIN])) * trajectory
    calls = remainder.slow * (optimizer.use_slow_update + optimizer.use_meta_skill)
    yield asks("slow update", calls, document + pairs, to="slow_update")
    yield asks("meta reflect", remainder.reflections, 2 * gradient.max_history_tokens, to="meta_reflect")
    # where a feature is switched on
    probes = _probed(settings)
    yield asks("probe", 2 * steps if probes else 0, probes * trajectory, to="probe")
    has_reminders = optimizer.use_skill_aware_reflection and optimizer.skill_aware_consolidate_threshold > 0
    yield asks("appendix", steps if has_reminders else 0, document)


def _sum_of_last(counts: Sequence[int], steps: int) -> int:
    """Return how many the last ``steps`` of a run have, where ``counts`` are those of the steps of an epoch."""
    epochs, rest = divmod(steps, max(len(counts), 1))
    return epochs * sum(counts) + sum(counts[len(counts) - rest :] if rest else ())


def _batches_of_steps(settings: MethodSettings, task: Task) -> Iterator[list[int]]:
    remainder, size = len(task.items[Split.TRAIN]), settings.train.batch_size
    while remainder > 0:
        batch = min(remainder, settings.train.step_size)
        yield [min(size, batch - start) for start in range(0, batch, size)]
        remainder -= batch


def most_analysts(batches: Sequence[int], settings: MethodSettings) -> int:
    """Return how many minibatches batches of these sizes are cut into at most, however their items fare."""
    size, failures_only = settings.gradient.minibatch_size, settings.gradient.failure_only

    def most(items: int) -> int:
        # Failures and successes of a batch have minibatches of their own, so that two may be short.
        split = 0 if failures_only or items < 2 else (items - 2) // size + 2  # noqa: PLR2004 - one of each
        return max(ceil(items / size), split)

    return sum(map(most, batches))


def most_merges(drafts: int, size: int) -> int:
    """Return how many merges so many drafts take at most, failures and successes apart and then together."""
    alone = [_merges(count, size) for count in range(drafts + 1)]
    for count in range(1, drafts + 1):  # drafts without proposals are left out
        alone[count] = max(alone[count], alone[count - 1])
    apart = (alone[count] + alone[drafts - count] + 1 for count in range(1, drafts))
    return max(alone[drafts], *apart, 0)


def _merges(drafts: int, size: int) -> int:
    """Return how many merges it takes to make one of so many drafts, level by level."""
    merges = 0
    while drafts > 1:
        merges += drafts // size + (drafts % size > 1)
        drafts = ceil(drafts / size)
    return merges
