"""``skillgit items --item``: one item over all versions and candidates, with answers, reasons and trajectories."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Final, Literal

from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.recorded.item_history import (
    ItemOutcome,
    RunItems,
    absences,
    doubts,
    evidence_trees,
    first_solved,
    flip_names,
    load,
    unknown_item,
)
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import BRING, Absence, Workspace, open_workspace
from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.trajectory import Turn
from skillgit.errors import NotFoundError, SkillgitError
from skillgit.index import item_queries
from skillgit.index.item_queries import MeasuredRow, told_flips
from skillgit.index.rows import LogRow
from skillgit.plugin.backend import Image

SELECTION = "selection.json"
Tried = tuple[MeasuredRow, ItemOutcome | None]
"""A version or candidate, and its outcome; None if it was not measured."""


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
    absence: Absence | None = None  # why nobody knows whether it was measured on the item; absent where that is known
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
    context: Context, run: str | None, item: str, *, limit: int | None = None, sides: Collection[str] | None = None
) -> ItemStory:
    """Return how ``item`` fared; with ``sides`` these are among the attempts, and the first and the newest version."""
    with open_workspace(context) as workspace:
        name = find_run(workspace, run)
        all_items, pairs = _tried(workspace, name, item)
        newest = pairs[-limit:] if limit else pairs
        older = [] if sides is None else _to_compare(pairs[: len(pairs) - len(newest)], sides)
        last_attempts = attempts(workspace, [*older, *newest], item)
        versions, gaps = all_items.of_versions(item), all_items.gaps(item)
        first, is_first = first_solved(versions, gaps)
        return ItemStory(
            run=name,
            metric=str(all_items.gauge.metric),
            item=item,
            task_type=all_items.types[item],
            question=_question(workspace, last_attempts),
            first=first,
            is_first=is_first,
            flips=flip_names(versions, gaps),
            solved=sum(cell.solved is True for _, cell in versions),
            measured=len(versions),
            unknown=len(gaps),
            doubts=doubts(workspace, all_items).get(item, ()),
            attempts=last_attempts,
            every=len(pairs),
        )


def _to_compare(pairs: Sequence[Tried], sides: Collection[str]) -> list[Tried]:
    """Return those of ``pairs`` that are named, and the first and the newest version with an outcome."""
    indexes = {index for index, (row, _) in enumerate(pairs) if sides and row.label in sides}
    measured = [index for index, (row, cell) in enumerate(pairs) if row.version is not None and cell is not None]
    return [pairs[index] for index in sorted({*indexes, *measured[:1], *measured[-1:]})]


def item_trajectory(context: Context, item: str, revision: str) -> ItemTrajectory:
    with open_workspace(context) as workspace:
        event = event_in(workspace, revision)
        pairs = _tried(workspace, event.run, item)[1]
        tries = attempts(workspace, [pair for pair in pairs if pair[0].commit == event.commit], item)
        if not tries or not tries[0].trajectory:
            raise NotFoundError(f"there is no trajectory of {item} under {revision}", hint=_why_not(event, tries, item))
        turns = _turns(workspace, tries[0].trajectory)
        return ItemTrajectory(run=event.run, item=item, attempt=tries[0], turns=turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReply:
    """What a version answered to an item; all of it empty where the evidence is not here."""

    answer: str = ""
    feedback: str = ""  # why it got its score: the reference answer is here, if the scorer names it
    trajectory: str = ""  # its tree and path in the evidence
    checks: tuple[tuple[str, float], ...] = ()  # name and score of each check; none where an item has one score only


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWords:
    question: str  # what the target was asked first, in full; empty if the evidence is not here
    replies: tuple[ItemReply, ...]  # for each revision


def item_words(context: Context, revisions: Sequence[str], items: Iterable[str]) -> dict[str, ItemWords]:
    """Return what each of the selection ``items`` asks, and what each of ``revisions`` answered.

    The items' own data are no part of history, so that a reference answer is known from a scorer's words alone.
    """
    with open_workspace(context) as workspace:
        rows = [event_in(workspace, revision) for revision in revisions]
        events = [item_queries.measured_by(workspace.index, row.run, row.version, row.commit) for row in rows]
        trees = item_queries.evidence_of(workspace.index, [event for event in events if event is not None])
        replies = [_replies(workspace, trees.get(event, "") if event is not None else "") for event in events]
        return {
            item: ItemWords(question=_question(workspace, own), replies=own)
            for item in items
            for own in (tuple(version.get(item, ItemReply()) for version in replies),)
        }


def _replies(workspace: Workspace, tree: str) -> dict[str, ItemReply]:
    return {str(row.get("id")): _reply(tree, row) for row in objects(evidence_file(workspace.repo, tree, SELECTION))}


def _reply(tree: str, row: Mapping[str, object]) -> ItemReply:
    path = row.get("trajectory")
    return ItemReply(
        answer=str(row.get("answer", "")),
        feedback=str(row.get("feedback", "")),
        trajectory=f"{tree}:{path}" if path else "",
        checks=tuple(
            (name, float(score))
            for name, score in sorted(members(row.get("parts")).items())
            if isinstance(score, int | float)
        ),
    )


def _tried(workspace: Workspace, run: str, item: str) -> tuple[RunItems, list[Tried]]:
    items = load(workspace, run, with_rejected=True, item=item)
    if item not in items.cells:
        raise unknown_item(workspace, run, item)
    return items, list(zip(items.columns, items.cells[item], strict=True))


def attempts(workspace: Workspace, pairs: Sequence[Tried], item: str) -> tuple[Attempt, ...]:
    """Return the versions and candidates in ``pairs`` with what their evidence tells of ``item``."""
    trees = dict(evidence_trees(workspace, [row for row, _ in pairs]))
    runs = {row.run for row, _ in pairs}
    absent = {event: why for run in runs for event, why in absences(workspace, run).items()}
    flips = {event: rose for run in runs for event, rose in told_flips(workspace.index, run, item).items()}
    return tuple(
        replace(
            _attempt(workspace, row, cell, trees[row], item),
            absence=absent.get(row.event) if cell is None and row.event is not None else None,
            told=_told(row, flips),
        )
        for row, cell in pairs
    )


def _told(row: MeasuredRow, flips: Mapping[int, bool]) -> Literal["fixed", "broken"] | None:
    # an event that took its score over with the text of another says nothing of what that one did
    if row.event is None or row.event not in flips or not row.measured or row.kind == EventKind.REVERTED:
        return None
    return "fixed" if flips[row.event] else "broken"


def _attempt(workspace: Workspace, row: MeasuredRow, cell: ItemOutcome | None, tree: str, item: str) -> Attempt:
    own = tree if cell is not None and not cell.noted else ""
    rows = objects(evidence_file(workspace.repo, own, SELECTION))
    reply = _reply(tree, next((row for row in rows if row.get("id") == item), {}))
    return Attempt(
        name=row.label,
        commit=row.commit,
        version=row.version,
        title=row.title,
        outcome=cell,
        answer=reply.answer,
        feedback=reply.feedback or (cell.failed if cell is not None else ""),
        trajectory=reply.trajectory,
    )


def _turns(workspace: Workspace, trajectory: str) -> tuple[Turn, ...]:
    tree, _, path = trajectory.partition(":")
    return tuple(map(Turn.read, objects(members(evidence_file(workspace.repo, tree, path)).get("turns"))))


def _question(workspace: Workspace, tries: Sequence[Attempt | ItemReply]) -> str:
    newest = next((attempt for attempt in reversed(tries) if attempt.trajectory), None)
    turns = _turns(workspace, newest.trajectory) if newest is not None else ()
    return next((turn.content for turn in turns if turn.role == "user"), "")


def _why_not(event: LogRow, tries: Sequence[Attempt], item: str) -> str:
    if not tries:
        return f"skillgit items {event.run} --item {quote(item)} lists what was measured"
    attempt = tries[0]
    if attempt.absence is Absence.DROPPED:
        return "its evidence was dropped, and what happened with it"
    if attempt.outcome is None:
        return "it was not measured on this item"
    if attempt.outcome.noted:
        return "a note tells the outcome, and no trajectory"
    return f"bring it: {BRING}" if attempt.absence is Absence.AWAY else "its evidence is not here, nor at a remote"


RASTER: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""How the files that are shown begin; one that says of itself that it is something else, or SVG, is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPicture:
    media_type: str  # as its bytes say, not as the data do
    content: bytes


def item_picture(context: Context, run: str, item: str, digest: str) -> ItemPicture:
    """Return the picture with ``digest`` of a selection item; a NotFoundError if the run's data are not here."""
    try:
        images = list(_images(context, run, item))
    except NotFoundError:
        raise
    except SkillgitError as error:
        raise NotFoundError(f"the data of run {run} are not here: {error}", hint=error.hint) from error
    content = next((base64.b64decode(image.data) for image in images if image.picture.digest == digest), b"")
    media_type = next((kind for beginning, kind in RASTER.items() if content.startswith(beginning)), "")
    if not media_type:
        raise NotFoundError(f"item {item} has no picture {digest[:8]} that can be shown", hint="its data have changed")
    return ItemPicture(media_type=media_type, content=content)


def _images(context: Context, run: str, item: str) -> Iterator[Image]:
    from skillgit.app.setup.run_setup import recorded_config  # noqa: PLC0415 - only pictures need the data
    from skillgit.plugin.environment import ShowsPictures  # noqa: PLC0415 - likewise
    from skillgit.plugin.registry import find_environment  # noqa: PLC0415 - likewise

    with open_workspace(context) as workspace:
        name = find_run(workspace, run)
        # of a stranger's run only what such a run may set
        config = recorded_config(context, workspace, name, ())
    environment = find_environment(config.values.env.name, config.root).cls(config.options, config.root)
    if isinstance(environment, ShowsPictures):
        for entry in environment.items(Split.SELECTION):
            if entry.id == item:
                yield from environment.pictures(entry)
