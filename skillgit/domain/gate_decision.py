"""The gate: the pure rule that turns two evaluations into a decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TypedDict

from skillgit.domain.evaluation import Evaluation, Metric, mean_tokens
from skillgit.domain.gate_policies import NOT_WORSE, POLICIES, STRICT, Comparison, Policy, Terms, wanted
from skillgit.domain.outcomes import Pairs, exact
from skillgit.domain.statistics import sign_flip_test, sign_test


class Decision(StrEnum):
    ACCEPT_NEW_BEST = "accept_new_best"
    ACCEPT = "accept"
    REJECT = "reject"
    FORCE_ACCEPT = "force_accept"
    INDECISIVE = "indecisive"

    @property
    def accepted(self) -> bool:
        return self in {Decision.ACCEPT_NEW_BEST, Decision.ACCEPT, Decision.FORCE_ACCEPT}


class NoRegression(StrEnum):
    """Which items may not score lower than under the current version, even with a higher mean."""

    NONE = "none"
    PINNED = "pinned"
    ALL = "all"


class Objective(StrEnum):
    """What a candidate may be accepted for."""

    SCORE = "score"
    TOKENS = "score-then-tokens"  # for its score first, and where that is not lower, for fewer tokens


PINNED_TYPE = "type:"
"""What the name of a task type is behind, where all items of that type are pinned."""
LOSS_LEVEL = 0.05  # of the test that separates items a candidate lost from those that infrastructure loses
_NEARLY = Fraction(1, 10**12)  # what floats in a trailer may be off by


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    policy: Policy = STRICT  # how it compares
    metric: Metric = Metric.HARD  # which score it compares
    soft_weight: float = 0.5  # share of the soft score in the mixed metric
    min_coverage: float = 0.9  # below this share of scored items on either side, the gate is indecisive
    enabled: bool = True  # without a gate every measured candidate is accepted
    alpha: float = 0.05  # level of the paired test
    margin: float = 0.0  # by how much the margin policy wants the score to be greater
    no_regression: NoRegression = NoRegression.NONE  # which items may not score lower
    pinned: frozenset[str] = frozenset()  # the items that ``no_regression: pinned`` names
    objective: Objective = Objective.SCORE  # what else than its score a candidate may be accepted for
    token_margin: float = 0.05  # by what share fewer tokens have to be fewer
    max_tokens: int | None = None  # tokens an item that a candidate may not rise above

    @property
    def counts_tokens(self) -> bool:
        return self.objective is Objective.TOKENS

    @property
    def has_level(self) -> bool:
        """Whether one of its tests is made at ``alpha``."""
        return self.counts_tokens or "alpha" in self.policy.terms

    @property
    def is_slow(self) -> bool:
        """Whether :meth:`reachable` sees more if it is thorough; a tie may pass where tokens count, which is quick."""
        return not self.counts_tokens and self.policy.is_slow(counts_decide=self.metric is Metric.HARD)

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        """Say whether a candidate can still be accepted, as :meth:`Policy.reachable` does; any tokens are possible."""
        is_saving = self.counts_tokens and NOT_WORSE.reachable(best, count, thorough=thorough)
        return is_saving or self.policy.reachable(best, count, thorough=thorough)

    @property
    def terms(self) -> Terms:
        return Terms(alpha=self.alpha, margin=self.margin)

    def first_pass(self, repeats: int) -> GateRule:
        """Return the test before ``repeats`` confirm a candidate: its score alone, without the rule's other terms."""
        if not repeats:
            return self
        policy = STRICT if self.policy.wants_gain and not self.counts_tokens else NOT_WORSE
        return replace(self, policy=policy, no_regression=NoRegression.NONE, objective=Objective.SCORE)

    def protects(self, item: str) -> bool:
        is_pinned = self.no_regression is NoRegression.PINNED and item in self.pinned
        return is_pinned or self.no_regression is NoRegression.ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision with every number that it compared, so that it can be replayed from them.

    Attributes:
        decision: What the gate decided.
        policy: The name of the policy that it compared by.
        metric: Which score it compared.
        score: The candidate's score; of a candidate whose evaluation was stopped, the highest that it could have had.
        current: The score of the version that it was proposed on.
        best: The best score so far.
        fixed: Items that score higher than under the current version, among those that were rolled out.
        broken: Items that score lower.
        p: One-sided p-value of the paired test: the chance of such a gain if every change of an item were a coin flip.
        soft_weight: Share of the soft score in the mixed metric.
        alpha: Level of the test, where the policy has one.
        margin: By how much the score had to be greater, where the policy wants that.
        no_regression: Which items might not score lower.
        blocked: How many of those did.
        repeats: Extra rollouts of every item that differed; the numbers are means over them.
        gated: Whether there was a gate at all.
        compared: How many items have a score on every side; all means are over these. Absent if that is every item and
            they have a hard score only, and in verdicts of before there was this number, whose means are each over the
            items that this side scored.
        lost: Items that the current version scored and that the candidate failed to evaluate.
        regained: Items where it is the other way round.
        outrun: The step whose candidate was better in the race of the two; 0 where none was, or there was no race.
        objective: What else than its score the candidate could be accepted for.
        tokens: The candidate's mean tokens an item, over the items that it was measured on and that have a score on
            every side. Absent, as the numbers below, where tokens do not count or are not known of each of them.
        tokens_before: The same of the version that it was proposed on.
        tokens_best: The same of the best version so far.
        tokens_p: One-sided p-value of the paired test of fewer tokens.
        token_margin: By what share fewer tokens had to be fewer.
        max_tokens: The tokens an item that it had to stay under, unless its base takes no fewer.
    """

    decision: Decision
    policy: str
    metric: Metric
    score: float
    current: float
    best: float
    fixed: int
    broken: int
    p: float
    soft_weight: float = 0.5
    alpha: float | None = None
    margin: float | None = None
    no_regression: NoRegression = NoRegression.NONE
    blocked: int = 0
    repeats: int = 0
    gated: bool = True
    compared: int | None = None
    lost: int = 0
    regained: int = 0
    outrun: int = 0
    objective: Objective = Objective.SCORE
    tokens: float | None = None
    tokens_before: float | None = None
    tokens_best: float | None = None
    tokens_p: float | None = None
    token_margin: float | None = None
    max_tokens: int | None = None

    @property
    def saves_tokens(self) -> bool:
        """Whether fewer tokens are fewer by enough, and by more than chance."""
        if self.tokens is None or self.tokens_before is None or self.tokens_p is None:
            return False
        bound = (1 - exact(self.token_margin or 0.0)) * exact(self.tokens_before)
        return self.tokens_p <= self.terms.alpha and exact(self.tokens) <= bound

    @property
    def exceeds_tokens(self) -> bool:
        """Whether its tokens rise above what they may be."""
        limits = (self.max_tokens, self.tokens_before)
        return self.tokens is not None and None not in limits and self.tokens > max(filter(None, limits))

    @property
    def leads_on_tokens(self) -> bool:
        """Whether it takes fewer tokens than the best version, which decides between equal scores."""
        return self.tokens is not None and self.tokens_best is not None and self.tokens < self.tokens_best

    @property
    def demand(self) -> str:
        """What the gate asked for, to be behind "asks for"."""
        words = wanted(self.policy, self.terms)
        if self.objective is Objective.TOKENS:
            words += f", or one that is not lower with {self.token_margin:.3g} fewer tokens an item"
            words += f", and for at most {self.max_tokens:,} of them" if self.max_tokens is not None else ""
        return words

    @property
    def token_words(self) -> str:
        """Both figures of tokens an item; empty where tokens do not count."""
        if self.objective is Objective.SCORE:
            return ""
        if self.tokens is None or self.tokens_before is None:
            return "tokens an item: not known of every item"
        change = self.tokens / self.tokens_before - 1 if self.tokens_before else 0.0
        figures = f"{self.tokens:,.1f} tokens an item, {self.tokens_before:,.1f} before ({100 * change:+.1f} %"
        return f"{figures}, p {self.tokens_p:.2g})"

    @property
    def token_shortfall(self) -> str:
        """Why its tokens keep the candidate from being accepted; empty where they do not count, or it was accepted."""
        if self.objective is Objective.SCORE or self.decision.accepted or self.tokens is None:
            return ""
        if self.exceeds_tokens:
            return f"its {self.tokens:,.1f} tokens an item are more than gate.max_tokens_per_item, {self.max_tokens:,}"
        if self.saves_tokens or self.score < self.current:
            return ""
        if exact(self.tokens) >= exact(self.tokens_before or 0.0):
            return "its tokens an item are not fewer"
        if (self.tokens_p or 0.0) > self.terms.alpha:
            return (
                f"its fewer tokens may be chance: p is {self.tokens_p:.2g}, and {self.terms.alpha:g} or less is wanted"
            )
        return f"its tokens an item are fewer by less than gate.token_margin, {self.token_margin:g}"

    @property
    def account(self) -> str:
        """Score and tokens, and for which of them it was accepted, as a sentence; empty where tokens do not count."""
        if self.objective is Objective.SCORE:
            return ""
        sentence = f"The score is {self.score:.4f}, {self.current:.4f} before, and it takes {self.token_words}"
        if self.tokens is None:
            sentence = f"The score is {self.score:.4f}, {self.current:.4f} before; {self.token_words}"
        if self.decision.accepted and self.gated and self.score <= self.current:
            sentence += ": it is accepted for fewer tokens"
        return f"{sentence}{'; ' if self.token_shortfall else ''}{self.token_shortfall}."

    @property
    def terms(self) -> Terms:
        usual = Terms()
        return Terms(
            alpha=usual.alpha if self.alpha is None else self.alpha,
            margin=usual.margin if self.margin is None else self.margin,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Items by what happened to their score, in the order of the items, but for those that one side did not score."""

    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    stable_pass: tuple[str, ...]
    stable_fail: tuple[str, ...]


