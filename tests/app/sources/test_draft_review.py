from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from contexts import context_in
from harvested import SKILL, draft, group, prompts, write_drafts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from soaking import soak

from skillgit.app.sources.draft_review import DraftFolder, harvested_skills, open_drafts, review_harvest
from skillgit.errors import ConflictError, DataError, NotFoundError, SkillgitError, UsageError
from skillgit.files import locked, open_plain
from skillgit.store.repo import Repo
from skillgit_envs.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.workspace.context import Context

TASKS = Path("tasks") / f"{SKILL}.jsonl"
TEXTS = prompts()
TOKEN = "sk-ant-api03-" + "x7Kd93hZ" * 8  # nobody's


@pytest.fixture
def context(tmp_path) -> Context:
    return context_in(Path(Repo.init(tmp_path / "repository").workdir))


def drafts_in(context: Context, rows: list[Mapping[str, object]], contents: Mapping[str, bytes] = {}) -> Path:
    return write_drafts(context.directory, rows, contents)


def rows_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def a_day_after(context: Context) -> Context:
    """Return the context in which an answer of now is final."""
    return replace(context, clock=lambda: context.clock() + timedelta(days=1))


def tree(*folders: Path) -> dict[str, bytes]:
    """Return the bytes of all files, but for those that a killed process had not put in place."""
    files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): path.read_bytes() for path in files if path.suffix not in {".young", ".new"}}


def ids(rows: list[dict[str, object]]) -> list[object]:
    return [row["id"] for row in rows]


def test_an_accepted_draft_becomes_the_line_that_was_shown_and_brings_its_files(context):
    row = draft("one", prompt=TEXTS[0], files=["files/one/a.csv"])
    private = drafts_in(context, [row, draft("two", prompt=TEXTS[1])], {"files/one/a.csv": b"a,b\n1,2\n"})
    (shown, _) = review_harvest(context, SKILL).drafts
    assert [(file.name, file.size, file.text()) for file in shown.files] == [(f"{SKILL}/one/a.csv", 8, "a,b\n1,2\n")]
    result = review_harvest(context, SKILL, accept=["one"])
    assert (result.accepted, [left.id for left in result.drafts], result.tasks) == (("one",), ["two"], 1)
    path = context.directory / TASKS
    assert path.read_text() == f"{shown.line}\n"
    (task,) = rows_of(path)
    assert (task["group"], task["status"], task["reviewed"]) == (group("one"), "reviewed", "2026-11-21")
    assert task["origin"] == {
        "agent": "claude",
        "version": "2.1.330",
        "date": "2026-11-20",
        "use": "user",
        "tree": "",
        "signals": ["correction"],
    }
    assert (path.parent / SKILL / "one" / "a.csv").read_bytes() == b"a,b\n1,2\n"
    review_harvest(a_day_after(context), SKILL)
    assert rows_of(private)[0] == {"id": "one", "group": group("one"), "status": "reviewed"}
    assert not (private.parent / "files" / "one").exists()
    assert private.stat().st_mode & 0o077 == 0


def test_a_run_takes_accepted_drafts_and_divides_them_by_session(context):
    sessions = ["a", "a", "a", "b", "b", "c", "d", "e"]
    rows = [
        draft(f"t{number}", prompt=text, group=group(session), answer="7")
        for number, (session, text) in enumerate(zip(sessions, TEXTS, strict=False))
    ]
    drafts_in(context, [{name: value for name, value in row.items() if name != "rubric"} for row in rows])
    review_harvest(context, SKILL, accept=["all"])
    environment = Tasks({"data_path": str(TASKS), "split_ratio": "2:1:1"}, context.directory)
    splits = {split: environment.items(split) for split in ("train", "selection", "test")}
    assert sorted(item.id for part in splits.values() for item in part) == [row["id"] for row in rows]
    assert all(splits.values())
    assert [
        sum(session in {item.group for item in part} for part in splits.values()) for session in map(group, "abcde")
    ] == [1] * 5


