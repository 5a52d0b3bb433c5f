"""The verdict on each skill that a revision changes, and the recorded outcomes that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from skillgit.app.recorded.evaluation_notes import NotedOutcomes, noted_outcomes
from skillgit.app.recorded.run_record import event_outcomes, recorded_items, recorded_setup, started
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.comparable_conditions import differences, of_event, of_setup
from skillgit.app.workspace.revision import revision_words
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.conditions import Aspect
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Scored, Split, item_set_digest
from skillgit.domain.gate_decision import Decision, GateRule, Verdict, decide, flips_of
from skillgit.domain.gate_policies import PAIRED, shortfall
from skillgit.domain.outcomes import Pairs
from skillgit.domain.served_model import Provenance
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.statistics import fixes_needed, minimum_detectable_effect, paired_interval, too_few_items
from skillgit.errors import ExitCode
from skillgit.index import queries
from skillgit.plugin.environment import asks_judge
from skillgit.store import notes
from skillgit.store.work_tree import skill_tree

if TYPE_CHECKING:
    from skillgit.app.measure.arms import Change
    from skillgit.app.setup.run_setup import Setup


class KnownOutcomes:
    """Finds outcomes that may stand for a measurement by ``setup`` on ``split``."""

    def __init__(self, workspace: Workspace, setup: Setup, split: Split) -> None:
        self._workspace, self._setup, self._split = workspace, setup, split
        self.is_unknown = False  # whether an outcome is taken whose server was not recorded
        self._items = {item.id: item.digest for item in setup.task.items[split]}

    @property
    def judge(self) -> str:
        """The model that scores; empty where none is asked."""
        return self._setup.routes["judge"].name if asks_judge(self._setup.task.environment) else ""

    def of(self, path: str, tree: str) -> dict[str, Scored]:
        """Return item to outcome of the skill ``path`` with the text ``tree``; events go before notes."""
        by_item: dict[str, Scored] = {}
        for outcomes in (*self._in_events(path, tree), *self._in_notes(path, tree)):
            by_item = {**outcomes, **by_item}
        if self._setup.rule.counts_tokens:  # an outcome that does not know its tokens is measured
            return {item: outcome for item, outcome in by_item.items() if outcome.tokens is not None}
        return by_item

    def _in_events(self, path: str, tree: str) -> Iterator[dict[str, Scored]]:
        workspace = self._workspace
        for run in queries.run_names(workspace.index):
            if workspace.index.skill_path(run) != path or not self._is_alike(run):
                continue
            # what the run had with the same content; where its list is not here, all or nothing
            run_items, start = recorded_items(workspace, run, self._split), started(workspace, run)
            if run_items is None:
                is_same = start is not None and start.splits == self._setup.splits_digest
                run_items = self._items if is_same else {}
            for row in queries.log_rows(workspace.index, run):
                if skill_tree(workspace.repo, row.commit, path) == tree:
                    outcomes = event_outcomes(workspace, row, self._split).items()
                    yield {
                        item: outcome
                        for item, outcome in outcomes
                        if isinstance(outcome, Scored) and self._items.get(item, "") == run_items.get(item)
                    }

    def _is_alike(self, run: str) -> bool:
        """Say whether ``run`` measured under the conditions of the setup; items are looked at one by one."""
        start = started(self._workspace, run)
        provenance = self._setup.measured(recorded_setup(self._workspace, run))
        if start is None or start.environment != self._setup.task.digest or provenance is Provenance.OTHER:
            return False
        first = queries.row_of_version(self._workspace.index, run, 0)
        then = of_event(self._workspace, first, self._split) if first is not None else None
        if then is None:
            return False
        differing = differences(then, of_setup(self._setup, self._split))
        if any(difference.matters and difference.aspect is not Aspect.ITEMS for difference in differing):
            return False
        self.is_unknown |= provenance is Provenance.UNKNOWN
        return True

    def _in_notes(self, path: str, tree: str) -> Iterator[dict[str, Scored]]:
        index = self._workspace.index
        for commit, lines in notes.read_all(self._workspace.repo).items():
            matching = [note for note in map(noted_outcomes, lines) if note is not None and self._counts(note)]
            if matching and skill_tree(self._workspace.repo, commit, path) == tree:
                row = queries.row_of_commit(index, commit)  # a note that names no skill means that of the run
                only_skill = index.skill_path(row.run) if row is not None else ""
                yield from (dict(note.outcomes) for note in matching if path == (note.skill or only_skill))

    def _counts(self, note: NotedOutcomes) -> bool:
        """Say whether ``note`` is about items as they are here, under the same conditions."""
        setup, provenance = self._setup, self._setup.measured(note.setup)
        conditions = (self._split.value, setup.routes["target"].name, self.judge, setup.task.digest)
        if (note.split, note.target, note.judge, note.environment) != conditions or provenance is Provenance.OTHER:
            return False
        if not note.outcomes.keys() <= self._items.keys():
            return False
        items = {item: self._items[item] for item in note.outcomes}
        counts = note.item_set in {item_set_digest(self._items), item_set_digest(items)}
        self.is_unknown |= counts and provenance is Provenance.UNKNOWN
        return counts


Word = Literal["passes", "fails", "underpowered", "incomplete", "not measured", "removed"]
"""What happened to a skill."""

NOT_RECORDED = FailedToEvaluate("not recorded")
"""The outcome of an item that was neither recorded nor to be measured."""
_POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSide:
    name: str  # what the user called it; `none` for no skill
    commit: str  # its commit; empty for no skill
    version: str  # the version that the commit is, `<run>/v7`; empty if it is none
    recorded: int = 0  # how many items have a recorded outcome
    missing: int = 0  # how many have none, so that they are measured
    scored: int = 0  # how many have a score in the end
    score: float | None = None  # the mean of these under the metric; absent without any
    solved_items: int | None = None  # how many of these score 1; absent where one scores neither 0 nor 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPair:
    item: str
    task_type: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    verdict: Verdict
    n: int  # items that have a score on both sides
    delta: float | None  # mean difference of their scores; absent without such items
    interval: tuple[float, float] | None  # its 95 % paired interval; None for too few items
    too_few: str = ""  # that no outcome on so few items is more than chance; empty where one is
    fixed: tuple[ItemPair, ...]
    broken: tuple[ItemPair, ...]
    stable_pass: tuple[str, ...]
    stable_fail: tuple[str, ...]  # items with the same score that are not solved
    missing: tuple[str, ...]  # items without a score on one side


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillReport:
    """One skill that the head changes."""

    skill: str
    change: Change
    word: Word
    reason: str = ""  # why, in one sentence; empty where the numbers say it
    base: GateSide
    head: GateSide
    text: str = ""  # which text each side had; empty where nothing was measured
    basis: ResultBasis = field(default_factory=ResultBasis)  # what it was measured with; empty where nothing was
    config: str = ""  # the configuration that it was measured by; empty if there is none
    environment: str = ""
    target: str = ""
    metric: str = ""
    policy: str = ""
    items: int = 0
    compared: Compared | None = None  # the comparison; absent where there is none
    noted: int = 0
    cost: Cost = field(default_factory=Cost)
    warnings: tuple[str, ...] = ()  # what else to know of the numbers, one sentence each
    exit_code: ExitCode = ExitCode.OK  # what the process would exit with if it were the only one


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    base: str
    base_commit: str
    head: str
    head_commit: str
    split: str
    recorded_only: bool  # whether only recorded outcomes were to be used
    skills: tuple[SkillReport, ...]
    work_tree: str = ""  # that the work tree has other texts than HEAD, which was judged; empty where it has not
    cost: Cost
    exit_code: ExitCode


def texts_of(path: str, sides: Sequence[tuple[str, str]]) -> str:
    """Return which text each of two sides has, base and head, each a revision as it was named and its commit."""
    base, head = (revision_words(name, "", commit) for name, commit in sides)
    return f"{path}/{DOCUMENT} of {head} against {base}"


def exit_code(skills: tuple[SkillReport, ...]) -> ExitCode:
    """Return the code of the worst: does not pass, could not be evaluated, cannot be decided, passes."""
    codes = {skill.exit_code for skill in skills}
    order = (ExitCode.NO, ExitCode.SERVICE, ExitCode.UNDERPOWERED)
    return next((code for code in order if code in codes), ExitCode.OK)


def compare(rule: GateRule, base: Evaluation, head: Evaluation, types: dict[str, str]) -> Compared:
    """Let the gate decide on ``head`` against ``base``, and say item by item what differs; ``types`` are by item."""
    pairs = Pairs(head, base, rule.metric, rule.soft_weight)
    flips = flips_of(pairs, head)
    before, after = (side.values(rule.metric, rule.soft_weight) for side in (base, head))
    gains = [float(gain) for gain in pairs.gains.values()]

    def pairs_of(items: tuple[str, ...]) -> tuple[ItemPair, ...]:
        return tuple(
            ItemPair(item=item, task_type=types.get(item, ""), before=before[item], after=after[item]) for item in items
        )

    return Compared(
        verdict=decide(rule, head, base),
        n=len(gains),
        delta=float(pairs.score - pairs.current) if gains else None,
        interval=paired_interval(gains),
        too_few=too_few_items(len(gains)),
        fixed=pairs_of(flips.fixed),
        broken=pairs_of(flips.broken),
        stable_pass=flips.stable_pass,
        stable_fail=flips.stable_fail,
        missing=tuple(item for item in base.outcomes if item not in pairs.gains),
    )


def conclusion(rule: GateRule, comparison: Compared, *, recorded_only: bool) -> tuple[Word, str, ExitCode]:
    """Return what happened to a skill, why, and the exit code."""
    verdict = comparison.verdict
    if verdict.decision is Decision.INDECISIVE:
        if comparison.n and rule.counts_tokens and verdict.tokens is None:
            return "incomplete", "the target's tokens are not known of every item", ExitCode.UNDERPOWERED
        lacking = (
            f"{len(comparison.missing)} of {len(comparison.missing) + comparison.n} items have no score on both sides"
        )
        if verdict.lost > verdict.regained and not recorded_only:
            lacking = f"{verdict.lost} items that have a score at the base could not be evaluated at the head"
            return "incomplete", lacking, ExitCode.SERVICE
        if recorded_only:
            return "incomplete", f"{lacking}, and only recorded outcomes were wanted", ExitCode.UNDERPOWERED
        return "incomplete", f"{lacking}, for they could not be evaluated", ExitCode.SERVICE
    if verdict.decision.accepted:
        is_saving = bool(verdict.token_words) and verdict.score <= verdict.current
        return "passes", "the head scores no lower, with fewer tokens" if is_saving else "", ExitCode.OK
    if verdict.blocked:
        return "fails", f"{verdict.blocked} of the items that may not score lower do", ExitCode.NO
    if verdict.policy == PAIRED.name and verdict.current <= verdict.score and _is_blind(rule, comparison):
        n, test = comparison.n, f"for the paired test at alpha {rule.alpha:g} to find"
        reason = f"{n} items are too few {test} any gain"
        if fixes_needed(n, rule.alpha) <= n:
            reason = (
                f"the base scores {verdict.current:.4f} on {n} items, and what is left to gain is too little {test}"
            )
        return "underpowered", reason, ExitCode.UNDERPOWERED
    return "fails", "; ".join(filter(None, (_shortfall(verdict), verdict.token_shortfall))), ExitCode.NO


def _is_blind(rule: GateRule, comparison: Compared) -> bool:
    """Say whether the paired test passes no gain on so many items, or finds what is left to gain too seldom."""
    verdict, n = comparison.verdict, comparison.n
    if verdict.current >= 1.0:
        return False
    if fixes_needed(n, rule.alpha) > n:
        return True
    room = 1.0 - verdict.current
    is_unseen = minimum_detectable_effect(n, alpha=rule.alpha, power=_POWER, fixable=room) is None
    return verdict.score < 1.0 and is_unseen


def _shortfall(verdict: Verdict) -> str:
    if verdict.score < verdict.current:
        return "the head scores lower"
    if verdict.exceeds_tokens:
        return "the head takes too many tokens"
    if verdict.score == verdict.current == 1.0:
        return "the base has the full score, so that nothing scores higher; the rule not-worse asks for no more"
    if verdict.score == verdict.current:
        return "the head scores the same, and the rule wants more"
    return f"the head scores higher, but {shortfall(verdict.policy, verdict.p, verdict.terms)}"
