"""``skillgit eval``: several skills on the same items, side by side; what is found becomes a note on their commits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from skillgit.app.arms import read_arms, resolve_all
from skillgit.app.calling import nothing_is_lost, open_door, stop_on_interrupt
from skillgit.app.evaluations import as_note, known_evaluations, reads_of_test, record
from skillgit.app.preflight import ask_each
from skillgit.app.recipe import differences, find_config
from skillgit.app.scores import by_type, compare, scores
from skillgit.app.setup import set_up
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.calls.door import Caps
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, Split
from skillgit.engine.progress import Stage
from skillgit.engine.rollout import roll_out
from skillgit.engine.session import Monitor, Session
from skillgit.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from skillgit.app.arms import Arm, Arms
    from skillgit.app.context import Context
    from skillgit.app.evaluations import Note
    from skillgit.app.scores import Comparison, Scores
    from skillgit.app.setup import Setup
    from skillgit.engine.progress import Progress

ALL = "all"
SPLITS = (*(split.value for split in Split), ALL)
"""What ``--split`` may be."""

Measured = dict[tuple[str, Split], Evaluation]
"""Name of an arm and split to what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest:
    """What the user asks for.

    Attributes:
        revisions: What to measure.
        against: What to compare each of them with; ``none`` is no skill.
        config: A configuration; None takes the one that the run of the first revision recorded.
        overrides: ``section.key=value``; later ones win.
        split: ``train``, ``selection``, ``test`` or ``all``.
        note: Whether to leave notes on the commits.
        max_calls: Cap on model calls of this evaluation.
        max_tokens: Cap on its tokens.
        max_usd: Cap on its US dollars.
    """

    revisions: tuple[str, ...]
    against: tuple[str, ...] = ()
    config: str | None = None
    overrides: tuple[str, ...] = ()
    split: str = Split.SELECTION.value
    note: bool = True
    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalProgress:
    """One look at an evaluation in the making.

    Attributes:
        name: The skill that is being measured.
        split: The split.
        done: Items of it that are done.
        total: Items of it.
        before: Items of all skills and splits that were done before it.
        every: Items of all skills and splits.
        spent: What the evaluation has cost so far.
    """

    name: str
    split: str
    done: int
    total: int
    before: int
    every: int
    spent: Cost


class EvalWatcher(Protocol):
    """Something that looks on."""

    def progress(self, progress: EvalProgress) -> None:
        """An item is done."""
        ...

    def measured(self, name: str, split: str, found: Scores) -> None:
        """A skill was measured on a split."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScores:
    """A skill on one split.

    Attributes:
        split: The split.
        item_set: Digest of its items.
        overall: The scores of all items.
        types: The scores of each task type.
    """

    split: str
    item_set: str
    overall: Scores
    types: tuple[Scores, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmScores:
    """A skill on all splits that were asked for.

    Attributes:
        name: How it is called.
        run: Its run; empty without one.
        version: Its version; absent for what is no version.
        commit: Its commit; empty for no skill.
        splits: Its scores.
        test_reads: How many evaluations on the test split are known of it, this one included if it left a note.
    """

    name: str
    run: str
    version: int | None
    commit: str
    splits: tuple[SplitScores, ...]
    test_reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Several skills side by side.

    Attributes:
        config: The configuration that they were measured by.
        environment: The environment's name.
        target: The model that worked on the items.
        seed: The seed.
        metric: The score that comparisons compare.
        arms: The skills; those that were asked for first.
        comparisons: Every skill that was asked for against every other named for it, split by split.
        noted: How many new evaluations were noted.
        cost: What it cost; what was measured before cost nothing.
        warnings: What the user should know of the numbers.
        exit_code: What the process exits with.
    """

    config: str
    environment: str
    target: str
    seed: int
    metric: str
    arms: tuple[ArmScores, ...]
    comparisons: tuple[Comparison, ...]
    noted: int
    cost: Cost
    warnings: tuple[str, ...]
    exit_code: ExitCode


def evaluate(context: Context, request: EvalRequest, watcher: EvalWatcher) -> Evaluated:
    """Measure what the request names; outcomes that are in the ledger cost nothing.

    What is complete when a cap, Ctrl-C or a provider ends the work is noted all the same, for it has been looked at.

    Raises:
        BudgetError: A cap was reached.
        ProviderFailureError: A provider failed systematically.
        RevisionNotFoundError: A revision names nothing.
        StoppedError: The user stopped it.
        UsageError: It is not clear by which configuration to measure.
    """
    if request.split not in SPLITS:
        raise UsageError(f"there is no split '{request.split}'", hint=f"splits are {', '.join(SPLITS)}")
    with open_workspace(context) as workspace:
        named = resolve_all(workspace, request.revisions, request.against)
        config = find_config(context, workspace, named.runs, config=request.config, overrides=request.overrides)
        setup = set_up(config)
        arms = read_arms(workspace, named, setup.task.environment.info.name)
        with Ledger.open(workspace.repo.private_dir / "ledger.db") as ledger:
            work = _Evaluating(context, workspace, setup, request, arms=arms, ledger=ledger, watcher=watcher)
            with stop_on_interrupt(work.session.calls), nothing_is_lost():
                asyncio.run(work.measure())
        return work.result(tuple(sentence for run in named.runs for sentence in differences(workspace, run, setup)))


