"""``skillgit import``: the output directory of a run of the reference becomes a run with commits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.importing.directory import Directory
from skillgit.app.importing.telling import read_source, tell
from skillgit.app.workspace import open_workspace
from skillgit.domain.event import Accepted, Rejected, RunFinished, RunStarted, Skipped, SlowMerged
from skillgit.domain.ids import check_run_name, new_run_name, text_digest
from skillgit.errors import ConflictError, RevisionNotFoundError
from skillgit.store import reader, refs
from skillgit.store.lock import RunLock
from skillgit.store.writer import RunWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from skillgit.app.context import Context
    from skillgit.app.importing.source import Source
    from skillgit.app.importing.story import Chapter, Story
    from skillgit.app.workspace import Workspace
    from skillgit.domain.event import Event
    from skillgit.store.repo import Repo

_NAMELESS = "import"
"""What the run is called while its name is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did, or would do.

    Attributes:
        run: The run.
        skill: Path of its skill folder.
        events: How many events it has.
        written: How many of them were written now, or would be.
        versions: How many versions it has, the seed included.
        rejected: How many candidates were rejected.
        skipped: How many steps had no candidate.
        slow: How many slow updates were merged.
        best: The best version.
        first_score: The score of the seed under the metric of its gate.
        best_score: That of the best version.
        finished: Whether the run reached its end.
        remarks: What the directory does not say, or says in two ways, one sentence each.
        dry_run: Whether nothing was written.
    """

    run: str
    skill: str
    events: int
    written: int
    versions: int
    rejected: int
    skipped: int
    slow: int
    best: int
    first_score: float
    best_score: float
    finished: bool
    remarks: tuple[str, ...]
    dry_run: bool

    @property
    def already(self) -> bool:
        """Whether everything was here before."""
        return self.written == 0


def import_outputs(context: Context, outputs: Path, run: str | None = None, *, dry_run: bool = False) -> Imported:
    """Turn a SkillOpt output directory into a run, or add to the run that it became what is new in it.

    A directory that was imported before is found by its events, whatever the run is called. So an import that was
    killed is finished by the next one, and so is the import of a run that went on meanwhile.

    Args:
        context: Where the repository is.
        outputs: The directory.
        run: The name of the run; None makes one from environment and date.
        dry_run: Whether only to say what would be done.

    Raises:
        ConflictError: There is another run of that name.
        DataError: The directory is none of SkillOpt's, or holds nothing to import.
        RevisionNotFoundError: The repository has no ``main`` to start from.
        UsageError: ``run`` cannot name a run.
    """
    if run is not None:
        check_run_name(run)
    source = read_source(Directory.open(Path(normpath(context.directory / outputs))), _NAMELESS)
    story = tell(source)
    with open_workspace(context) as workspace:
        known = _known(workspace.repo, story)
        name = known or run or _new_name(source, story)
        chapters = [replace(chapter, event=replace(chapter.event, run=name)) for chapter in story.chapters]
        with RunLock(workspace.repo, name, context.clock):
            there = _there(workspace, name, chapters)
            if not dry_run and there < len(chapters):
                _write(workspace, name, chapters, there)
    return _result(source, name, len(story.chapters) - there, dry_run=dry_run)


def _new_name(source: Source, story: Story) -> str:
    """Return a name that is the same for every copy of the directory whose files keep their times."""
    digest = text_digest(f"{source.settings.digest} {story.skills[0].digest}")
    day = story.chapters[0].time.date()
    return new_run_name(source.settings.environment or "import", day, bytes.fromhex(digest))


def _known(repo: Repo, story: Story) -> str:
    """Return the run that this directory became; empty if it is new here.

    Runs of the same beginning are told apart by what they have further on.
    """
    first = story.chapters[0].event
    found: list[tuple[int, str]] = []
    for name in reader.runs(repo):
        try:
            start = reader.read_commit(repo, _beginning(repo, name)).event
        except RevisionNotFoundError:
            continue
        if isinstance(start, RunStarted) and isinstance(first, RunStarted) and start == replace(first, run=name):
            events = [record.event for record in reader.read_run(repo, name)]
            same = _same(events, [replace(chapter.event, run=name) for chapter in story.chapters])
            if same == min(len(events), len(story.chapters)):
                found.append((same, name))
    return max(found)[1] if found else ""


def _beginning(repo: Repo, run: str) -> str:
    """Return the commit of the version 0 of ``run``."""
    tip = repo.tip(refs.version_tag(run, 0))
    if tip is None:
        raise RevisionNotFoundError(f"run {run} has no v0 here", hint="skillgit runs")
    return tip


def _same(there: Sequence[Event], told: Sequence[Event]) -> int:
    """Return how many events two runs have in common before they differ."""
    pairs = zip(there, told, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(there), len(told)))


def _there(workspace: Workspace, name: str, chapters: Sequence[Chapter]) -> int:
    """Return how many of the events are in the repository already.

    Raises:
        ConflictError: The run has others.
    """
    if name not in reader.runs(workspace.repo):
        return 0
    events = [record.event for record in reader.read_run(workspace.repo, name)]
    same = _same(events, [chapter.event for chapter in chapters])
    if same < min(len(events), len(chapters)):
        raise ConflictError(
            f"run {name} exists already, and is not what this directory tells from its event {same + 1} on",
            hint="--run NAME imports it under another name",
        )
    return min(len(events), len(chapters))


def _write(workspace: Workspace, name: str, chapters: Sequence[Chapter], there: int) -> None:
    main = workspace.repo.tip(refs.MAIN)
    if main is None:
        raise RevisionNotFoundError("the repository has no branch main to start from", hint="skillgit init")
    clock = _Clock(chapters[there].time)
    writer = RunWriter(workspace.repo, name, clock, workspace.repo.identity())
    for chapter in chapters[there:]:
        clock.time = chapter.time
        writer.append(chapter.event, chapter.skill, chapter.evidence, start=main)
    workspace.index.refresh()


class _Clock:
    """Shows the time of the event that is being written."""

    def __init__(self, time: datetime) -> None:
        self.time = time

    def __call__(self) -> datetime:
        return self.time


def _result(source: Source, name: str, written: int, *, dry_run: bool) -> Imported:
    story, rule = source.story, source.settings.rule
    events = [chapter.event for chapter in story.chapters]
    state = story.state
    return Imported(
        run=name,
        skill=source.path,
        events=len(events),
        written=written,
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
