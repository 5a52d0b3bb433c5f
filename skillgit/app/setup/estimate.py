"""What a training asks, stage by stage: bounds of its calls, provided that none fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from skillgit.app.setup.planner import ANSWER_TOKENS, REPLY_TOKENS, RUBRIC_TOKENS, Asks, Planner, tokens_of
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.evaluation import Split
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item
from skillgit.engine.method_settings import ControlMode, MethodSettings, OptimizerSettings, PairPolicy
from skillgit.engine.minibatches import steps_per_epoch
from skillgit.engine.prompt_sections import FILES, prompt
from skillgit.engine.reply_schemas import DIALECTS
from skillgit.engine.rollout import delivered
from skillgit.engine.salvage import MOST_PARTS
from skillgit.engine.session import Task
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
        return cls(steps=steps_of(settings, task), slow=_slow_updates(settings), reflections=_reflections(settings))

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


def _plan_stages(planner: Planner, skill: Skill, remainder: Remainder) -> None:
    session = planner.session
    _target_stages(planner, skill, remainder)
    lengths = [tokens_of(str(dict(item.content))) for split in Split for item in session.task.items[split]]
    mean = ceil(sum(lengths) / max(len(lengths), 1))
    for asks in _optimizer_stages(session.settings, session.task, skill, remainder, item=mean):
        planner.ask(asks)


def largest_prompts(settings: MethodSettings, task: Task, skill: Skill) -> dict[str, int]:
    """Return role to the tokens of its longest prompt, that of the longest item with the first skill."""
    lengths = [tokens_of(str(dict(item.content))) for split in Split for item in task.items[split]]
    longest = max(lengths, default=0)
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


def _target_stages(planner: Planner, skill: Skill, remainder: Remainder) -> None:
    """Add the rollouts after the baseline; of their texts only the lengths can be guessed."""
    settings, items = planner.session.settings, planner.session.task.items
    steps, slow = remainder.steps, remainder.slow
    optimizer, train, selection = settings.optimizer, items[Split.TRAIN], items[Split.SELECTION]
    width, per_epoch = planner.session.strategy.width(settings), planner.session.per_epoch
    epochs, rest = divmod(steps, max(per_epoch, 1))
    waits = _rounds(steps, per_epoch, width)
    # which items the rest of an epoch has is not known
    to_come = [(train, epochs), (planner.dearest(train, rest * settings.train.step_size), 1)]
    samples = settings.gradient.samples
    planner.may_roll_out_each("rollout", skill, [(items, samples * count) for items, count in to_come], rounds=waits)
    _add_screening(planner, skill, to_come, remainder, waits, in_rounds=width > 1)
    planner.may_roll_out("selection", skill, selection, steps, rounds=2 * waits if waits < steps else steps)
    parts = (
        MOST_PARTS * steps if optimizer.salvage and optimizer.skill_update_mode.proposals is ProposalKind.EDITS else 0
    )
    planner.may_roll_out("salvage", skill, selection, parts, rounds=parts)
    # Changed pairs may be topped up until all train items have been rolled out with both versions.
    only_changes = optimizer.longitudinal_pair_policy is PairPolicy.CHANGED
    sample = planner.dearest(train, len(train) if only_changes else optimizer.slow_update_samples)
    planner.may_roll_out("slow update", skill, sample, 2 * slow, rounds=slow)
    guidance = slow if optimizer.use_slow_update else 0
    planner.may_roll_out("guidance", skill, selection, guidance, rounds=guidance)
    planner.may_roll_out("probe", skill, planner.dearest(train, _probed(settings)), steps, rounds=steps)
    reflections = remainder.reflections
    planner.may_roll_out("meta reflect", skill, selection, reflections, rounds=reflections)
    placebo = settings.train.placebo
    planner.may_roll_out("placebo", skill, selection, placebo, rounds=placebo)
    # Guidance and reflections have gates of their own, whatever the steps have.
    evaluations = reflections + (guidance if optimizer.slow_update_gate_with_selection else 0)
    evaluations += steps + parts + placebo if settings.evaluation.use_gate else 0
    repeats = settings.gate.repeats
    planner.may_roll_out("repeats", skill, selection, 2 * repeats * evaluations, rounds=evaluations if repeats else 0)
    tests = _TESTED if settings.evaluation.eval_test else 0
    planner.may_roll_out("test", skill, items[Split.TEST], tests)


def strategies_of(settings: MethodSettings) -> tuple[str, ...]:
    """Return the strategies that a run may go through, by name."""
    train = settings.train
    return train.strategies if train.strategy == "compose" else (train.strategy,)


def strategy_notes(settings: MethodSettings) -> tuple[str, ...]:
    """Return what a plan cannot say of the strategies: what those ask that are not skillgit's own."""
    unplanned = [name for name in strategies_of(settings) if name not in _PLANNED]
    return tuple(f"what the strategy {name} asks of its own is not known and not counted" for name in unplanned)