def test_a_dropped_draft_leaves_its_id_and_group_and_no_file(context):
    private = drafts_in(
        context, [draft("one", prompt=TEXTS[0], files=["files/one/a.txt"])], {"files/one/a.txt": b"private"}
    )
    assert harvested_skills(context) == {SKILL: 1}
    assert review_harvest(context, SKILL, drop=["all"]).dropped == ("one",)
    assert private.stat().st_mode & 0o077 == 0
    assert harvested_skills(context) == {SKILL: 0}
    review_harvest(a_day_after(context), SKILL)
    assert rows_of(private) == [{"id": "one", "group": group("one"), "status": "dropped"}]
    assert not any(path.is_file() for path in (private.parent / "files").rglob("*"))
    assert harvested_skills(context) == {}
    assert not (context.directory / "tasks").exists()


@pytest.mark.parametrize(
    ("fields", "contents", "place"),
    [
        ({"prompt": f"{TEXTS[0]}\nmy key is {TOKEN}"}, {}, f"prompt:{TEXTS[0].count(chr(10)) + 2} may hold"),
        ({"rubric": f"It uses {TOKEN}."}, {}, "rubric:1 may hold a secret"),
        ({"context": "password = 'correct-horse-battery'"}, {}, "context:1 may hold a secret (named as a secret)"),
        ({"files": ["files/one"]}, {"files/one/.env": f"x=1\nKEY={TOKEN}".encode()}, "one/.env:2 may hold a secret"),
        ({"images": ["files/one/a.png"]}, {"files/one/a.png": b"\0PNG " + TOKEN.encode()}, "one/a.png:0 may hold"),
    ],
)
def test_a_suspected_secret_is_refused_with_its_place_and_without_itself(context, fields, contents, place):
    private = drafts_in(context, [draft("one", **{"prompt": TEXTS[0], **fields})], contents)
    before = private.read_bytes()
    with pytest.raises(DataError) as raised:
        review_harvest(context, SKILL, accept=["one"])
    assert place in raised.value.message
    assert TOKEN not in raised.value.message
    assert review_harvest(context, SKILL, accept=["all"]).accepted == ()
    assert private.read_bytes() == before
    assert not (context.directory / TASKS).exists()


def test_an_edit_takes_the_secret_out_and_the_draft_is_accepted(context):
    drafts_in(context, [draft("one", prompt=f"Use {TOKEN}", files=["files/one/a"])], {"files/one/a": b"x"})
    with open_drafts(context, SKILL) as folder:
        edited = folder.edit(folder.pending("one"), folder.pending("one").editable.replace(TOKEN, "the key in KEY"))
        assert (edited.prompt, edited.obstacles) == ("Use the key in KEY", ())
        folder.accept(edited)
    assert rows_of(context.directory / TASKS)[0]["files"] == [f"{SKILL}/one/a"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("prompt: [", "is not valid YAML"),
        ("- a", "not a mapping of fields to values"),
        ("prompt: why?", "does not say what a right result is"),
        ("prompt: why?\nanswer: x\ngroup: mine", "'group' cannot be edited"),
        ("prompt: why?\nanswer: x\nfiles: [drafts.jsonl]", "not among its own files"),
        ("prompt: why?\nanswer: x\nfiles: [../../config]", "not a path next to the data"),
        ("prompt: why?\nanswer: 2026-11-20", "neither text nor number"),
    ],
)
def test_an_edit_that_makes_no_task_comes_back_with_the_reason(context, text, reason):
    private = drafts_in(context, [draft("one", prompt=TEXTS[0])])
    before = private.read_bytes()
    with open_drafts(context, SKILL) as folder, pytest.raises(DataError, match=reason):
        folder.edit(folder.pending("one"), text)
    assert private.read_bytes() == before


