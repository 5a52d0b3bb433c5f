"""When a run ends before its last step, how it turned out, and the sentence that says why.

Only what the run found out is recorded. A provider that failed, a cap that was reached and a user who stopped it end a
process, not the run: they write no event, and the run continues from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Evaluation, Metric, Split, cut_phrase
from skillgit.domain.event import RunOutcome
from skillgit.domain.gate_decision import Decision
from skillgit.domain.outcomes import Confirmation, Pairs, confirmation
from skillgit.domain.placebo import Placebo, no_op
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.statistics import CHANCE, may_be_chance, minimum_detectable_effect
from skillgit.engine import evidence_files
from skillgit.engine.gating import judge, recorded
from skillgit.engine.session import Session, Stage
from skillgit.errors import NotLoadedError


def stop_at_once(session: Session, state: RunState) -> str:
    """Return why nothing more can be gained, so that the run ends now; empty if something can."""
    settings, evaluation = session.settings, state.evaluation(state.version)
    is_covered = evaluation.coverage >= settings.evaluation.min_coverage
    if session.ends_at_ceiling and is_covered and session.score(state, state.version) >= 1.0:
        version = version_label(state.version)
        return f"{version} has the full score on the selection split, so that no edit can score higher."
    return ""


def stop_before_step(session: Session, state: RunState) -> str:
    """Return why no further step is taken though there would be one; empty if one is taken."""
    patience = session.settings.train.patience
    count = state.step - state.versions[state.best].step
    if patience and count >= patience and state.step < session.steps:
        steps = "1 step" if count == 1 else f"{count} steps in a row"
        return f"{steps} made no new best version, and train.patience is {patience}."
    return ""


def check_loading(session: Session, state: RunState) -> None:
    """Raise a NotLoadedError before the first step of a run whose agent loaded the seed in no rollout."""
    evaluation = state.known_evaluation(0)
    loads = evaluation.loads if evaluation is not None else None
    if session.settings.train.require_loading and not state.step and loads is not None and loads.is_never:
        hint = "say in the skill's description when to use it, and begin another run"
        raise NotLoadedError(f"{loads.phrase} of the baseline, so no change to its text can be measured", hint=hint)


def stop_sentence(session: Session, state: RunState) -> str:
    """Return why a run that finishes at ``state`` has not done all its steps; empty if it has."""
    if state.step >= session.steps:
        return ""
    return stop_at_once(session, state) or stop_before_step(session, state)


SAMPLES_APART = 1_000_000
"""So far apart are the draws of one placebo from those of another, and from those of real candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceboResult:
    counts: Placebo | None = None  # how many there were and passed; absent if there were none
    sentence: str = ""  # what that means; empty if there were none
    files: evidence_files.Evidence


async def measure_placebo(
    session: Session, state: RunState, skill: Skill, slots: asyncio.Semaphore | None = None
) -> PlaceboResult:
    """Gate ``train.placebo`` no-op candidates as real ones, on fresh draws of every item, and discard them.

    ``slots`` are the places of rollouts in progress, where they are shared with others.
    """
    count = session.settings.train.placebo
    if not count:
        return PlaceboResult(files={})
    session.monitor.stage(Stage.PLACEBO, count * len(session.task.items[Split.SELECTION]))
    rows: list[dict[str, object]] = []
    for number in range(1, count + 1):
        candidate = no_op(skill, number)
        judgement = await judge(session, state, skill, candidate.skill, sample=SAMPLES_APART * number, slots=slots)
        verdict, decision = judgement.verdict, judgement.verdict.decision
        row = {"number": number, "change": candidate.change, "decision": decision.value, "accepted": decision.accepted}
        numbers = {"score": verdict.score, "current": verdict.current, "p": verdict.p}
        rows.append(row | numbers | {"fixed": list(judgement.fixes), "broken": list(judgement.breaks)})
    counts = Placebo(n=count, accepted=sum(bool(row["accepted"]) for row in rows))
    quiet = not any(row["fixed"] or row["broken"] for row in rows)
    return PlaceboResult(
        counts=counts, sentence=_sentence(counts, quiet=quiet), files={"placebo.json": evidence_files.json_file(rows)}
    )