def _add_screening(
    planner: Planner,
    skill: Skill,
    to_come: Sequence[tuple[Sequence[Item], int]],
    remainder: Remainder,
    waits: int,
    *,
    in_rounds: bool,
) -> None:
    """Add what is tried before a candidate is measured: its edits, and itself; that of a round on all items of it."""
    settings, train = planner.session.settings, planner.session.task.items[Split.TRAIN]
    times = 1 + in_rounds if settings.gate.screening else 0
    planner.may_roll_out_each(
        "screening", skill, [(items, times * count) for items, count in to_come], rounds=2 * waits
    )
    optimizer, steps = settings.optimizer, remainder.steps
    tries = _TRY_EDITS.intersection(strategies_of(settings))
    # how many edits a step has only a fixed budget of edits limits
    is_limited = optimizer.control is ControlMode.FIXED and optimizer.budget_unit == "edits"
    times = optimizer.learning_rate * steps if tries else 0
    tried_items, rounds = TRIED, waits
    if _refines(settings):
        tried_items, rounds = LOOKED_FAILING + LOOKED_SOLVED, 2 * ATTEMPTS * steps
        times += DRAFTS * ATTEMPTS * steps
    planner.may_roll_out("trial", skill, planner.dearest(train, tried_items), times, rounds=rounds, certain=is_limited)


def _last_merges(settings: MethodSettings, task: Task, steps: int) -> int:
    """Return how many merges join the drafts of a step, or the steps of a round, in ``steps`` more steps."""
    if _refines(settings):
        return steps
    if not _UNITE.intersection(strategies_of(settings)):
        return 0
    per_epoch, width = (
        steps_per_epoch(len(task.items[Split.TRAIN]), settings.train.step_size),
        settings.train.round_steps,
    )
    return _rounds(steps, per_epoch, width)


def _rounds(steps: int, per_epoch: int, width: int) -> int:
    """Return how many rounds of ``width`` steps there are in ``steps`` steps; a round ends with its epoch."""
    epochs, rest = divmod(steps, max(per_epoch, 1))
    return epochs * ceil(per_epoch / width) + ceil(rest / width)


def _refines(settings: MethodSettings) -> bool:
    return "refine" in strategies_of(settings)


def _slow_updates(settings: MethodSettings) -> int:
    is_on = settings.optimizer.use_slow_update or settings.optimizer.use_meta_skill
    return max(settings.train.num_epochs - 1, 0) if is_on else 0


def _reflections(settings: MethodSettings) -> int:
    return settings.train.num_epochs if settings.optimizer.use_meta_reflect else 0


def _probed(settings: MethodSettings) -> int:
    """Return how many items a step rolls out again with a probe."""
    gradient = settings.gradient
    return gradient.deep_reflect_failures + gradient.deep_reflect_successes if gradient.use_deep_reflect else 0


def _other_files(settings: OptimizerSettings, skill: Skill) -> int:
    """Return the tokens of what the optimizer reads of other files than ``SKILL.md``, and of how to edit them."""
    files = settings.trainable
    lengths = (
        min(tokens_of(text), settings.max_file_tokens)
        for path, text in skill.text_files()
        if path != DOCUMENT and (path.endswith(".md") or files.covers(path))
    )
    return sum(lengths) + (tokens_of(prompt(FILES)) if files.beyond_document else 0)


