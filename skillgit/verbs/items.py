"""Versions item by item: a table of all items, the history of one, and what fixed or broke it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from skillgit.app.history.requests import ItemsRequest
from skillgit.app.workspace.request import MisuseError, refuse_together, refuse_without
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ExitCode
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import measured
from skillgit.verbs.verb import LIST, Answer, Effect, Form, TerminalSession, Verb, VerbSession
from skillgit.view import item as story_view
from skillgit.view import score_tables as tables
from skillgit.view.items import all_asked
from skillgit.view.surface import Screen

with loaded_on_use():
    from skillgit.app.history import bisect, item, items, matrix
    from skillgit.app.recorded import outcomes
    from skillgit.app.setup import plan

ItemTable: TypeAlias = "items.ItemTable"
Attempt: TypeAlias = "item.Attempt"
ItemReply: TypeAlias = "item.ItemReply"
ItemStory: TypeAlias = "item.ItemStory"
ItemTrajectory: TypeAlias = "item.ItemTrajectory"
ItemWords: TypeAlias = "item.ItemWords"
ItemLine: TypeAlias = "outcomes.ItemLine"
_Bisected: TypeAlias = "bisect.Bisected | plan.Plan"
_OfOne: TypeAlias = "ItemStory | ItemTrajectory | _Bisected"
NEWEST = 60
"""Attempts at one item that are shown to people who do not ask for all."""
_CHOOSING = ("flaky", "never_solved", "solved", "task_type", "rejected", "order")


def _items(
    session: VerbSession, request: ItemsRequest
) -> Answer[ItemTable | items.CheckTable | matrix.Matrix | _OfOne]:
    for way in ("item", "by_check", "by_model"):
        for choice in _CHOOSING:
            refuse_together(request, choice, way)
    refuse_together(request, "item", "by_check", "by_model")
    refuse_without(request, "item", "trajectory", "measure")
    refuse_without(request, "by_model", "split")
    refuse_without(request, "measure", "config", "overrides", "dry_run", "max_calls", "max_tokens", "max_usd")
    if request.item is not None:
        return _one(session, request)
    if request.by_check:
        checks = items.checks(session.workspace, request.run)
        lines = tables.check_lines(checks, session.screen)
        rows = tables.check_records(checks)
        return Answer(table=tables.CHECK_SCORES, rows=rows, result=checks, lines=lines, pager=True)
    if request.by_model:
        scores = matrix.matrix(session.workspace, request.run, request.split)
        if not scores.rows and session.form is Form.TEXT:
            lack = f"no version of run {scores.run} has a score on the {scores.split} split"
            return Answer(result=scores, lines=(), notes=[(lack, f"skillgit eval {scores.run} --split {scores.split}")])
        lines = tables.matrix_lines(scores, session.screen)
        return Answer(table=tables.MODEL_SCORES, rows=tables.matrix_records(scores), result=scores, lines=lines)
    return _table(session, request)


def _table(session: VerbSession, request: ItemsRequest) -> Answer[ItemTable]:
    table = items.items(session.workspace, request.run, request)
    if not table.rows and session.form is Form.TEXT:
        none_matches = (f"no item of run {table.run} matches ({table.items} in total)", "")
        return Answer(result=table, lines=(), notes=[none_matches])

    def questions(rows: Sequence[outcomes.ItemLine]) -> Sequence[str]:
        names = [column.name for column in table.columns if column.version is not None]
        revisions = [f"{table.run}/{name}" for name in dict.fromkeys((*names[:1], *names[-1:]))]
        words = item.item_words(session.workspace, revisions, [row.item for row in rows])
        return all_asked((own.question for own in words.values()), session.screen.glyphs.ellipsis)

    return Answer(
        table=tables.ITEMS,
        rows=tables.records(table, cells=session.tabular),
        result=table,
        lines=tables.lines(table, session.screen, every=request.all_versions, questions=questions),
        pager=True,
        document={"run": table.run, "metric": table.metric, "versions": table.columns},
    )


def _one(session: VerbSession, request: ItemsRequest) -> Answer[_OfOne]:
    if request.measure or (request.run is not None and ".." in request.run):
        return _searched(session, request)
    if request.trajectory is not None:
        return _trajectory(session, request)
    return _story(session, request)


@dataclass(frozen=True, kw_only=True)
class SidesRequest(ItemsRequest):
    """A page shows two of the attempts: they are in the story also where it has the newest ones only."""

    sides: tuple[str, ...] = ()


def _with_sides(session: VerbSession, request: SidesRequest) -> Answer[ItemStory]:
    item_id = request.item or ""
    story = item.item_story(session.workspace, request.run, item_id, limit=NEWEST, sides=request.sides)
    return Answer(result=story)


def _trajectory(session: VerbSession, request: ItemsRequest) -> Answer[ItemTrajectory]:
    result = item.item_trajectory(session.workspace, request.item or "", request.trajectory or "")
    if session.tabular:
        raise MisuseError("--plain cannot be combined with --trajectory")
    lines = story_view.trajectory(result, session.screen)
    return Answer("trajectory/1", result, lines, rows=result.turns, pager=True)


def _story(session: VerbSession, request: ItemsRequest) -> Answer[ItemStory]:
    limit = None if request.all_versions or session.form is not Form.TEXT else NEWEST
    story = item.item_story(session.workspace, request.run, request.item or "", limit=limit)
    return Answer(
        table=story_view.ATTEMPTS,
        rows=story_view.records(story),
        result=story,
        lines=story_view.lines(story, session.screen),
        pager=True,
    )


def _searched(session: VerbSession, request: ItemsRequest) -> Answer[_Bisected]:
    """Return which version fixed or broke the item."""
    refuse_together(request, "trajectory", "measure")
    if session.form not in {Form.TEXT, Form.JSON}:
        raise MisuseError(f"--{session.form.value} cannot be combined with REV..REV or --measure")

    def lines(result: bisect.Bisected, screen: Screen) -> Iterator[str]:
        return story_view.bisect_lines(result, screen, session.now)

    def exit_code(result: bisect.Bisected) -> ExitCode:
        return ExitCode.OK if result.flip is not None else ExitCode.NO

    if request.measure and isinstance(session, TerminalSession):
        return measured(session, bisect.bisect, request, "bisect/1", lines, ends_with=exit_code)
    result = cast("bisect.Bisected", bisect.bisect(session.workspace, request))  # without --measure nothing is planned
    return Answer("bisect/1", result, lines(result, session.screen), exit_code=exit_code(result))


ITEMS = Verb(
    "items",
    ItemsRequest,
    _items,
    lambda request: Effect.PAYS if request.measure else Effect.READS,
    forms=LIST,
)
ITEM_TABLE = Verb("items", ItemsRequest, _table)
ITEM_STORY = Verb("items", ItemsRequest, _story)
ITEM_SIDES = Verb("items", SidesRequest, _with_sides)
ITEM_TRAJECTORY = Verb("items", ItemsRequest, _trajectory)


def item_words(workspace: Workspace, revisions: Sequence[str], items: Iterable[str]) -> dict[str, ItemWords]:
    """Return what each of ``items`` asks, and what each of ``revisions`` answered."""
    return item.item_words(workspace, revisions, items)


def item_replies(
    workspace: Workspace, revisions: Sequence[str], items: Iterable[str]
) -> dict[str, tuple[item.ItemReply, ...]]:
    """Return what each of ``revisions`` answered to each of ``items``."""
    return item.item_replies(workspace, revisions, items)


def question_of(workspace: Workspace, replies: Sequence[item.ItemReply]) -> str:
    """Return what the target was asked first where it gave the newest of ``replies``, from the evidence."""
    return item.question_of(workspace, replies)


def item_picture(workspace: Workspace, run: str, item_id: str, digest: str) -> item.ItemPicture:
    """Return the picture with ``digest`` of a selection item; a NotFoundError if the run's data are not here."""
    return item.item_picture(workspace, run, item_id, digest)