def flips(candidate: Evaluation, current: Evaluation, metric: Metric, soft_weight: float) -> Flips:
    evaluation = replace(candidate, unneeded=(), spare=0) if candidate.unneeded else candidate
    return flips_of(Pairs(evaluation, current, metric, soft_weight), candidate)


def flips_of(pairs: Pairs, candidate: Evaluation) -> Flips:
    outcomes = candidate.scored
    return Flips(
        fixed=tuple(item for item in pairs.fixed if item in outcomes),
        broken=pairs.broken,
        stable_pass=tuple(item for item in pairs.stable if outcomes[item].passed),
        stable_fail=tuple(item for item in pairs.stable if not outcomes[item].passed),
    )


def decide(
    rule: GateRule,
    candidate: Evaluation,
    current: Evaluation,
    best: Evaluation | float | None = None,
    *,
    repeats: int = 0,
) -> Verdict:
    """Decide on a candidate, evaluated over the same items as ``current``, the version that it was proposed on.

    All means are over the items that are scored on every side. The gate is indecisive if too few items have a score on
    a side, if a pinned item has lost it, or if the candidate loses more items than it regains beyond what chance
    explains (a sign test at ``LOSS_LEVEL``).

    A candidate whose evaluation was stopped is judged by the highest score that it could have had; what
    stops an evaluation makes sure that it is refused all the same (see :mod:`skillgit.engine.measure`).

    ``best`` are the outcomes of the best version so far, or its score where they are not here; None if that is the
    current version. The outcomes of items that differ are means of ``repeats`` extra rollouts.
    """
    return decide_items(rule, candidate, current, best, repeats=repeats)[0]


