"""The ends of epochs and of the run: slow updates, memory of the optimizer, test scores, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillgit.app.sources.skillopt.directory import Import, Row
from skillgit.app.sources.skillopt.outcomes import (
    ORIGIN,
    ROUNDING,
    ImportedScore,
    Outcomes,
    RecordedScore,
    measured,
    number,
    read_outcomes,
)
from skillgit.app.sources.skillopt.run_events import ACCEPTED, SKIPPED, Chapter, ImportedJudgement, Step, own
from skillgit.app.sources.skillopt.skill_texts import alike, without_their_markers
from skillgit.app.sources.skillopt.step_events import rule_of
from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary, Split
from skillgit.domain.event import (
    NOBODY,
    Accepted,
    Inherited,
    Rejected,
    RunFinished,
    RunOutcome,
    SlowMerged,
    SlowProposed,
)
from skillgit.domain.evidence_names import COMPARISON
from skillgit.domain.outcomes import contradicted
from skillgit.domain.protected_regions import has_marker, with_slow_guidance
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.model_text import EMPTY, SkillText, clean
from skillgit.engine.evidence_files import json_file

_PLACEHOLDER = "inject_placeholder"
_GATED = frozenset({"accept_new_best", "accept", "reject"})
"""What a gate decides on guidance; by default the reference asks none."""


def tell_epoch(source: Import, step: Step, *, last: bool) -> None:
    """Tell the slow update after the last step of an epoch, if the directory has one with something to say."""
    folder = f"slow_update/epoch_{step.epoch:02d}"
    slow = source.directory.mapping(f"{folder}/slow_result.json") or {}
    meta_place = f"meta_skill/epoch_{step.epoch:02d}/meta_skill_result.json"
    meta = source.directory.mapping(meta_place) or {}
    guidance, memory = _text(slow.get("slow_update_content")), _text(meta.get("meta_skill_content"))
    action = str(slow.get("action") or "")
    if action in {"", _PLACEHOLDER} and not memory:
        return
    if guidance.removed:
        source.story.remark(f"{folder}/slow_result.json is imported without {guidance.removed} hidden characters")
    outcomes = read_outcomes(source.directory, [f"{folder}/selection_eval"], "selection") if guidance else None
    lines = [line.strip(" -*#") for line in guidance.splitlines()]
    title = own(slow).get("title") or next((line for line in lines if line), "nothing to add")
    proposal = SlowProposed(
        **source.common(step.epoch),
        title=str(title),
        why=str(own(slow).get("why") or slow.get("reasoning") or meta.get("reasoning") or ""),
        step=step.number,
        base=source.story.state.version,
        guidance=EMPTY if action in {"", _PLACEHOLDER} else guidance,
        memory=memory,
        models=source.settings.models,
        cost=Cost(seconds=number(slow.get("time_s")) or 0.0),
    )
    evidence = _evidence(source, folder, slow, meta)
    if not proposal.guidance:
        time = source.time(f"{folder}/slow_result.json", meta_place)
        source.story.tell(Chapter(event=proposal, evidence=evidence, time=time))
        return
    _tell_guidance(source, proposal, slow, outcomes, evidence, last=last)


def _tell_guidance(
    source: Import,
    proposal: SlowProposed,
    slow: Row,
    outcomes: Outcomes | None,
    evidence: dict[str, bytes],
    *,
    last: bool,
) -> None:
    story, rule = source.story, source.settings.rule
    action = str(slow.get("action") or "")
    score = source.measured(_claim(slow, proposal.epoch), outcomes)
    rule = rule_of(rule, own(slow))
    if action not in _GATED or score is None:
        rule = replace(rule, enabled=False)
    is_accepted = action in ACCEPTED
    if score is None and last and is_accepted:  # the reference measures the last text at the end of a run
        outcomes = read_outcomes(source.directory, ["final_selection_eval"], "selection")
        score = None if outcomes is None else source.measured(_final_claim(source.summary), outcomes)
    judgement: ImportedJudgement | None = None
    if score is not None:
        where = f"the slow update of epoch {proposal.epoch}"
        judgement = story.judge(rule, score, is_accepted=is_accepted, where=where)
        story.remark(score.remark)
        story.remark(judgement.remark)
        if outcomes is not None:
            is_shown = score.evaluation is not None and judgement.is_consistent
            evidence |= outcomes.evidence("selection.json", is_consistent=is_shown)
    proposal = replace(
        proposal,
        evaluation=None if score is None else score.summary,
        verdict=story.taken_over(rule, is_accepted=is_accepted) if judgement is None else judgement.verdict,
        fixed=() if judgement is None else judgement.pairs.fixed,
        broken=() if judgement is None else judgement.pairs.broken,
    )
    time = source.time(f"slow_update/epoch_{proposal.epoch:02d}/slow_result.json")
    story.tell(Chapter(event=proposal, evidence=evidence, time=time))
    if proposal.verdict is not None and proposal.verdict.decision.accepted:
        _tell_merge(source, proposal, score)


def _claim(slow: Row, epoch: int) -> RecordedScore:
    return RecordedScore(
        path=f"the slow update of epoch {epoch}",
        split=Split.SELECTION,
        hard=number(slow.get("selection_hard")),
        soft=number(slow.get("selection_soft")),
        is_partial=bool(own(slow).get("unneeded")),
        spare=int(str(own(slow).get("spare") or 0)),
    )


def _final_claim(summary: Row) -> RecordedScore:
    hard, soft = (number(summary.get(f"final_selection_{kind}")) for kind in ("hard", "soft"))
    return RecordedScore(path="final_selection_hard in summary.json", split=Split.SELECTION, hard=hard, soft=soft)


def _tell_merge(source: Import, proposal: SlowProposed, score: ImportedScore | None) -> None:
    story = source.story
    base = story.state.version
    if proposal.verdict is None:
        raise AssertionError("guidance that is merged was accepted")
    event = SlowMerged(
        **source.common(proposal.epoch),
        title=proposal.title,
        why=proposal.why,
        step=proposal.step,
        version=base + 1,
        base=base,
        evaluation=Inherited(version=base) if score is None else score.summary,
        verdict=proposal.verdict,
    )
    skill = story.skill.with_text(DOCUMENT, with_slow_guidance(story.skill.document, proposal.guidance))
    outcomes = story.outcomes[-1] if score is None else score.evaluation
    story.tell(Chapter(event=event, skill=skill, evidence={}, time=story.chapters[-1].time), outcomes)


def _evidence(source: Import, folder: str, slow: Row, meta: Row) -> dict[str, bytes]:
    records = {"slow_result.json": slow, "meta_skill_result.json": meta}
    files = {f"{ORIGIN}/{name}": json_file(content) for name, content in records.items() if content}
    pairs = source.directory.listing(f"{folder}/comparison_pairs.json")
    if pairs is not None:
        files[COMPARISON] = json_file([_pair(pair) for pair in pairs])
    return files


def _pair(pair: Row) -> Row:
    entry: Row = {"category": str(pair.get("category") or ""), "id": str(pair.get("id") or ""), "shown": True}
    for name, side in (("current", pair.get("curr")), ("previous", pair.get("prev"))):
        if isinstance(side, dict):
            scores = {key: number(side.get(key)) or 0.0 for key in ("hard", "soft")}
            entry[name] = {"answer": str(side.get("predicted_answer") or ""), **scores}
    return entry


def _text(value: object) -> SkillText:
    text = clean(without_their_markers(str(value or "")).strip())
    return EMPTY if has_marker(text) else text


_TESTS = (("test_eval_baseline", "baseline_test"), ("test_eval", "test"), ("test_eval_final", "final_test"))


def tell_end(source: Import) -> None:
    story, summary = source.story, source.summary
    if not summary:
        last = source.steps[-1].number if source.steps else 0
        story.remark(f"there is no summary.json: the run was interrupted after step {last}, and has no end here either")
        return
    evaluations, evidence = _tests(source)
    final = read_outcomes(source.directory, ["final_selection_eval"], "final")
    newest = next((chapter.event for chapter in reversed(story.chapters) if chapter.skill is not None), None)
    # What was measured at the end may be the last guidance, and told with it.
    is_told = isinstance(newest, SlowMerged) and not (newest.verdict.gated or isinstance(newest.evaluation, Inherited))
    if final is not None and not is_told:
        evidence |= final.evidence("final_selection.json", is_consistent=False)
    for name in ("config.json", "runtime_state.json", "summary.json", "history.json"):
        content = source.directory.listing(name) if name == "history.json" else source.directory.mapping(name)
        if content is not None:
            evidence[f"{ORIGIN}/{name}"] = json_file(content)
    outcome = _outcome(source, evaluations)
    state = story.state
    event = RunFinished(
        **source.common(state.epoch),
        step=state.step,
        title=f"{outcome.value} after {state.step} {'step' if state.step == 1 else 'steps'}",
        outcome=outcome,
        evaluations=tuple(evaluations),
        models=source.settings.models if evaluations else NOBODY,
        cost=Cost(),
    )
    story.tell(Chapter(event=event, evidence=evidence, time=source.time("summary.json")))


def _outcome(source: Import, tests: Sequence[EvaluationSummary]) -> RunOutcome:
    story, rule = source.story, source.settings.rule
    if story.state.best:
        by_version = {summary.version: summary for summary in tests}
        seed, best = by_version.get(0), by_version.get(story.state.best)
        fell = seed and best and contradicted(seed, best, rule.metric, rule.soft_weight)
        return RunOutcome.NOT_CONFIRMED if fell else RunOutcome.IMPROVED
    candidates = any(isinstance(chapter.event, Accepted | Rejected) for chapter in story.chapters)
    return RunOutcome.NULL_RESULT if candidates else RunOutcome.NO_CANDIDATES


def _tests(source: Import) -> tuple[list[EvaluationSummary], dict[str, bytes]]:
    """Return the scores on the test split, of each version once, and the outcomes behind them."""
    story, summaries, evidence = source.story, list[EvaluationSummary](), dict[str, bytes]()
    versions = (0, _best_version(source), story.state.version)
    for (folder, key), version in zip(_TESTS, versions, strict=True):
        if version in {summary.version for summary in summaries}:
            continue
        outcomes = read_outcomes(source.directory, [folder], f"test-{version_label(version)}")
        claim = RecordedScore(
            path=f"{key}_hard in summary.json",
            split=Split.TEST,
            hard=score_of(source.summary, f"{key}_hard"),
            soft=score_of(source.summary, f"{key}_soft"),
        )
        items = tuple(outcomes.outcomes) if outcomes is not None else ()
        score = measured(claim, outcomes, items, source.settings.seed)
        if score is None:
            continue
        story.remark(score.remark)
        summaries.append(replace(score.summary, version=version))
        if outcomes is not None:
            path = f"test-{version_label(version)}.json"
            evidence |= outcomes.evidence(path, is_consistent=score.evaluation is not None)
    return summaries, evidence


def _best_version(source: Import) -> int:
    """Return the newest version whose text is that of ``best_skill.md``; the best one if there is none."""
    best, story = source.directory.text("best_skill.md"), source.story
    if best is None:
        return story.state.best
    text = source.texts.skill(best).document
    same = [number for number, skill in enumerate(story.skills) if alike(skill.document, text)]
    return story.state.best if story.state.best in same or not same else same[-1]


def check_end(source: Import) -> None:
    """Say where the directory's own account of its end differs from that of its steps."""
    story, state, rule = source.story, source.story.state, source.settings.rule
    best = source.directory.text("best_skill.md")
    if best is not None and not alike(source.texts.skill(best).document, story.skills[state.best].document):
        story.remark(
            f"best_skill.md is not the text of {version_label(state.best)},"
            " which has the highest score that was accepted"
        )
    claim = number(source.summary.get("best_selection_hard"))
    if claim is not None and abs(claim - story.best_score(rule)) > ROUNDING:
        story.remark(
            f"summary.json gives the best score as {claim:.6g}, and that of {version_label(state.best)} is"
            f" {story.best_score(rule):.6g}; the latter is kept"
        )
    for name, actions in (("accepts", ACCEPTED), ("rejects", {"reject"}), ("skips", SKIPPED)):
        total, count = source.summary.get(f"total_{name}"), sum(step.action in actions for step in source.steps)
        if isinstance(total, int) and total != count:
            story.remark(f"summary.json counts {name} as {total}, and the steps {count}")
    state_file = source.directory.mapping("runtime_state.json") or {}
    last, stands = len(source.steps), state_file.get("last_completed_step")
    if isinstance(stands, int) and stands != last:
        story.remark(f"runtime_state.json stands at step {stands}, and the steps end with {last}; the steps are taken")
    for step_after in source.directory.numbered("steps", "step_"):
        if step_after > last:
            story.remark(f"step {step_after} was begun and not finished; it is left out")
    if source.settings.density:
        story.remark("the gate's scores had a bonus for emphatic words; the scores here are without it")


def score_of(record: Row, key: str) -> float | None:
    """Return the score in a record; None if there is none between 0 and 1."""
    value = number(record.get(key))
    return value if value is not None and 0.0 <= value <= 1.0 else None