class _Evaluating:
    """One process's work on an evaluation."""

    def __init__(
        self,
        context: Context,
        workspace: Workspace,
        setup: Setup,
        request: EvalRequest,
        *,
        arms: Arms,
        ledger: Ledger,
        watcher: EvalWatcher,
    ) -> None:
        self._context = context
        self._workspace = workspace
        self._setup = setup
        self._request = request
        self._arms = arms
        self._watcher = watcher
        self._splits = tuple(Split) if request.split == ALL else (Split(request.split),)
        self._measured: Measured = {}
        self._noted = 0
        caps = Caps(max_calls=request.max_calls, max_tokens=request.max_tokens, max_usd=request.max_usd)
        calls = open_door(context, setup, caps, ledger)
        self.session = Session(
            run="",
            skill_path="",
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=setup.config.values.calls.concurrency,
            clock=context.clock,
            monitor=Monitor(spent=calls.spent),
        )

    async def measure(self) -> None:
        """Measure every arm on every split, and note what is complete, whatever ends the work."""
        calls = self.session.calls
        calls.enter(f"eval/{self._context.entropy(8).hex()}", Cost())
        self._began = self._context.clock()
        try:
            await ask_each(self._setup, calls, ("target", *(("judge",) if self.session.judged else ())))
            for split in self._splits:
                for arm in self._arms.every:
                    await self._measure(arm, split)
        finally:
            await calls.aclose()
            if self._request.note:
                self._noted = record(self._workspace, self._notes(), self._context.clock())

    async def _measure(self, arm: Arm, split: Split) -> None:
        session, items = self.session, self._setup.task.items[split]
        before, every = self._sizes()

        def told(progress: Progress) -> None:
            look = EvalProgress(
                name=arm.name,
                split=split.value,
                done=progress.done,
                total=progress.total,
                before=before,
                every=every,
                spent=progress.spent,
            )
            self._watcher.progress(look)

        session.monitor.report = told
        session.monitor.stage(Stage.EVALUATE, len(items))
        rollouts = await roll_out(session, arm.skill, items, f"eval {split.value}")
        await session.calls.settle()
        found = Evaluation(
            split=split,
            item_set=self._setup.task.item_set(split),
            outcomes={rollout.item.id: rollout.outcome for rollout in rollouts},
            seed=session.seed,
        )
        self._measured[arm.name, split] = found
        self._watcher.measured(arm.name, split.value, scores(found.outcomes.values()))

    def _sizes(self) -> tuple[int, int]:
        items = self._setup.task.items
        before = sum(len(items[split]) for _, split in self._measured)
        return before, sum(len(items[split]) for split in self._splits) * len(self._arms.every)

    def _notes(self) -> dict[str, list[Note]]:
        found: dict[str, list[Note]] = {}
        for arm in self._arms.every:
            for split in self._splits:
                evaluation = self._measured.get((arm.name, split))
                if arm.commit and evaluation is not None and evaluation.scored:
                    note = as_note(
                        evaluation.summary(),
                        by_type(self._setup.task.items[split], evaluation),
                        target=self.session.calls.model_name("target"),
                        environment=self._setup.task.environment.digest,
                        time=self._context.clock(),
                    )
                    found.setdefault(arm.commit, []).append(note)
        return found

    def result(self, warnings: tuple[str, ...]) -> Evaluated:
        """Return everything that was measured."""
        rule = self.session.rule
        thin = [
            f"{name} has a score on {len(found.scored)} of {len(found.outcomes)} {split.value} items only"
            for (name, split), found in self._measured.items()
            if len(found.scored) < rule.min_coverage * len(found.outcomes)
        ]
        cost = self.session.cost_since(self._began)
        return Evaluated(
            config=self._setup.config.name,
            environment=self._setup.task.environment.info.name,
            target=self.session.calls.model_name("target"),
            seed=self.session.seed,
            metric=rule.metric.value,
            arms=tuple(self._arm_scores(arm) for arm in self._arms.every),
            comparisons=self._comparisons(),
            noted=self._noted,
            cost=replace(cost, seconds=round(cost.seconds, 1)),
            warnings=(*warnings, *thin),
            exit_code=ExitCode.SERVICE if thin else ExitCode.OK,
        )

    def _comparisons(self) -> tuple[Comparison, ...]:
        rule = self.session.rule
        return tuple(
            compare(rule, (name, self._measured[name, split]), (other, self._measured[other, split]))
            for split in self._splits
            for name in self._arms.asked
            for other in self._arms.against
            if name != other
        )

    def _arm_scores(self, arm: Arm) -> ArmScores:
        known = known_evaluations(self._workspace, arm.commit, arm.row) if arm.commit else ()
        return ArmScores(
            name=arm.name,
            run=arm.row.run if arm.row is not None else "",
            version=arm.row.version if arm.row is not None else None,
            commit=arm.commit,
            splits=tuple(self._split_scores(arm, split) for split in self._splits),
            test_reads=reads_of_test(known),
        )

    def _split_scores(self, arm: Arm, split: Split) -> SplitScores:
        found = self._measured[arm.name, split]
        return SplitScores(
            split=split.value,
            item_set=found.item_set,
            overall=scores(found.outcomes.values()),
            types=by_type(self._setup.task.items[split], found),
        )