def _sentence(counts: Placebo, *, quiet: bool) -> str:
    candidates = "1 candidate that changes" if counts.n == 1 else f"{counts.n} candidates that change"
    sentence = f"Placebo: {counts.accepted} of {candidates} nothing passed the gate (rate {counts.rate:.2f})."
    if quiet:
        return f"{sentence} No outcome of an item differed: this target answers alike every time, without noise."
    return sentence


def run_outcome(session: Session, state: RunState, tests: Mapping[int, Evaluation]) -> RunOutcome:
    """Return how a run that has done all its steps ended, by ``tests``: version to its evaluation on the test split.

    A best version that scores higher than the seed on the selection split makes a run improved, unless the test split
    contradicts it (see :mod:`skillgit.domain.outcomes`). Without a test split nothing contradicts it.
    """
    first, best = _selection_scores(session, state)
    if state.best > 0 and (best > first or (session.rule.counts_tokens and best == first)):
        confirmation = _confirmation(session, state, tests)
        is_contradicted = confirmation is not None and confirmation.contradicts
        return RunOutcome.NOT_CONFIRMED if is_contradicted else RunOutcome.IMPROVED
    if session.score(state, 0) >= 1.0:
        return RunOutcome.CEILING
    if all(step.decision is None for step in state.memory if not step.by_hand):
        return RunOutcome.NO_CANDIDATES
    effect = detectable(session)
    if effect is None or effect > headroom(session, state):
        return RunOutcome.UNDERPOWERED
    return RunOutcome.NULL_RESULT


def is_chance(session: Session, state: RunState) -> bool:
    """Say whether the gain of the best version over the seed on the selection split may be chance."""
    first, best = _selection_scores(session, state)
    evaluation = state.known_evaluation(state.best)
    items = evaluation.scored if evaluation is not None else 0
    return best > first and may_be_chance(best - first, items, graded=session.rule.metric is not Metric.HARD)


def outcome_words(session: Session, state: RunState, outcome: RunOutcome) -> str:
    """Return the outcome, and that it may be chance where no test can tell."""
    is_qualified = outcome is RunOutcome.IMPROVED and is_chance(session, state)
    return f"{outcome.value}, {CHANCE}" if is_qualified else outcome.value


def _selection_scores(session: Session, state: RunState) -> tuple[float, float]:
    """Return the scores of seed and best version, over the items that have one under both, where these are here."""
    seed, best = recorded(session, 0), recorded(session, state.best)
    if seed is not None and best is not None:
        pairs = Pairs(best, seed, session.rule.metric, session.rule.soft_weight)
        if pairs.gains:
            return float(pairs.current), float(pairs.score)
    return session.score(state, 0), session.score(state, state.best)


def _confirmation(session: Session, state: RunState, tests: Mapping[int, Evaluation]) -> Confirmation | None:
    rule = session.rule
    if 0 not in tests or state.best not in tests:
        return None
    return confirmation(tests[0], tests[state.best], rule.metric, rule.soft_weight)


def detectable(session: Session) -> float | None:
    """Return the smallest gain that the paired test would find on the selection split; None if it would find none."""
    return minimum_detectable_effect(len(session.task.items[Split.SELECTION]), alpha=session.rule.alpha)


def headroom(session: Session, state: RunState) -> float:
    return 1.0 - session.score(state, state.best)