def test_all_leaves_out_what_a_person_should_look_at(context):
    program = {"type": "command", "command": "true"}
    rows = [draft("plain", prompt=TEXTS[0]), draft("again", prompt=f"{TEXTS[0]} Thanks"), draft("run", prompt=TEXTS[1])]
    rows[2] = {**{name: value for name, value in rows[2].items() if name != "rubric"}, "check": program}
    drafts_in(context, rows)
    for accepted, likeness in (((), "draft plain"), (("plain",), "plain")):  # among drafts, and with a task
        shown = {left.id: left.warnings for left in review_harvest(context, SKILL).drafts if left.id != "plain"}
        assert shown == {
            "again": (f"it asks nearly the same as {likeness}",),
            "run": ("its check runs a program",),
        }
        assert review_harvest(context, SKILL, accept=["all"]).accepted == (() if accepted else ("plain",))
    assert review_harvest(context, SKILL, accept=["run", "again"]).accepted == ("run", "again")


@pytest.mark.parametrize("count", [2, 5, 50])
def test_of_drafts_with_one_prompt_all_takes_the_first(context, count):
    drafts_in(context, [draft(f"t{number}", prompt="Why is it so?", rubric=str(number)) for number in range(count)])
    assert review_harvest(context, SKILL, accept=["all"]).accepted == ("t0",)
    assert review_harvest(context, SKILL, accept=["all"]).accepted == ()


def test_nothing_takes_effect_if_one_answer_is_refused(context):
    rows = [draft("one", prompt=TEXTS[0]), draft("two", prompt=f"Use {TOKEN}"), draft("twin", prompt=TEXTS[0])]
    private = drafts_in(context, rows)
    before = private.read_bytes()
    with pytest.raises(ConflictError, match="drafts one and twin are the same task"):
        review_harvest(context, SKILL, accept=["one", "twin"])
    with pytest.raises(DataError, match="draft two cannot be accepted"):
        review_harvest(context, SKILL, accept=["one", "two"])
    with pytest.raises(NotFoundError, match="there is no draft three"):
        review_harvest(context, SKILL, accept=["one"], drop=["three"])
    with pytest.raises(UsageError, match="accepted and dropped at once"):
        review_harvest(context, SKILL, accept=["one"], drop=["one"])
    assert private.read_bytes() == before


def test_what_changed_since_it_was_shown_is_not_accepted(context):
    drafts_in(context, [draft("one", prompt=TEXTS[0])])
    with open_drafts(context, SKILL) as folder:
        shown = folder.pending("one")
        folder.edit(shown, "prompt: another\nanswer: x")
        with pytest.raises(ConflictError, match="one was edited in another window"):
            folder.accept(shown)
    assert not (context.directory / TASKS).exists()


def test_while_a_harvest_writes_nothing_is_answered(context):
    private = drafts_in(context, [draft("one", prompt=TEXTS[0])])
    before = private.read_bytes()
    handle = open_plain(private.parent.parent / "lock", os.O_RDWR | os.O_CREAT)
    with locked(handle), pytest.raises(ConflictError, match="another process is writing drafts"):
        review_harvest(context, SKILL, accept=["one"])
    assert private.read_bytes() == before
    assert review_harvest(context, SKILL, accept=["one"]).tasks == 1


def test_what_a_context_and_a_command_say_of_files_goes_with_them(context):
    row = {name: value for name, value in draft("one", prompt=TEXTS[0]).items() if name != "rubric"}
    check = {
        "type": "command",
        "command": ["python", "files/one/check.py", "x files/one/y"],
        "files": ["files/one/check.py"],
    }
    row |= {"context": "See files/one/before, not files/one-two.", "files": ["files/one/before"], "check": check}
    contents = {"files/one/before/a.py": b"1", "files/one/check.py": b"2"}
    drafts_in(context, [row], contents)
    (shown,) = review_harvest(context, SKILL).drafts
    assert shown.prompt.startswith(f"See {SKILL}/one/before")
    review_harvest(context, SKILL, accept=["one"])
    (task,) = rows_of(context.directory / TASKS)
    assert task["context"] == f"See {SKILL}/one/before, not files/one-two."
    assert task["check"]["command"] == ["python", f"{SKILL}/one/check.py", f"x {SKILL}/one/y"]
    environment = Tasks({"data_path": str(TASKS)}, context.directory)
    assert (
        environment.task("x", task, context.directory / TASKS).content["files"][0]["name"] == f"{SKILL}/one/before/a.py"
    )


