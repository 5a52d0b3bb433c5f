from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import count

import pytest
import sample_run
from asking import ask
from program import git
from sample_run import RUN, as_json, clock_from, transitions

from skillgit.app.history.item import item_story, item_trajectory
from skillgit.app.history.items import items
from skillgit.app.history.requests import ItemOrder, ItemsRequest
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.store import notes
from skillgit.store.event_writer import RunWriter
from skillgit.view.json_values import plain_value

NOW = datetime(2026, 11, 22, tzinfo=UTC)
TARGET, ENVIRONMENT = sample_run.MODELS.target, "e4f"


def outcomes_note(outcomes: dict[str, list[float]], **changes: object) -> dict[str, object]:
    told = {
        "kind": "outcomes",
        "split": "selection",
        "seed": 42,
        "target": TARGET,
        "environment": ENVIRONMENT,
        "outcomes": outcomes,
        "time": "2026-11-22T00:00:00Z",
    }
    return told | changes


def note_on(repo, commit: str, *lines: dict[str, object]) -> None:
    notes.append(repo, {commit: lines}, time=NOW)


def commit_of(records, version: int) -> str:
    return next(record.commit for record in records if record.event.version == version)


def line_of(table, item: str):
    return next(line for line in table.rows if line.item == item)


def write_with(repo, files_of: dict[int, dict[str, bytes]], config: dict[str, object]) -> None:
    """Write the sample run with further evidence for some of its events."""
    writer = RunWriter(repo, RUN, clock_from(count()))
    for place, sample in enumerate(transitions()):
        more = {"config.json": as_json(config)} if place == 0 else files_of.get(place, {})
        kind = -1 if sample.event.kind is EventKind.RUN_FINISHED else place
        writer.append(sample.event, sample.skill, {**sample.evidence, **more, **files_of.get(kind, {})})


@pytest.mark.usefixtures("records")
def test_every_item_is_told_under_every_version(context):
    table = ask(items, context, None, ItemsRequest())
    assert (table.run, table.metric, table.items) == (RUN, "hard", 10)
    assert [column.name for column in table.columns] == ["v0", "v1", "v2", "v3"]
    assert [column.score for column in table.columns] == [0.4, 0.6, 0.7, 0.8]
    assert [column.solved for column in table.columns] == [4, 6, 7, 8]
    assert [column.name for column in table.columns if column.is_best] == ["v3"]
    assert [line.item for line in table.rows] == [f"q{number:02}" for number in range(1, 11)]
    q04 = line_of(table, "q04")
    assert [cell.solved for cell in q04.cells] == [True, False, True, True]
    assert (q04.first, q04.flips, q04.solved, q04.measured, q04.share) == ("v0", 2, 3, 4, 0.75)
    assert (line_of(table, "q08").first, line_of(table, "q10").first) == ("v3", "")


@pytest.mark.usefixtures("records")
def test_rejected_candidates_stand_behind_the_version_that_they_rest_on(context):
    table = ask(items, context, RUN, ItemsRequest(rejected=True))
    assert [column.name for column in table.columns] == ["v0", "v1", "r2", "v2", "v3", "r5"]
    assert line_of(table, "q07").cells[2].solved is False
    assert line_of(table, "q07").measured == 4, "candidates are no versions"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ItemsRequest(never_solved=True), ["q09", "q10"]),
        (ItemsRequest(solved=True), [f"q{number:02}" for number in range(1, 9)]),
        (ItemsRequest(flaky=True), []),
        (ItemsRequest(never_solved=True, solved=True), []),
        (ItemsRequest(task_type="default", never_solved=True), ["q09", "q10"]),
    ],
)
@pytest.mark.usefixtures("records")
def test_items_are_chosen_by_what_became_of_them(wanted, expected, context):
    table = ask(items, context, None, wanted)
    assert [line.item for line in table.rows] == expected
    assert table.items == 10


@pytest.mark.parametrize(
    ("order", "first"),
    [(ItemOrder.FLIPS, "q04"), (ItemOrder.SHARE, "q09"), (ItemOrder.FIRST, "q01"), (ItemOrder.ITEM, "q01")],
)
@pytest.mark.usefixtures("records")
def test_items_are_sorted_by_what_is_asked_for(order, first, context):
    assert ask(items, context, None, ItemsRequest(order=order)).rows[0].item == first


@pytest.mark.usefixtures("records")
def test_an_unknown_task_type_is_an_error_that_names_a_near_one(context):
    with pytest.raises(NotFoundError, match="no items of the task type 'defalt'") as caught:
        ask(items, context, None, ItemsRequest(task_type="defalt"))
    assert caught.value.hint == "did you mean 'default'?"


@pytest.mark.usefixtures("records")
def test_without_evidence_it_says_how_to_fetch_it_or_where_nobody_has_it_to_measure(context):
    git("update-ref", "-d", f"refs/skillgit/evidence/{RUN}", cwd=context.directory)
    with pytest.raises(NotFoundError, match="not known here") as caught:
        ask(items, context, None, ItemsRequest())
    assert caught.value.hint == f"measure it here: skillgit eval {RUN}/v0 --split selection"
    git("remote", "add", "origin", "elsewhere", cwd=context.directory)
    git("update-ref", f"refs/remotes/origin/run/{RUN}", f"run/{RUN}", cwd=context.directory)
    with pytest.raises(NotFoundError, match="not known here") as caught:
        ask(items, context, None, ItemsRequest())
    assert caught.value.hint == "bring it: skillgit pull --evidence"