def decide_items(
    rule: GateRule,
    candidate: Evaluation,
    current: Evaluation,
    best: Evaluation | float | None = None,
    *,
    repeats: int = 0,
    outrun: int = 0,
) -> tuple[Verdict, Flips]:
    """Decide as :func:`decide` does, and say which items were fixed and which were broken.

    A candidate that was ``outrun`` by that of another step is refused regardless of its score.
    """
    metric, terms = rule.metric, rule.policy.terms
    pairs = Pairs(candidate, current, metric, rule.soft_weight, best if isinstance(best, Evaluation) else None)
    item_flips = flips_of(pairs, candidate)
    verdict = Verdict(
        decision=Decision.INDECISIVE,
        policy=rule.policy.name,
        metric=metric,
        score=float(pairs.score),
        current=float(pairs.current),
        best=best if isinstance(best, float | int) else float(pairs.further),
        fixed=len(item_flips.fixed),
        broken=len(item_flips.broken),
        # Of a stopped candidate the hard test is that of the items which were rolled out, as its counts are.
        p=sign_test(len(item_flips.fixed), len(item_flips.broken)) if metric is Metric.HARD else pairs.p,
        soft_weight=rule.soft_weight,
        alpha=rule.alpha if rule.has_level else None,
        margin=rule.margin if "margin" in terms else None,
        no_regression=rule.no_regression,
        blocked=sum(map(rule.protects, item_flips.broken)),
        repeats=repeats,
        gated=rule.enabled,
        compared=len(pairs.gains) if metric is not Metric.HARD or not pairs.complete else None,
        lost=len(pairs.lost),
        regained=len(pairs.regained),
        outrun=outrun,
        **_token_figures(rule, pairs, candidate, current, best),
    )
    if not _decidable(rule, candidate, current, pairs) or (rule.counts_tokens and verdict.tokens is None):
        return verdict, item_flips
    highest = exact(verdict.best) if isinstance(best, float | int) else pairs.further
    accepts = _accepts(verdict, rule.policy, _compared(pairs, verdict))
    decision = _decision(verdict, accepts, _leads(verdict, pairs.score - highest))
    return replace(verdict, decision=decision), item_flips