@pytest.mark.parametrize("words", ["files/one/../../../../secret.txt", "files/one/link", "files/one/linked"])
def test_no_path_in_a_command_and_no_link_brings_a_file_from_elsewhere(context, words):
    row = {name: value for name, value in draft("one", prompt=TEXTS[0]).items() if name != "rubric"}
    row["check"] = {"type": "command", "command": ["cat", words], "files": ["files/one/a"]}
    private = drafts_in(context, [row], {"files/one/a": b"1"})
    secret = private.parent.parent.parent / "secret.txt"
    secret.write_text("private")
    (private.parent / "files" / "one" / "link").symlink_to(secret)
    (private.parent / "files" / "one" / "linked").symlink_to(secret.parent)
    review_harvest(context, SKILL, accept=["one"])
    written = [path for path in (context.directory / "tasks" / SKILL).rglob("*") if path.is_file()]
    assert [path.name for path in written] == ["a"]


@pytest.mark.parametrize("into", ["../elsewhere.jsonl", "link/x.jsonl", "tasks.csv"])
def test_tasks_go_to_a_file_of_the_work_tree_and_through_no_link(context, tmp_path, into):
    (context.directory / "link").symlink_to(tmp_path)
    private = drafts_in(context, [draft("one", prompt=TEXTS[0])])
    before = private.read_bytes()
    with pytest.raises(UsageError):
        review_harvest(context, SKILL, into=Path(into), accept=["one"])
    assert private.read_bytes() == before


@pytest.mark.parametrize("skill", ["../x", "..", "a/b", "gone"])
def test_a_skill_without_drafts_and_a_name_that_is_a_path_are_refused(context, skill):
    with pytest.raises(SkillgitError):
        review_harvest(context, skill)


def test_a_draft_and_a_dropped_row_are_no_tasks_of_a_run(context):
    for status in ("draft", "dropped"):
        (context.directory / "x.jsonl").write_text(json.dumps({"prompt": "a", "answer": "b", "status": status}))
        with pytest.raises(DataError, match="is a draft that"):
            Tasks({"data_path": "x.jsonl"}, context.directory).items("train")


def die_at(step: int, act) -> bool:
    """Carry ``act`` out in a process that kills itself before the ``step``-th change of a file; say if it died."""
    child = os.fork()
    if child == 0:
        seen = 0

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal seen
            written = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if written or event in {"os.rename", "os.mkdir", "os.remove", "os.rmdir"}:
                seen += 1
                if seen == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            act()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("every", [4, soak(1)])
def test_a_kill_between_any_two_changes_of_files_loses_and_repeats_nothing(context, every, monkeypatch):
    monkeypatch.setattr("skillgit.app.sources.draft_review.DraftFolder._suspects", lambda *_: iter(()))
    contents = {"files/one/a.csv": b"1", "files/one/b/c.csv": b"2", "files/three/x": b"3"}
    rows = [
        draft("one", prompt=TEXTS[0], files=["files/one"]),
        draft("two", prompt=TEXTS[1]),
        draft("three", prompt="c"),
    ]
    step, finished = 1, False
    while not finished:
        home = context.directory / f"at-{step}"
        here = replace(context, directory=Path(Repo.init(home).workdir))
        private = drafts_in(here, rows, contents)
        finished = not die_at(
            step, lambda here=here: review_harvest(here, SKILL, accept=["one", "two"], drop=["three"])
        )
        left = {left.id for left in review_harvest(a_day_after(here), SKILL).drafts}
        tasks = ids(rows_of(home / TASKS))
        assert len({*tasks}) == len(tasks)
        statuses = {row["id"]: row["status"] for row in rows_of(private)}
        assert {*statuses} == {"one", "two", "three"}
        assert {name for name, status in statuses.items() if status == "draft"} == left
        assert {name for name, status in statuses.items() if status == "reviewed"} == {*tasks}
        kept = {path.name for path in (private.parent / "files").iterdir()}
        assert kept == left & {"one", "three"}
        if "one" in tasks:
            folder = home / TASKS.parent / SKILL / "one"
            assert {path.name: path.read_bytes() for path in folder.rglob("*.csv")} == {"a.csv": b"1", "c.csv": b"2"}
        step += every
    assert left == set()
    assert step > 10


