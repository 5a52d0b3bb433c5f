"""The end of a run of the reference: its scores on the test split, and whether its own account of them holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.app.importing import epochs, history
from skillgit.app.importing.outcomes import ROUNDING, Told, measured, number, read_outcomes
from skillgit.app.importing.settings import ORIGIN
from skillgit.app.importing.story import Chapter
from skillgit.app.importing.texts import alike
from skillgit.domain.confirmation import contradicted
from skillgit.domain.evaluation import EvaluationSummary, Split
from skillgit.domain.event import NOBODY, Accepted, Cost, Rejected, RunFinished, RunOutcome
from skillgit.engine.artifacts import json_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.importing.directory import Row
    from skillgit.app.importing.source import Source

_TESTS = (
    ("test_eval_baseline", "baseline_test"),
    ("test_eval", "test"),
    ("test_eval_final", "final_test"),
)
_KEPT = ("config.json", "runtime_state.json")


def tell_end(source: Source) -> None:
    """Tell the end of the run, if it has one."""
    story, summary = source.story, source.summary
    if not summary:
        last = source.steps[-1].number if source.steps else 0
        story.remark(f"there is no summary.json: the run was interrupted after step {last}, and has no end here either")
        return
    evaluations, evidence = _tests(source)
    final = read_outcomes(source.directory, ["final_selection_eval"], "final")
    if final is not None and not epochs.measured_at_the_end(source):
        evidence |= final.evidence(f"{ORIGIN}/final_selection.json")
    for name in (*_KEPT, "summary.json", "history.json"):
        found = source.directory.listing(name) if name == "history.json" else source.directory.mapping(name)
        if found is not None:
            evidence[f"{ORIGIN}/{name}"] = json_file(found)
    outcome = _outcome(source, evaluations)
    state = story.state
    event = RunFinished(
        **source.common(state.epoch),
        step=state.step,
        title=f"{outcome.value} after {state.step} steps",
        outcome=outcome,
        evaluations=tuple(evaluations),
        models=source.settings.models if evaluations else NOBODY,
        cost=Cost(),
    )
    time = source.time("summary.json")
    story.tell(Chapter(event=event, evidence=evidence, time=time))


def _outcome(source: Source, tests: Sequence[EvaluationSummary]) -> RunOutcome:
    story, rule = source.story, source.settings.rule
    if story.state.best:
        known = {found.version: found for found in tests}
        seed, best = known.get(0), known.get(story.state.best)
        fell = seed and best and contradicted(seed, best, rule.metric, rule.soft_weight)
        return RunOutcome.NOT_CONFIRMED if fell else RunOutcome.IMPROVED
    candidates = any(isinstance(chapter.event, Accepted | Rejected) for chapter in story.chapters)
    return RunOutcome.NULL_RESULT if candidates else RunOutcome.NO_CANDIDATES


def _tests(source: Source) -> tuple[list[EvaluationSummary], dict[str, bytes]]:
    """Return the scores on the test split, of each version once, and the outcomes behind them."""
    story, found, evidence = source.story, list[EvaluationSummary](), dict[str, bytes]()
    versions = (0, _best_version(source), story.state.version)
    for (folder, key), version in zip(_TESTS, versions, strict=True):
        if version in {one.version for one in found}:
            continue
        outcomes = read_outcomes(source.directory, [folder], f"test-v{version}")
        told = Told(
            place=f"{key}_hard in summary.json",
            split=Split.TEST,
            hard=score_of(source.summary, f"{key}_hard"),
            soft=score_of(source.summary, f"{key}_soft"),
        )
        items = tuple(outcomes.scored) if outcomes is not None else ()
        score = measured(told, outcomes, items, source.settings.seed)
        if score is None:
            continue
        story.remark(score.remark)
        found.append(replace(score.summary, version=version))
        if outcomes is not None:
            path = f"test-v{version}.json"
            evidence |= outcomes.evidence(path if score.evaluation is not None else f"{ORIGIN}/{path}")
    return found, evidence


def _best_version(source: Source) -> int:
    """Return the newest version whose text is that of ``best_skill.md``; the best one if there is none."""
    best, story = source.directory.text("best_skill.md"), source.story
    if best is None:
        return story.state.best
    text = source.texts.skill(best).document
    same = [number for number, skill in enumerate(story.skills) if alike(skill.document, text)]
    return story.state.best if story.state.best in same or not same else same[-1]


def check_end(source: Source) -> None:
    """Tell where the directory's own account of its end differs from that of its steps."""
    story, state, rule = source.story, source.story.state, source.settings.rule
    best = source.directory.text("best_skill.md")
    if best is not None and not alike(source.texts.skill(best).document, story.skills[state.best].document):
        story.remark(f"best_skill.md is not the text of v{state.best}, which has the highest score that was accepted")
    told = number(source.summary.get("best_selection_hard"))
    if told is not None and abs(told - story.best_score(rule)) > ROUNDING:
        story.remark(
            f"summary.json gives the best score as {told:.6g}, and that of v{state.best} is"
            f" {story.best_score(rule):.6g}; the latter is kept"
        )
    counts = {"total_accepts": 0, "total_rejects": 0, "total_skips": 0}
    for step in source.steps:
        counts["total_accepts"] += step.accepted
        counts["total_rejects"] += step.action == "reject"
        counts["total_skips"] += step.action in history.SKIPPED
    for key, found in counts.items():
        if isinstance(source.summary.get(key), int) and source.summary[key] != found:
            story.remark(
                f"summary.json counts {key.removeprefix('total_')} as {source.summary[key]}, and the steps {found}"
            )
    state_file = source.directory.mapping("runtime_state.json") or {}
    last, stands = len(source.steps), state_file.get("last_completed_step")
    if isinstance(stands, int) and stands != last:
        story.remark(f"runtime_state.json stands at step {stands}, and the steps end with {last}; the steps are taken")
    begun = [number for number in source.directory.numbered("steps", "step_") if number > last]
    for number_ in begun:
        story.remark(f"step {number_} was begun and not finished; it is left out")
    if source.settings.density:
        story.remark("the gate's scores had a bonus for emphatic words; the scores here are without it")


def score_of(record: Row, key: str) -> float | None:
    """Return the score in a record; None if there is none between 0 and 1."""
    found = number(record.get(key))
    return found if found is not None and 0.0 <= found <= 1.0 else None