class TokenFigures(TypedDict, total=False):
    objective: Objective
    tokens: float | None
    tokens_before: float | None
    tokens_best: float | None
    tokens_p: float | None
    token_margin: float | None
    max_tokens: int | None


TOKEN_FIELDS = frozenset(TokenFigures.__annotations__)
"""What a verdict says only where tokens count."""


def _token_figures(
    rule: GateRule, pairs: Pairs, candidate: Evaluation, current: Evaluation, best: Evaluation | float | None
) -> TokenFigures:
    """Return what a verdict says of tokens; nothing where they do not count."""
    if not rule.counts_tokens:
        return {}
    terms = TokenFigures(objective=rule.objective, token_margin=rule.token_margin, max_tokens=rule.max_tokens)
    after, before = ([side.scored[item] for item in pairs.measured] for side in (candidate, current))
    tokens, tokens_before = mean_tokens(after), mean_tokens(before)
    if tokens is None or tokens_before is None:
        return terms
    if best is None:
        tokens_best: float | None = tokens_before
    else:
        best_scores = best.scored if isinstance(best, Evaluation) else {}
        tokens_best = mean_tokens([best_scores[item] for item in pairs.measured if item in best_scores])
    # sorted, for the test draws signs by place, and what tokens say does not depend on the order of the items
    fewer = sorted((old.tokens or 0.0) - (new.tokens or 0.0) for old, new in zip(before, after, strict=True))
    return terms | TokenFigures(
        tokens=tokens, tokens_before=tokens_before, tokens_best=tokens_best, tokens_p=sign_flip_test(fewer)
    )


def _accepts(verdict: Verdict, policy: Policy, comparison: Comparison) -> bool:
    """Say whether the score alone, or a score that is not lower together with fewer tokens, is enough."""
    if verdict.exceeds_tokens:
        return False
    return policy.accepts(comparison) or (verdict.saves_tokens and NOT_WORSE.accepts(comparison))


