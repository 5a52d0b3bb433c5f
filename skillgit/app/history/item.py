"""``skillgit items --item``: one item over all versions and candidates, with answers, reasons and trajectories."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Literal

from skillgit.app.recorded.evidence_json import evidence_file, figure, members, objects
from skillgit.app.recorded.outcomes import (
    Attempted,
    ItemOutcome,
    RunOutcomes,
    absences,
    evidence_trees,
    load,
    unknown_item,
)
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import BRING, Absence, Workspace
from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.outcomes import SELECTION
from skillgit.domain.trajectory import Turn, media_type_of
from skillgit.errors import NotFoundError, SkillgitError
from skillgit.index import item_queries
from skillgit.index.item_queries import MeasuredRow
from skillgit.lazy import loaded_on_use

with loaded_on_use():  # only pictures need the data
    from skillgit.app.setup import recorded_setup
    from skillgit.plugin import backend, registry
    from skillgit.plugin import environment as plugin_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One version or candidate at work on the item."""

    name: str  # what it is called: `v7`, `r18`
    commit: str
    version: int | None  # the version; absent for a candidate
    title: str
    outcome: ItemOutcome | None  # absent if it was not measured, like behind the point where a candidate was refused
    answer: str = ""  # the answer that was scored; empty if the evidence is not here
    feedback: str = ""  # why it got its score; empty likewise
    trajectory: str = ""  # its tree and path in the evidence, as git takes it; empty if there is none here
    absence: Absence | None = None  # why it is unknown whether it was measured on the item; absent where that is known
    told: Literal["fixed", "broken"] | None = None  # what its commit message says it did to the item


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStory:
    run: str
    metric: str
    item: str
    task_type: str
    question: str  # what the target was asked first, in full; empty if the evidence is not here
    first: str  # the first version that is known to have solved it; empty if none is
    flips: tuple[str, ...]  # where it changed between solved and not solved; `v3..v7` if not known where exactly
    solved: int
    measured: int  # how many versions have a score of their own on it that is known here
    doubts: tuple[str, ...]  # what speaks for a noisy outcome
    attempts: tuple[Attempt, ...]  # versions and candidates, oldest first; only the newest if there was a limit
    every: int  # how many of them there are without it
    is_first: bool = True  # whether all versions before `first` are known; without it, whether all versions are
    unknown: int = 0  # how many more versions may have a score of their own, in evidence that is not here


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTrajectory:
    run: str
    item: str
    attempt: Attempt  # the version or candidate, with the outcome
    turns: tuple[Turn, ...]  # the conversation after the system prompt, which holds the skill


def item_story(
    workspace: Workspace, run: str | None, item: str, *, limit: int | None = None, sides: Collection[str] | None = None
) -> ItemStory:
    """Return how ``item`` fared; with ``sides`` these are among the attempts, and the first and the newest version."""
    outcomes = _of_item(workspace, find_run(workspace, run), item)
    pairs = outcomes.attempts(item)
    newest = pairs[-limit:] if limit else pairs
    older = pairs[: len(pairs) - len(newest)] if sides is not None else []
    versions = [text for text, cell in older if text.version is not None and cell is not None]
    ends = {*versions[:1], *versions[-1:]}
    extra = [pair for pair in older if pair[0] in ends or pair[0].label in (sides or ())]
    tries = attempts(workspace, [*extra, *newest], item)
    line = outcomes.line(item, outcomes.doubts(workspace).get(item, ()))
    same = ("item", "task_type", "first", "is_first", "solved", "measured", "unknown", "doubts")
    return ItemStory(
        run=outcomes.run,
        metric=str(outcomes.gauge.metric),
        question=question_of(workspace, tries),
        flips=outcomes.flips(item),
        attempts=tries,
        every=len(pairs),
        **{name: getattr(line, name) for name in same},
    )


def item_trajectory(workspace: Workspace, item: str, revision: str) -> ItemTrajectory:
    event = event_in(workspace, revision)
    pairs = _of_item(workspace, event.run, item).attempts(item)
    tries = attempts(workspace, [pair for pair in pairs if pair[0].commit == event.commit], item)
    attempt = tries[0] if tries else None
    if attempt is not None and attempt.trajectory:
        turns = _turns(workspace, attempt.trajectory)
        return ItemTrajectory(run=event.run, item=item, attempt=attempt, turns=turns)
    if attempt is None:
        hint = f"skillgit items {event.run} --item {quote(item)} lists what was measured"
    elif attempt.absence is Absence.DROPPED:
        hint = "its evidence was dropped, and what happened with it"
    elif attempt.outcome is None:
        hint = "it was not measured on this item"
    elif attempt.outcome.noted:
        hint = "a note tells the outcome, and no trajectory"
    else:
        hint = f"bring it: {BRING}" if attempt.absence is Absence.AWAY else "its evidence is not here, nor at a remote"
    raise NotFoundError(f"there is no trajectory of {item} under {revision}", hint=hint)


def _of_item(workspace: Workspace, run: str, item: str) -> RunOutcomes:
    outcomes = load(workspace, run, with_rejected=True, item=item)
    if item not in outcomes.cells:
        raise unknown_item(workspace, run, item)
    return outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReply:
    """What a version answered to an item; all of it empty where the evidence is not here."""

    answer: str = ""
    feedback: str = ""  # why it got its score: the reference answer is here, if the scorer names it
    trajectory: str = ""  # its tree and path in the evidence
    checks: tuple[tuple[str, float], ...] = ()  # name and score of each check; none where an item has one score only
    is_solved: bool | None = None  # absent where that is not known
    tokens: float | None = None  # that the target read and wrote for it; absent where that is not recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWords:
    question: str  # what the target was asked first, in full; empty if the evidence is not here
    replies: tuple[ItemReply, ...]  # for each revision


