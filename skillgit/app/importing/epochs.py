"""The ends of epochs: guidance of the slow update and memory of the optimizer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.app.importing.history import ACCEPTED
from skillgit.app.importing.outcomes import Told, measured, number, read_outcomes
from skillgit.app.importing.settings import ORIGIN
from skillgit.app.importing.steps import rule_of
from skillgit.app.importing.story import Chapter
from skillgit.app.importing.texts import without_their_markers
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Split
from skillgit.domain.event import Inherited, SlowMerged, SlowProposed
from skillgit.domain.skill import DOCUMENT, has_marker, with_slow_guidance
from skillgit.domain.untrusted.text import EMPTY, clean
from skillgit.engine.artifacts import json_file

if TYPE_CHECKING:
    from skillgit.app.importing.directory import Row
    from skillgit.app.importing.history import Step
    from skillgit.app.importing.outcomes import Measured, Outcomes
    from skillgit.app.importing.source import Source
    from skillgit.app.importing.story import Judged
    from skillgit.domain.skill import Skill
    from skillgit.domain.untrusted.text import SkillText

_PLACEHOLDER = "inject_placeholder"
_GATED = frozenset({"accept_new_best", "accept", "reject"})
"""What a gate decides on guidance; by default the reference asks none."""
_FINAL = "final_selection_eval"


def tell_epoch(source: Source, step: Step, *, last: bool) -> None:
    """Tell the slow update after the last step of an epoch, if the directory has one with something to say.

    Args:
        source: The directory.
        step: The last step of the epoch.
        last: Whether it is the last one of the run.
    """
    place = f"slow_update/epoch_{step.epoch:02d}"
    slow = source.directory.mapping(f"{place}/slow_result.json") or {}
    meta_place = f"meta_skill/epoch_{step.epoch:02d}/meta_skill_result.json"
    meta = source.directory.mapping(meta_place) or {}
    guidance, memory = _text(slow.get("slow_update_content")), _text(meta.get("meta_skill_content"))
    action = str(slow.get("action") or "")
    if action in {"", _PLACEHOLDER} and not memory:
        return
    if guidance.removed:
        source.story.remark(f"{place}/slow_result.json is imported without {guidance.removed} hidden characters")
    outcomes = read_outcomes(source.directory, [f"{place}/selection_eval"], "selection") if guidance else None
    proposed = SlowProposed(
        **source.common(step.epoch),
        title=_title(slow, guidance),
        why=str(_own(slow).get("why") or slow.get("reasoning") or meta.get("reasoning") or ""),
        step=step.number,
        base=source.story.state.version,
        guidance=EMPTY if action in {"", _PLACEHOLDER} else guidance,
        memory=memory,
        models=source.settings.models,
        cost=Cost(seconds=number(slow.get("time_s")) or 0.0),
    )
    evidence = _evidence(source, place, slow, meta)
    if not proposed.guidance:
        time = source.time(f"{place}/slow_result.json", meta_place)
        source.story.tell(Chapter(event=proposed, evidence=evidence, time=time))
        return
    _tell_guidance(source, proposed, slow, outcomes, evidence, last=last)


def measured_at_the_end(source: Source) -> bool:
    """Say whether the measurement at the end of the run is that of the last guidance, and was told with it."""
    last = next((chapter.event for chapter in reversed(source.story.chapters) if chapter.skill is not None), None)
    return isinstance(last, SlowMerged) and not last.verdict.gated and not isinstance(last.evaluation, Inherited)


def _tell_guidance(
    source: Source,
    proposed: SlowProposed,
    slow: Row,
    outcomes: Outcomes | None,
    evidence: dict[str, bytes],
    *,
    last: bool,
) -> None:
    story, rule = source.story, source.settings.rule
    action = str(slow.get("action") or "")
    score = _gated_score(source, slow, outcomes, proposed.epoch)
    rule = rule_of(rule, _own(slow))
    if action not in _GATED or score is None:
        rule = replace(rule, enabled=False)
    accepted = action in ACCEPTED
    if score is None and last and accepted:
        outcomes = read_outcomes(source.directory, [_FINAL], "selection")
        score = _final_score(source, outcomes)
    judged: Judged | None = None
    if score is not None:
        place = f"the slow update of epoch {proposed.epoch}"
        judged = story.judge(rule, score, accepted=accepted, place=place)
        story.remark(score.remark)
        story.remark(judged.remark)
        if outcomes is not None:
            shown = score.evaluation is not None and judged.shown
            evidence |= outcomes.evidence("selection.json" if shown else f"{ORIGIN}/selection.json")
    proposed = replace(
        proposed,
        evaluation=None if score is None else score.summary,
        verdict=story.taken_over(rule, accepted=accepted) if judged is None else judged.verdict,
        fixed=() if judged is None else judged.pairs.fixed,
        broken=() if judged is None else judged.pairs.broken,
    )
    time = source.time(f"slow_update/epoch_{proposed.epoch:02d}/slow_result.json")
    story.tell(Chapter(event=proposed, evidence=evidence, time=time))
    if proposed.verdict is not None and proposed.verdict.decision.accepted:
        _tell_merge(source, proposed, score)


def _tell_merge(source: Source, proposed: SlowProposed, score: Measured | None) -> None:
    story = source.story
    base = story.state.version
    if proposed.verdict is None:
        raise AssertionError("guidance that is merged was accepted")
    event = SlowMerged(
        **source.common(proposed.epoch),
        title=proposed.title,
        why=proposed.why,
        step=proposed.step,
        version=base + 1,
        base=base,
        evaluation=Inherited(version=base) if score is None else score.summary,
        verdict=proposed.verdict,
    )
    skill = _with_guidance(story.skill, proposed.guidance)
    outcomes = story.outcomes[-1] if score is None else score.evaluation
    story.tell(Chapter(event=event, skill=skill, evidence={}, time=story.chapters[-1].time), outcomes)


def _with_guidance(skill: Skill, guidance: SkillText) -> Skill:
    return skill.with_text(DOCUMENT, with_slow_guidance(skill.document, guidance))


def _gated_score(source: Source, slow: Row, outcomes: Outcomes | None, epoch: int) -> Measured | None:
    own = _own(slow)
    told = Told(
        place=f"the slow update of epoch {epoch}",
        split=Split.SELECTION,
        hard=number(slow.get("selection_hard")),
        soft=number(slow.get("selection_soft")),
        unneeded=bool(own.get("unneeded")),
        spare=int(str(own.get("spare") or 0)),
    )
    return measured(told, outcomes, source.items, source.settings.seed)


def _final_score(source: Source, outcomes: Outcomes | None) -> Measured | None:
    """Return the score of the last text, which the reference measures at the end of a run."""
    if outcomes is None:
        return None
    told = Told(
        place="final_selection_hard in summary.json",
        split=Split.SELECTION,
        hard=number(source.summary.get("final_selection_hard")),
        soft=number(source.summary.get("final_selection_soft")),
    )
    return measured(told, outcomes, source.items, source.settings.seed)


def _evidence(source: Source, place: str, slow: Row, meta: Row) -> dict[str, bytes]:
    found = {
        f"{ORIGIN}/{name}": json_file(content)
        for name, content in (("slow_result.json", slow), ("meta_skill_result.json", meta))
        if content
    }
    pairs = source.directory.listing(f"{place}/comparison_pairs.json")
    if pairs is not None:
        found["comparison.json"] = json_file([_pair(pair) for pair in pairs])
    return found


def _pair(pair: Row) -> Row:
    sides = {"current": pair.get("curr"), "previous": pair.get("prev")}
    return {
        "category": str(pair.get("category") or ""),
        "id": str(pair.get("id") or ""),
        "shown": True,
        **{name: _side(side) for name, side in sides.items() if isinstance(side, dict)},
    }


def _side(side: Row) -> Row:
    return {
        "answer": str(side.get("predicted_answer") or ""),
        "hard": number(side.get("hard")) or 0.0,
        "soft": number(side.get("soft")) or 0.0,
    }


def _title(slow: Row, guidance: str) -> str:
    lines = [line.strip(" -*#") for line in guidance.splitlines()]
    return str(_own(slow).get("title") or next((line for line in lines if line), "nothing to add"))


def _own(record: Row) -> Row:
    found = record.get("skillgit")
    return found if isinstance(found, dict) else {}


def _text(value: object) -> SkillText:
    text = clean(without_their_markers(str(value or "")).strip())
    return EMPTY if has_marker(text) else text
