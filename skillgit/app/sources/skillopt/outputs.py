"""``skillgit import``: the output directory of a SkillOpt run becomes a run with commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os.path import normpath
from pathlib import Path

from skillgit.app.sources.skillopt import epoch_events, step_events
from skillgit.app.sources.skillopt.directory import Directory, Import, ReferenceSettings, Row
from skillgit.app.sources.skillopt.outcomes import ORIGIN, Outcomes, RecordedScore, read_outcomes
from skillgit.app.sources.skillopt.run_events import Chapter, ImportStory, read_steps
from skillgit.app.sources.skillopt.skill_texts import Texts
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.evaluation import Metric, Split
from skillgit.domain.event import Accepted, Rejected, RunFinished, RunStarted, Skipped, SlowMerged
from skillgit.domain.ids import check_run_name, new_run_name, text_digest
from skillgit.domain.untrusted.model_text import SkillText
from skillgit.engine.evidence_files import json_file
from skillgit.errors import ConflictError, DataError, RevisionNotFoundError, SkillError
from skillgit.store import history_reader, refs
from skillgit.store.commit_message import Recorded
from skillgit.store.event_writer import RunWriter
from skillgit.store.lock import RunLock
from skillgit.store.promotion import existing_trunk
from skillgit.store.repo import Repo

_SEED = "skills/skill_v0000.md"
_BASELINE = "selection_eval_baseline"


def read_source(directory: Directory, run: str) -> Import:
    config = directory.mapping("config.json") or {}
    settings = ReferenceSettings.of(config)
    first = directory.text(_SEED)
    if first is None:
        problem = f"what the run in {directory.path} began with is not known: {directory.fault(_SEED)}"
        raise DataError(problem, hint="copy the directory again, or resume the run where it was made")
    step_records, remarks = read_steps(directory)
    baseline = read_outcomes(directory, [_BASELINE], "selection")
    source = Import(
        directory=directory,
        settings=settings,
        texts=Texts(settings.environment or "skill", first),
        run=run,
        steps=step_records,
        summary=directory.mapping("summary.json") or {},
        items=tuple(baseline.outcomes) if baseline is not None else (),
        story=ImportStory(remarks=remarks),
        by_hash={} if baseline is None else {step_events.text_hash(first): baseline},
    )
    _tell_start(source, config, first, baseline)
    return source


def tell(source: Import) -> ImportStory:
    for index, step in enumerate(source.steps):
        step_events.tell_step(source, step)
        following = source.steps[index + 1 : index + 2]
        if not following or following[0].epoch > step.epoch:
            epoch_events.tell_epoch(source, step, last=not following)
        step_events.check_text(source, step)
    epoch_events.tell_end(source)
    epoch_events.check_end(source)
    for sentence in source.directory.remarks:
        source.story.remark(sentence)
    return source.story


def _tell_start(source: Import, config: Row, first: SkillText, baseline: Outcomes | None) -> None:
    settings, directory = source.settings, source.directory
    score = source.measured(_baseline_told(source), baseline)
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
        evidence |= baseline.evidence("selection.json", is_consistent=score.evaluation is not None)
    time = source.time("config.json", _SEED)
    chapter = Chapter(event=event, skill=source.texts.skill(first), evidence=evidence, time=time)
    source.story.tell(chapter, score.evaluation)


def _baseline_told(source: Import) -> RecordedScore:
    """Return what the directory says of the seed's score: the summary does, or the first step that did not accept."""
    metric, file = source.settings.rule.metric, "summary.json"
    score = epoch_events.score_of(source.summary, "baseline_selection_hard")
    first = source.steps[0] if source.steps else None
    if score is None and first is not None and first.action and not first.accepted:
        score, file = first.score("current_score"), "history.json"
    # Under other metrics the number is the gate's, not the strict score that it is named after.
    hard = score if metric is Metric.HARD or not source.items else None
    return RecordedScore(path=file, split=Split.SELECTION, hard=hard, soft=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    run: str
    skill: str
    events: int
    written: int  # how many were written now, or would be
    versions: int  # how many versions it has, the seed included
    rejected: int
    skipped: int
    slow: int
    best: int
    first_score: float  # the score of the seed under the metric of its gate
    best_score: float
    finished: bool
    remarks: tuple[str, ...]  # what the directory does not say, or says in two ways, one sentence each
    dry_run: bool

    @property
    def already(self) -> bool:
        return self.written == 0


def import_outputs(context: Context, outputs: Path, run: str | None = None, *, dry_run: bool = False) -> Imported:
    """Turn a SkillOpt output directory into a run, or add to the run that it became what is new in it.

    A directory that was imported before is found by its events and texts, whatever the run is called. So an import that
    was killed is finished by the next one, and so is the import of a run that went on meanwhile. Without ``run``, the
    name is made from environment and date.
    """
    if run is not None:
        check_run_name(run)
    source = read_source(Directory.open(Path(normpath(context.directory / outputs))), "import")
    story = tell(source)
    with open_workspace(context) as workspace:
        commits = _known(workspace.repo, story)
        # The name is the same for every copy of the directory whose files keep their times.
        digest = bytes.fromhex(text_digest(f"{source.settings.digest} {story.skills[0].digest}"))
        day = story.chapters[0].time.date()
        name = commits or run or new_run_name(source.settings.environment or "import", day, digest)
        chapters = _of_run(story.chapters, name)
        with RunLock(workspace.repo, name, context.clock):
            there = _there(workspace, name, chapters)
            if not dry_run and there < len(chapters):
                _write(workspace, name, chapters, there)
    return _result(source, name, len(story.chapters) - there, dry_run=dry_run)


def _known(repo: Repo, story: ImportStory) -> str:
    """Return the run that this directory became, told from others by all that it has; empty if it is new here."""
    first = story.chapters[0].event
    commits: list[tuple[int, str]] = []
    for name in history_reader.runs(repo):
        try:
            tip = repo.tip(refs.version_tag(name, 0))
            start = None if tip is None else history_reader.read_commit(repo, tip).event
        except RevisionNotFoundError:
            continue
        if isinstance(start, RunStarted) and start == replace(first, run=name):
            records = history_reader.read_run(repo, name)
            same = _same(repo, records, _of_run(story.chapters, name))
            if same == min(len(records), len(story.chapters)):
                commits.append((same, name))
    return max(commits)[1] if commits else ""


def _of_run(chapters: Sequence[Chapter], run: str) -> list[Chapter]:
    return [replace(chapter, event=replace(chapter.event, run=run)) for chapter in chapters]


def _same(repo: Repo, records: Sequence[Recorded], chapters: Sequence[Chapter]) -> int:
    """Return how many events a run and a directory have in common, with their texts, before they differ."""
    pairs = zip(records, chapters, strict=False)
    return next((i for i, pair in enumerate(pairs) if not _equal(repo, *pair)), min(len(records), len(chapters)))


def _equal(repo: Repo, record: Recorded, chapter: Chapter) -> bool:
    if record.event != chapter.event or chapter.skill is None:
        return record.event == chapter.event
    try:
        return history_reader.skill_at(repo, record.commit, chapter.event.skill) == chapter.skill
    except (RevisionNotFoundError, SkillError):
        return False  # whatever is there, it is not this text


def _there(workspace: Workspace, name: str, chapters: Sequence[Chapter]) -> int:
    """Return how many of the events are in the repository already."""
    if name not in history_reader.runs(workspace.repo):
        return 0
    records = history_reader.read_run(workspace.repo, name)
    same = _same(workspace.repo, records, chapters)
    if same < min(len(records), len(chapters)):
        problem = f"run {name} exists already, and is not what this directory tells from its event {same + 1} on"
        raise ConflictError(problem, hint="--run NAME imports it under another name")
    return same


def _write(workspace: Workspace, name: str, chapters: Sequence[Chapter], there: int) -> None:
    start = existing_trunk(workspace.repo)[1]
    time = chapters[there].time
    writer = RunWriter(workspace.repo, name, lambda: time, workspace.repo.identity())
    for chapter in chapters[there:]:
        time = chapter.time  # the clock of the writer shows it
        writer.append(chapter.event, chapter.skill, chapter.evidence, start=start)
    workspace.index.refresh()


def _result(source: Import, name: str, count: int, *, dry_run: bool) -> Imported:
    story, rule = source.story, source.settings.rule
    events = [chapter.event for chapter in story.chapters]
    state = story.state
    return Imported(
        run=name,
        skill=source.path,
        events=len(events),
        written=count,
        versions=1 + sum(isinstance(event, Accepted | SlowMerged) for event in events),
        rejected=sum(isinstance(event, Rejected) for event in events),
        skipped=sum(isinstance(event, Skipped) for event in events),
        slow=sum(isinstance(event, SlowMerged) for event in events),
        best=state.best,
        first_score=state.evaluation(0).score(rule.metric, rule.soft_weight),
        best_score=story.best_score(rule),
        finished=any(isinstance(event, RunFinished) for event in events),
        remarks=tuple(story.remarks),
        dry_run=dry_run,
    )