def _compared(pairs: Pairs, verdict: Verdict) -> Comparison:
    total = sum(pairs.gains.values(), Fraction(0))
    return Comparison(
        total=total.numerator,
        scale=total.denominator,
        count=len(pairs.gains),
        fixed=len(pairs.fixed),
        broken=len(pairs.broken),
        terms=verdict.terms,
        p_value=lambda: pairs.p,
        counts_decide=verdict.metric is Metric.HARD,
    )


def _decidable(rule: GateRule, candidate: Evaluation, current: Evaluation, pairs: Pairs) -> bool:
    is_covered = min(candidate.at_best().summary().coverage, current.summary().coverage) >= rule.min_coverage
    if not is_covered or not pairs.gains:
        return False
    if rule.no_regression is NoRegression.PINNED and not rule.pinned.isdisjoint(pairs.lost):
        return False
    return sign_test(len(pairs.lost), len(pairs.regained)) > LOSS_LEVEL


def _decision(verdict: Verdict, accepts: bool, new_best: bool) -> Decision:  # noqa: FBT001 - two facts of one kind
    if verdict.gated and (not accepts or verdict.blocked or verdict.outrun):
        return Decision.REJECT
    if new_best:
        return Decision.ACCEPT_NEW_BEST
    return Decision.ACCEPT if verdict.gated else Decision.FORCE_ACCEPT


def rule_behind(verdict: Verdict, min_coverage: float, pins: frozenset[str]) -> GateRule | None:
    """Return the rule by which ``verdict`` was passed, of a run with these settings; None for a plug-in policy."""
    if verdict.policy not in POLICIES:
        return None
    return GateRule(
        policy=POLICIES[verdict.policy],
        metric=verdict.metric,
        soft_weight=verdict.soft_weight,
        min_coverage=min_coverage,
        enabled=verdict.gated,
        alpha=verdict.terms.alpha,
        margin=verdict.terms.margin,
        no_regression=verdict.no_regression,
        pinned=pins,
        objective=verdict.objective,
        token_margin=verdict.token_margin or 0.0,
        max_tokens=verdict.max_tokens,
    )


def decisions(verdict: Verdict) -> frozenset[Decision]:
    """Return the decisions that follow from the numbers of ``verdict``: one, unless they are on the edge of two.

    Its numbers are floats, and the gate decided on exact ones. What a policy from elsewhere makes of them is not known.
    """
    policy = POLICIES.get(verdict.policy)
    gain, lead = (exact(verdict.score) - exact(reference) for reference in (verdict.current, verdict.best))
    # Equal floats are a tie; others may fall on either side of a margin that they are near to.
    nearby = (gain - _NEARLY, gain, gain + _NEARLY) if gain else (gain,)
    accepts = {True, False} if policy is None else {_accepts(verdict, policy, _told(verdict, near)) for near in nearby}
    return frozenset(_decision(verdict, accept, _leads(verdict, lead)) for accept in accepts)


def _leads(verdict: Verdict, lead: Fraction) -> bool:
    return lead > 0 or (lead == 0 and verdict.leads_on_tokens)


def _told(verdict: Verdict, gain: Fraction) -> Comparison:
    return Comparison(
        total=gain.numerator,
        scale=gain.denominator,
        count=1,
        fixed=verdict.fixed,
        broken=verdict.broken,
        terms=verdict.terms,
        p_value=lambda: verdict.p,
        counts_decide=False,
    )


def decision(verdict: Verdict) -> Decision:
    """Return the decision that follows from the numbers of ``verdict``; a KeyError if its policy is a plug-in."""
    gain, lead = (exact(verdict.score) - exact(reference) for reference in (verdict.current, verdict.best))
    return _decision(verdict, _accepts(verdict, POLICIES[verdict.policy], _told(verdict, gain)), _leads(verdict, lead))


def consistent(verdict: Verdict) -> bool:
    return verdict.decision is Decision.INDECISIVE or verdict.decision in decisions(verdict)