def _optimizer_stages(
    settings: MethodSettings, task: Task, skill: Skill, remainder: Remainder, *, item: int
) -> Iterator[Asks]:
    """Yield what the optimizer is asked in what is left of a run; ``item`` is the length of an item in tokens."""
    gradient, optimizer, steps = settings.gradient, settings.optimizer, remainder.steps
    words, width = DIALECTS[optimizer.skill_update_mode], gradient.analyst_workers
    document = tokens_of(skill.document) + _other_files(optimizer, skill)
    reply = REPLY_TOKENS + (document if optimizer.skill_update_mode.proposals is ProposalKind.DOCUMENTS else 0)
    trajectory = min(item + ANSWER_TOKENS, gradient.max_trajectory_tokens)
    analysts = [most_analysts(batches, settings) for batches in _batches_of_steps(settings, task)]
    prompt_tokens = tokens_of(prompt(words.failures)) + document + gradient.minibatch_size * trajectory
    prompt_tokens += gradient.contrast * min(trajectory, gradient.max_trajectory_tokens // 2)
    calls = _sum_of_last(analysts, steps)
    yield Asks(stage="analyst", calls=calls, prompt=prompt_tokens, reply=reply, in_a_row=steps, width=width)
    if _refines(settings):
        # the whole text of a step from several minibatches of failures, and each draft once more with its look
        read_tokens = (READ * gradient.minibatch_size + LOOKED_FAILING + LOOKED_SOLVED) * trajectory
        prompt_tokens, calls = prompt_tokens + read_tokens, (1 + DRAFTS * (ATTEMPTS - 1)) * steps
        yield Asks(
            stage="draft", calls=calls, prompt=prompt_tokens, reply=reply + document, in_a_row=2 * steps, width=width
        )
    drafts = [count + (_probed(settings) > 0) for count in analysts]
    merges = [1 if optimizer.merges_in_one_call else most_merges(count, gradient.merge_batch_size) for count in drafts]
    at_once = max(drafts) if optimizer.merges_in_one_call else gradient.merge_batch_size
    prompt_tokens = tokens_of(prompt(words.merge)) + document + at_once * reply
    joins = _last_merges(settings, task, steps)
    if joins:
        reply += document
        prompt_tokens = max(prompt_tokens, tokens_of(prompt("merge_rewrites")) + document + DRAFTS * reply)
    calls = _sum_of_last(merges, steps) + joins
    yield Asks(
        stage="merge", calls=calls, prompt=prompt_tokens, reply=reply, in_a_row=min(calls, 2 * steps), width=width
    )
    rank_tokens = tokens_of(prompt("rank")) + document + REPLY_TOKENS
    calls = steps if optimizer.control is ControlMode.AUTONOMOUS else 0
    yield Asks(stage="budget", calls=calls, prompt=rank_tokens, reply=REPLY_TOKENS, in_a_row=calls)
    ranks = optimizer.control is not ControlMode.NONE and not optimizer.merges_in_one_call
    calls = steps if ranks else 0
    yield Asks(stage="rank", calls=calls, prompt=rank_tokens, reply=REPLY_TOKENS, in_a_row=calls)
    calls = steps if optimizer.skill_update_mode.proposals is ProposalKind.SUGGESTIONS else 0
    prompt_tokens = tokens_of(prompt("rewrite")) + document + REPLY_TOKENS
    yield Asks(stage="rewrite", calls=calls, prompt=prompt_tokens, reply=document + REPLY_TOKENS, in_a_row=calls)
    yield from _stages_of_epochs(settings, task, document, trajectory, remainder)
    yield from _stages_of_features(settings, document, trajectory, steps)


def _sum_of_last(counts: Sequence[int], steps: int) -> int:
    """Return how many the last ``steps`` of a run have, where ``counts`` are those of the steps of an epoch."""
    epochs, rest = divmod(steps, max(len(counts), 1))
    return epochs * sum(counts) + sum(counts[len(counts) - rest :] if rest else ())


def _stages_of_epochs(
    settings: MethodSettings, task: Task, document: int, trajectory: int, remainder: Remainder
) -> Iterator[Asks]:
    """Yield what the optimizer is asked at the ends of epochs."""
    gradient, optimizer = settings.gradient, settings.optimizer
    pairs = 2 * min(optimizer.slow_update_samples, len(task.items[Split.TRAIN])) * trajectory
    slow, calls = remainder.slow, optimizer.use_slow_update + optimizer.use_meta_skill
    prompt_tokens = tokens_of(prompt("slow_update")) + 2 * document + pairs
    yield Asks(stage="slow update", calls=slow * calls, prompt=prompt_tokens, reply=REPLY_TOKENS, in_a_row=slow * calls)
    reflections = remainder.reflections
    prompt_tokens = tokens_of(prompt("meta_reflect")) + document + 2 * gradient.max_history_tokens
    yield Asks(stage="meta reflect", calls=reflections, prompt=prompt_tokens, reply=REPLY_TOKENS, in_a_row=reflections)


def _stages_of_features(settings: MethodSettings, document: int, trajectory: int, steps: int) -> Iterator[Asks]:
    """Yield the optimizer's calls that are made only where a feature is switched on."""
    optimizer, probes = settings.optimizer, _probed(settings)
    prompt_tokens, calls = tokens_of(prompt("probe")) + document + probes * trajectory, 2 * steps if probes else 0
    yield Asks(stage="probe", calls=calls, prompt=prompt_tokens, reply=REPLY_TOKENS, in_a_row=calls)
    has_reminders = optimizer.use_skill_aware_reflection and optimizer.skill_aware_consolidate_threshold > 0
    calls = steps if has_reminders else 0
    yield Asks(stage="appendix", calls=calls, prompt=2 * document, reply=REPLY_TOKENS, in_a_row=calls)


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