def finish_sentence(session: Session, state: RunState, outcome: RunOutcome, tests: Mapping[int, Evaluation]) -> str:
    """Return one or two sentences that explain the outcome; ``tests`` as for :func:`run_outcome`."""
    first, best = _selection_scores(session, state)
    match outcome:
        case RunOutcome.IMPROVED | RunOutcome.NOT_CONFIRMED:
            version = version_label(state.best)
            gain = f"{version} scores {best:.4f} on the selection split where the seed scores {first:.4f}"
            gain += _token_clause(state)
            sentence = _test_sentence(gain, _confirmation(session, state, tests), session.rule.alpha)
            items = len(session.task.items[Split.SELECTION])
            chance = f" On {items} selection {'item' if items == 1 else 'items'} such a gain {CHANCE}."
            return sentence + (chance if is_chance(session, state) else "")
        case RunOutcome.CEILING:
            return "The seed solves every selection item, so that no edit can score higher."
        case RunOutcome.NO_CANDIDATES:
            return "No step produced a candidate to measure."
        case RunOutcome.UNDERPOWERED:
            return _underpowered(session, state, first)
        case RunOutcome.NULL_RESULT:
            return _null_result(state, first)
        case RunOutcome.PROVIDER_FAILURE | RunOutcome.BUDGET | RunOutcome.STOPPED:
            raise AssertionError(f"{outcome} ends a process, not a run")
        case _:
            assert_never(outcome)


def loading_sentence(state: RunState) -> str:
    """Say in how many rollouts an agent loaded the best version; empty for a model that reads it as text."""
    for version in dict.fromkeys((state.best, 0)):
        evaluation = state.known_evaluation(version)
        if evaluation is not None and evaluation.loads is not None:
            return f"{version_label(version)}: {evaluation.loads.sentence}."
    return ""


def _token_clause(state: RunState) -> str:
    seed, best = (state.evaluation(version).tokens for version in (0, state.best))
    return "" if seed is None or best is None else f" ({best:,.1f} tokens an item, {seed:,.1f} with the seed)"


def cut_sentence(state: RunState) -> str:
    """Say how many replies behind the scores of seed and best version were cut; empty if none was."""
    for version in dict.fromkeys((state.best, 0)):
        evaluation = state.known_evaluation(version)
        if evaluation is not None and evaluation.cut:
            return f"Of {version_label(version)}, {cut_phrase(evaluation.cut, evaluation.scored)}."
    return ""


def _test_sentence(gain: str, test: Confirmation | None, alpha: float) -> str:
    if test is None:
        return f"{gain}. No test score was measured, so only the split that selected it vouches for the gain."
    scores = f"{test.best:.4f} on the test split where the seed scores {test.seed:.4f}"
    over = f"over {test.items} {'item' if test.items == 1 else 'items'}"
    if not test.contradicts:
        return f"{gain}, and {scores}, {over}."
    verdict = "a loss" if test.p_loss <= alpha else "chance"
    return (
        f"{gain}, but only {scores}, {over}: the test split does not confirm the gain. The paired test at alpha"
        f" {alpha:g} takes the fall for {verdict} (p {test.p_loss:.4f})."
    )


def _underpowered(session: Session, state: RunState, first: float) -> str:
    effect, items = detectable(session), len(session.task.items[Split.SELECTION])
    limit = "no gain" if effect is None else f"no gain under {effect:.4f}"
    return (
        f"The seed scores {first:.4f}: what is left to gain is {headroom(session, state):.4f}, and {items} selection"
        f" items tell {limit} from chance."
    )


def _null_result(state: RunState, first: float) -> str:
    decisions = [step.decision for step in state.memory if step.decision is not None and not step.by_hand]
    count = decisions.count(Decision.INDECISIVE)
    summary = "1 candidate was measured" if len(decisions) == 1 else f"{len(decisions)} candidates were measured"
    if count:
        return (
            f"{summary}; too few items could be evaluated to decide on {count}, and no other scores above the"
            f" seed's {first:.4f}."
        )
    if any(
        step.decision is Decision.REJECT and step.verdict.score > first and not step.is_bound for step in state.memory
    ):
        return f"{summary} and the gate took none in place of the seed, which scores {first:.4f}."
    return f"{summary} and none scores above the seed's {first:.4f}."
