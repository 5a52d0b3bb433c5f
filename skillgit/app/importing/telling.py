"""How a directory becomes a story: the seed, the steps, the ends of epochs, the end of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.importing import ends, epochs, history, steps
from skillgit.app.importing.outcomes import Told, measured, read_outcomes
from skillgit.app.importing.settings import ORIGIN, Settings
from skillgit.app.importing.source import Source
from skillgit.app.importing.story import Chapter, Story
from skillgit.app.importing.texts import Texts
from skillgit.domain.evaluation import Metric, Split
from skillgit.domain.event import RunStarted
from skillgit.engine.artifacts import json_file
from skillgit.errors import DataError

if TYPE_CHECKING:
    from skillgit.app.importing.directory import Directory, Row
    from skillgit.app.importing.outcomes import Outcomes
    from skillgit.domain.untrusted.text import SkillText

_SEED = "skills/skill_v0000.md"
_BASELINE = "selection_eval_baseline"


def read_source(directory: Directory, run: str) -> Source:
    """Return ``directory`` with its seed told.

    Raises:
        DataError: It was interrupted before the seed had a score, or is not what it should be.
    """
    config = directory.mapping("config.json") or {}
    settings = Settings.of(config)
    first = directory.text(_SEED)
    if first is None:
        raise DataError(
            f"{directory.path} has no {_SEED}, so that nobody can tell what the run began with",
            hint="it was interrupted before its first step, or copied in part",
        )
    found, remarks = history.read_steps(directory)
    baseline = read_outcomes(directory, [_BASELINE], "selection")
    source = Source(
        directory=directory,
        settings=settings,
        texts=Texts(settings.environment or "skill", first),
        run=run,
        steps=found,
        summary=directory.mapping("summary.json") or {},
        items=tuple(baseline.scored) if baseline is not None else (),
        story=Story(remarks=remarks),
        by_hash={} if baseline is None else {steps.text_hash(first): baseline},
    )
    _tell_start(source, config, first, baseline)
    return source


def tell(source: Source) -> Story:
    """Return the whole story of ``source``.

    Raises:
        DataError: A score is none.
        SkillError: A text is no skill.
    """
    for place, step in enumerate(source.steps):
        steps.tell_step(source, step)
        following = source.steps[place + 1 : place + 2]
        if not following or following[0].epoch > step.epoch:
            epochs.tell_epoch(source, step, last=not following)
        steps.check_text(source, step)
    ends.tell_end(source)
    ends.check_end(source)
    for sentence in source.directory.remarks:
        source.story.remark(sentence)
    return source.story


def _tell_start(source: Source, config: Row, first: SkillText, baseline: Outcomes | None) -> None:
    settings, directory = source.settings, source.directory
    score = measured(_baseline_told(source), baseline, source.items, settings.seed)
    if score is None:
        raise DataError(
            f"{directory.path} was interrupted before its first skill had a score, so that there is nothing to import",
            hint="resume the run where it was made",
        )
    source.story.remark(score.remark)
    if baseline is None:
        source.story.remark(
            f"{_BASELINE}/results.jsonl is missing; the one score that is told of the first skill stands for both its"
            " strict score and the one with partial credit"
        )
    name = settings.environment or "an unnamed environment"
    mark = f"{ORIGIN}:{settings.environment}" if settings.environment else ORIGIN
    event = RunStarted(
        **source.common(0),
        title=f"import {settings.environment or 'a run'} from {ORIGIN}",
        why=f"The run was trained by the reference implementation on {name}, and imported from its output directory.",
        config=f"{ORIGIN}:{settings.digest}",
        splits="",
        environment=mark,
        models=settings.models,
        evaluation=score.summary,
        gauge=settings.gauge,
    )
    evidence = {
        "config.json": json_file(settings.sections),
        "environment.json": json_file({"name": settings.environment, "digest": mark, "imported_from": ORIGIN}),
        f"{ORIGIN}/config.json": json_file(config),
    }
    if baseline is not None:
        shown = score.evaluation is not None
        evidence |= baseline.evidence("selection.json" if shown else f"{ORIGIN}/selection.json")
    time = source.time("config.json", _SEED)
    chapter = Chapter(event=event, skill=source.texts.skill(first), evidence=evidence, time=time)
    source.story.tell(chapter, score.evaluation)


def _baseline_told(source: Source) -> Told:
    """Return what the directory says of the seed's score: the summary does, or the first step that did not accept."""
    metric, place = source.settings.rule.metric, "summary.json"
    found = ends.score_of(source.summary, "baseline_selection_hard")
    first = source.steps[0] if source.steps else None
    if found is None and first is not None and first.action and not first.accepted:
        found, place = first.score("current_score"), "history.json"
    # Under other metrics the number is the gate's, not the strict score that it is named after.
    hard = found if metric is Metric.HARD or not source.items else None
    return Told(place=place, split=Split.SELECTION, hard=hard, soft=None)