@pytest.mark.usefixtures("records")
def test_an_item_tells_all_that_was_tried_on_it(context):
    story = ask(item_story, context, None, "q07")
    assert [attempt.name for attempt in story.attempts] == ["v0", "v1", "r2", "v2", "v3", "r5"]
    assert [attempt.outcome.solved for attempt in story.attempts] == [False, True, False, True, True, True]
    assert (story.first, story.flips, story.solved, story.measured) == ("v1", ("v1",), 3, 4)
    newest = ask(item_story, context, None, "q07", limit=2)
    assert [attempt.name for attempt in newest.attempts] == ["v3", "r5"]
    assert (newest.every, newest.measured) == (6, 4)


@pytest.mark.usefixtures("records")
def test_an_unknown_item_is_an_error_that_names_near_ones(context):
    with pytest.raises(NotFoundError, match="has no selection item 'q1'") as caught:
        ask(item_story, context, None, "q1")
    assert caught.value.hint.startswith("did you mean 'q")
    with pytest.raises(NotFoundError):
        ask(item_trajectory, context, "q1", "v1")


@pytest.mark.usefixtures("records")
def test_a_trajectory_that_is_not_here_is_an_error(context):
    with pytest.raises(NotFoundError, match="no trajectory of q01 under v1"):
        ask(item_trajectory, context, "q01", "v1")
    with pytest.raises(RevisionNotFoundError):
        ask(item_trajectory, context, "q01", "v9")


def test_a_later_measurement_that_differs_makes_an_item_noisy(context, repo, records):
    note_on(repo, commit_of(records, 1), outcomes_note({"q01": [0.0, 0.25], "q02": [1.0, 1.0]}))
    table = ask(items, context, None, ItemsRequest(flaky=True))
    assert [(line.item, line.doubts) for line in table.rows] == [("q01", ("measured again, v1 differs",))]
    assert line_of(table, "q01").cells[1].solved is True, "the run's own outcome stands"


def test_a_note_that_cannot_be_put_beside_the_run_is_passed_over(context, repo, records):
    good = outcomes_note({"q01": [0.0, 0.0]})
    strange: list[dict[str, object]] = [
        {"target": "other/model"},
        {"environment": "another"},
        {"split": "test"},
        {"kind": "remark"},
        {"outcomes": {"q01": [2.0, 0.0]}},
        {"outcomes": {"q01": [True, 0.0]}},
        {"outcomes": {"q01": 0.0}},
        {"outcomes": ["q01"]},
    ]
    note_on(repo, commit_of(records, 1), *(good | changes for changes in strange))
    assert ask(items, context, None, ItemsRequest(flaky=True)).rows == ()
    note_on(repo, commit_of(records, 1), good)
    assert len(ask(items, context, None, ItemsRequest(flaky=True)).rows) == 1


def test_many_flips_make_an_item_noisy(context, repo, records):
    # v0 and v2 solve q04 and v1 does not; a fourth version that does not makes three flips
    base = records[-1].commit
    git("checkout", "-q", f"run/{RUN}", cwd=context.directory)
    document = context.directory / "skills/demo/SKILL.md"
    document.write_text(document.read_text() + "\nBy hand.\n")
    git("-c", "user.name=U", "-c", "user.email=u@x", "commit", "-qam", "by hand", cwd=context.directory)
    edited = git("rev-parse", "HEAD", cwd=context.directory).out.strip()
    assert edited != base
    table = ask(items, context, None, ItemsRequest())
    assert [column.name for column in table.columns] == ["v0", "v1", "v2", "v3", "v4"]
    assert line_of(table, "q04").cells[4] is None, "nobody has measured it"
    note_on(repo, edited, outcomes_note({"q04": [0.0, 0.0]}))
    (line,) = ask(items, context, None, ItemsRequest(flaky=True)).rows
    assert (line.item, line.doubts, line.flips) == ("q04", ("3 flips",), 3)
    assert line.cells[4].noted


def test_repeats_that_differ_make_an_item_noisy(context, repo):
    same, other = {"hard": 1.0, "soft": 1.0}, {"hard": 0.0, "soft": 0.25}
    repeats = [
        {"id": "q05", "candidate": [same, other], "current": [other, other]},
        {"id": "q06", "candidate": [same, same], "current": [other, other]},
        {"id": "q07", "candidate": [same, same], "current": [same, same]},
    ]
    write_with(repo, {1: {"repeats.json": as_json(repeats)}}, {"gate": {"repeats": 2}})
    found = {line.item: line.doubts for line in ask(items, context, None, ItemsRequest(flaky=True)).rows}
    assert found == {"q05": ("repeats differ at v1",), "q07": ("repeats differ at v1",)}


def test_a_placebo_that_moves_an_item_makes_it_noisy(context, repo):
    rows = [{"number": 1, "fixed": ["q09"], "broken": []}, {"number": 2, "fixed": [], "broken": ["q01", "strange"]}]
    write_with(repo, {-1: {"placebo.json": as_json(rows)}}, {"train": {"placebo": 2}})
    found = {line.item: line.doubts for line in ask(items, context, None, ItemsRequest(flaky=True)).rows}
    assert found == {"q01": ("a placebo moved it",), "q09": ("a placebo moved it",)}


@pytest.mark.usefixtures("records")
def test_machine_formats_can_hold_everything(context):
    assert json.dumps(plain_value(ask(items, context, None, ItemsRequest(rejected=True))))
    assert json.dumps(plain_value(ask(item_story, context, None, "q01")))