FILES = {"files/one/a.csv": b"1", "files/one/b/c.csv": b"2", "files/two/x": b"3", "files/two/unnamed": b"4"}
ROWS = [
    draft("one", prompt=TEXTS[0], files=["files/one"]),
    draft("two", prompt=TEXTS[1], context="See files/two/x.", files=["files/two/x"]),
    draft("three", prompt="c \u00fc"),
]
DECISIONS = {
    "accept": DraftFolder.accept,
    "drop": DraftFolder.drop,
    "edit": lambda folder, shown: folder.edit(shown, f"{shown.editable}hint: {len(shown.editable)}\n"),
}
SEQUENCES = st.lists(st.tuples(st.sampled_from([row["id"] for row in ROWS]), st.sampled_from([*DECISIONS])), max_size=6)


@given(SEQUENCES, st.sampled_from([None, b"", b'{"prompt": "a", "answer": "b"}', b'{"prompt": "a", "answer": "b"}\n']))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undoing_every_decision_gives_back_the_very_bytes(context, decisions, tasks):
    folders = [Repo.discover(context.directory).private_dir / "drafts", context.directory / "tasks"]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    private = drafts_in(context, ROWS, FILES)
    private.write_bytes(b"\n" + private.read_bytes()[:-1])
    if tasks is not None:
        folders[1].mkdir()
        (context.directory / TASKS).write_bytes(tasks)
    (folders[0] / "lock").touch()
    before = [tree(*folders)]
    with open_drafts(context, SKILL) as folder:
        for name, decision in decisions:
            if name in folder.pending_ids():
                DECISIONS[decision](folder, folder.pending(name))
                before.append(tree(*folders))
    for after in reversed(before[:-1]):
        review_harvest(context, SKILL, undo=True)
        assert tree(*folders) == after
    with pytest.raises(NotFoundError, match="no answer to take back"):
        review_harvest(context, SKILL, undo=True)
    assert tree(*folders) == before[0]
    assert (tasks is not None) == folders[1].exists()


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_kill_while_an_answer_is_taken_back_leaves_it_or_takes_it_back(context, decision):
    step, finished = 1, False
    while not finished:
        home = context.directory / f"at-{step}"
        here = replace(context, directory=Path(Repo.init(home).workdir))
        private = drafts_in(here, ROWS, FILES)
        folders = (private.parent, home / "tasks")
        states = [tree(*folders)]
        with open_drafts(here, SKILL) as folder:
            DECISIONS[decision](folder, folder.pending("one"))
        states.append(tree(*folders))
        finished = not die_at(step, lambda here=here: review_harvest(here, SKILL, undo=True))
        review_harvest(here, SKILL)
        now = tree(*folders)
        assert now in states
        if now == states[1]:
            review_harvest(here, SKILL, undo=True)
        assert tree(*folders) == states[0]
        step += 1
    assert step > 4


def spoil(path: Path, old: str = "", new: str = "edited") -> None:
    path.write_text(path.read_text().replace(old, new, 1) if old else new)