def item_words(workspace: Workspace, revisions: Sequence[str], items: Iterable[str]) -> dict[str, ItemWords]:
    """Return what each of the selection ``items`` asks, and what each of ``revisions`` answered."""
    replies = item_replies(workspace, revisions, items)
    return {item: ItemWords(question=question_of(workspace, own), replies=own) for item, own in replies.items()}


def item_replies(
    workspace: Workspace, revisions: Sequence[str], items: Iterable[str]
) -> dict[str, tuple[ItemReply, ...]]:
    """Return what each of ``revisions`` answered to each of the selection ``items``.

    The items' own data are not part of history: a reference answer is known only from the words of a scorer.
    """
    rows = [event_in(workspace, revision) for revision in revisions]
    events = [item_queries.measured_by(workspace.index, row.run, row.version, row.commit) for row in rows]
    trees = item_queries.evidence_of(workspace.index, [event for event in events if event is not None])
    sides = [_replies(workspace, trees.get(event, "") if event is not None else "") for event in events]
    return {item: tuple(side.get(item, ItemReply()) for side in sides) for item in items}


def _replies(workspace: Workspace, tree: str) -> dict[str, ItemReply]:
    """Return item to what the evidence in ``tree`` has as the reply to it."""
    return {
        str(row.get("id")): ItemReply(
            answer=str(row.get("answer", "")),
            feedback=str(row.get("feedback", "")),
            trajectory=f"{tree}:{row['trajectory']}" if row.get("trajectory") else "",
            checks=tuple(
                (name, float(score))
                for name, score in sorted(members(row.get("parts")).items())
                if isinstance(score, int | float)
            ),
            is_solved=None if (hard := figure(row.get("hard"))) is None else hard >= 1.0,
            tokens=figure(row.get("tokens")),
        )
        for row in objects(evidence_file(workspace.repo, tree, SELECTION))
    }


def attempts(workspace: Workspace, pairs: Sequence[Attempted], item: str) -> tuple[Attempt, ...]:
    """Return the versions and candidates in ``pairs`` with what their evidence says of ``item``."""
    runs = {text.run for text, _ in pairs}
    absent = {event: why for run in runs for event, why in absences(workspace, run).items()}
    flips = {event: rose for run in runs for event, rose in item_queries.told_flips(workspace.index, run, item).items()}
    trees = dict(evidence_trees(workspace, [text for text, _ in pairs]))

    def attempt(text: MeasuredRow, cell: ItemOutcome | None) -> Attempt:
        own = trees[text] if cell is not None and not cell.noted else ""
        reply = _replies(workspace, own).get(item, ItemReply())
        # an event that took its score over with the text of another says nothing of what that one did
        is_told = text.event in flips and text.measured and text.kind != EventKind.REVERTED
        return Attempt(
            name=text.label,
            commit=text.commit,
            version=text.version,
            title=text.title,
            outcome=cell,
            answer=reply.answer,
            feedback=reply.feedback or (cell.failed if cell is not None else ""),
            trajectory=reply.trajectory,
            absence=absent.get(text.event or 0) if cell is None else None,
            told=("fixed" if flips[text.event or 0] else "broken") if is_told else None,
        )

    return tuple(attempt(text, cell) for text, cell in pairs)


def _turns(workspace: Workspace, trajectory: str) -> tuple[Turn, ...]:
    tree, _, path = trajectory.partition(":")
    return tuple(map(Turn.read, objects(members(evidence_file(workspace.repo, tree, path)).get("turns"))))


def question_of(workspace: Workspace, tries: Sequence[Attempt | ItemReply]) -> str:
    """Return what the target was asked first in the newest of ``tries`` that is recorded; empty if none is."""
    newest = next((attempt.trajectory for attempt in reversed(tries) if attempt.trajectory), "")
    turns = _turns(workspace, newest) if newest else ()
    return next((turn.content for turn in turns if turn.role == "user"), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPicture:
    media_type: str  # as its bytes say, not as the data do
    content: bytes


def item_picture(workspace: Workspace, run: str, item: str, digest: str) -> ItemPicture:
    """Return the picture with ``digest`` of a selection item; a NotFoundError if the run's data are not here."""
    try:
        images = list(_images(workspace, run, item))
    except NotFoundError:
        raise
    except SkillgitError as error:
        raise NotFoundError(f"the data of run {run} are not here: {error}", hint=error.hint) from error
    content = next((base64.b64decode(image.data) for image in images if image.picture.digest == digest), b"")
    media_type = media_type_of(content)
    if not media_type:
        raise NotFoundError(f"item {item} has no picture {digest[:8]} that can be shown", hint="its data have changed")
    return ItemPicture(media_type=media_type, content=content)


def _images(workspace: Workspace, run: str, item: str) -> Iterator[backend.Image]:
    name = find_run(workspace, run)
    # of a stranger's run only what such a run may set
    config = recorded_setup.recorded_config(workspace, name, ())
    environment = registry.find_environment(config.values.env.name, config.root).cls(config.options, config.root)
    if isinstance(environment, plugin_environment.ShowsPictures):
        for entry in environment.items(Split.SELECTION):
            if entry.id == item:
                yield from environment.pictures(entry)