@pytest.mark.parametrize(
    ("decision", "change"),
    [
        ("edit", lambda private, _: spoil(private, '"hint": ', '"hint": 1')),
        ("edit", lambda private, _: spoil(private.parent / "files/one/a.csv")),
        ("drop", lambda private, _: spoil(private.parent / "files/one/b/c.csv")),
        ("drop", lambda private, _: spoil(private, '"status": "dropped"', '"status": "draft", "prompt": "mine"')),
        ("accept", lambda _, tasks: spoil(tasks / f"{SKILL}.jsonl", "It does", "It never does")),
        ("accept", lambda _, tasks: spoil(tasks / SKILL / "one/a.csv")),
        ("accept", lambda _, tasks: spoil(tasks / SKILL / "one/new.csv")),
    ],
)
def test_an_answer_whose_draft_has_changed_since_stays_and_older_ones_are_taken_back(context, decision, change):
    private = drafts_in(context, ROWS, FILES)
    folders = (private.parent, context.directory / "tasks")
    with open_drafts(context, SKILL) as folder:
        folder.drop(folder.pending("three"))
        DECISIONS[decision](folder, folder.pending("one"))
        change(private, folders[1])
        last, (changed,) = folder.last()
        assert (str(last), changed.id) == ("dropped three", "one")
        before = tree(*folders)
        with pytest.raises(ConflictError, match="one has changed since it was "):
            folder.undo(changed.state)
        assert tree(*folders) == before
    result = review_harvest(context, SKILL, undo=True)
    assert (result.undo, result.stays) == (("dropped three",), (str(changed),))
    after = tree(*folders)
    assert after.keys() == before.keys()
    assert [path for path in after if after[path] != before[path]] == [str(private)]
    with pytest.raises(ConflictError, match="one has changed since it was "):
        review_harvest(context, SKILL, undo=True)
    assert tree(*folders) == after


def test_only_the_answer_that_was_meant_is_taken_back_within_a_day_and_while_no_harvest_writes(context):
    private = drafts_in(context, ROWS, FILES)
    with open_drafts(context, SKILL) as folder:
        folder.drop(folder.pending("one"))
        (seen,) = folder.decisions()
        folder.drop(folder.pending("three"))
        with pytest.raises(ConflictError, match="the last answer is another one now: dropped three"):
            folder.undo(seen.state)
        with folder.alone(), pytest.raises(ConflictError, match="another process is writing drafts"):
            folder.undo()
        assert str(folder.undo()) == "dropped three"
    with pytest.raises(NotFoundError, match="no answer to take back"):
        review_harvest(a_day_after(context), SKILL, undo=True)
    assert TEXTS[0] not in json.dumps(rows_of(private))


def test_what_changes_after_it_was_shown_is_not_accepted(context):
    private = drafts_in(context, [draft("one", prompt=TEXTS[0], files=["files/one/a"])], {"files/one/a": b"shown"})
    with open_drafts(context, SKILL) as folder:
        pending = folder.pending("one")
        (private.parent / "files/one/a").write_text("something else")
        with pytest.raises(ConflictError, match="one was edited in another window"):
            folder.accept(pending)
        folder.accept(folder.pending("one"))


@pytest.mark.parametrize("into", [".git/hooks/y.jsonl", "tasks/linked.jsonl"])
def test_tasks_go_neither_into_git_nor_through_a_link(context, into, tmp_path):
    drafts_in(context, [draft("one", prompt=TEXTS[0])], {})
    (tmp_path / "private.jsonl").write_text("")
    (context.directory / "tasks").mkdir()
    (context.directory / "tasks/linked.jsonl").symlink_to(tmp_path / "private.jsonl")
    with pytest.raises(UsageError, match="is not in the work tree"):
        review_harvest(context, SKILL, into=into, accept=["one"])


def test_what_only_looks_random_is_left_out_of_all(context):
    session = "kJ8vQ2xLw9ZrT4mN7bYc1HsD"
    drafts_in(context, [draft("one", prompt=f"{TEXTS[0]}\nsession: '{session}'")], {})
    review = review_harvest(context, SKILL, accept=["all"])
    assert (review.accepted, len(review.drafts[0].warnings)) == ((), 1)
    assert session not in review.drafts[0].warnings[0]
    assert review_harvest(context, SKILL, accept=["one"]).accepted == ("one",)
