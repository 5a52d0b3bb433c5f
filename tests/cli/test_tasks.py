from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from harvested import SKILL, draft, write_drafts

from skillgit.app.sources.requests import DraftRequest
from skillgit.app.sources.tasks import Added, Reviewed, TaskDraft
from skillgit.app.sources.tasks_draft import Drafted
from skillgit.cli import session
from skillgit.domain.cost import Cost
from skillgit.errors import DataError
from skillgit.store.repo import Repo

ADDED = Added(path=Path("/home/user/tasks.jsonl"), id="t-1", count=2)
LEFT = TaskDraft(id="t-2", line=7, prompt="Why?\nSay so.", expected={"answers": ["so"]}, warning="")


def test_add_takes_a_task_from_its_options(skillgit, fake):
    calls = fake("sources.tasks.add", ADDED)
    ended = skillgit("tasks", "add", "tasks.jsonl", "--prompt", "Why?", "--answer", "so", "--answer", "thus")
    assert calls == [(Path("tasks.jsonl"), {"prompt": "Why?", "answers": ["so", "thus"]})]
    assert ended.text == "added t-1 to tasks.jsonl, 2 tasks\n"


@pytest.mark.parametrize(("text", "check"), [("numeric", "numeric"), ('{"type": "regex"}', {"type": "regex"})])
def test_a_check_is_a_name_or_json(skillgit, fake, text: str, check: object):
    calls = fake("sources.tasks.add", ADDED)
    more = ("--id", "mine", "--rubric", "It is kind.", "--file", "a.txt", "--split", "test")
    skillgit("tasks", "add", "tasks.jsonl", "--prompt", "Why?", "--check", text, *more)
    assert calls[0][1] == {
        "id": "mine",
        "prompt": "Why?",
        "check": check,
        "rubric": "It is kind.",
        "files": ["a.txt"],
        "split": "test",
    }


def test_a_check_that_is_broken_json_is_refused(skillgit, fake):
    calls = fake("sources.tasks.add", ADDED)
    ended = skillgit("tasks", "add", "tasks.jsonl", "--prompt", "Why?", "--check", '{"type"')
    assert (ended.code, calls) == (2, [])
    assert "--check is not valid JSON" in ended.err


def test_what_cannot_be_added_says_why(skillgit, fake):
    fake("sources.tasks.add", DataError("the new task is none", hint="mend it"))
    ended = skillgit("tasks", "add", "tasks.jsonl", "--prompt", "Why?")
    assert (ended.code, ended.err) == (2, "skillgit: the new task is none\nhint: mend it\n")


def test_review_shows_drafts_and_what_comes_next(skillgit, fake):
    calls = fake("sources.tasks.review", Reviewed(path=ADDED.path, accepted=("t-1",), drafts=(LEFT,), count=3))
    ended = skillgit("tasks", "review", "tasks.jsonl", "--accept", "t-1")
    assert calls == [(Path("tasks.jsonl"), ("t-1",))]
    assert ended.text == (
        "accepted 1 draft: t-1\n"
        "1 draft of 3 tasks; no run uses the file\n"
        "skillgit tasks review /home/user/tasks.jsonl shows what is left\n"
    )
    draft_left = replace(LEFT, warning="no check equals it")
    fake("sources.tasks.review", Reviewed(path=ADDED.path, accepted=(), drafts=(draft_left,), count=3))
    assert skillgit("tasks", "review", "tasks.jsonl").text == (
        "t-2 line 7\n"
        "    Why?\n"
        "    Say so.\n"
        "    answers:\n"
        "    - so\n"
        "    look at this: no check equals it\n"
        "\n"
        "1 draft of 3 tasks; no run uses the file\n"
        "next: edit or delete lines, then skillgit tasks review /home/user/tasks.jsonl --accept all\n"
    )


def test_review_of_a_file_without_drafts_says_so(skillgit, fake):
    fake("sources.tasks.review", Reviewed(path=ADDED.path, accepted=(), drafts=(), count=1))
    assert skillgit("tasks", "review", "tasks.jsonl").text == "no drafts are left; 1 task\n"


def test_draft_tells_what_was_drafted_and_what_was_left_out(skillgit, fake):
    result = Drafted(
        path=ADDED.path, ids=("t-1", "t-2"), refused=("draft 3 is none",), removed=2, model="a/b", cost=Cost(calls=1)
    )
    calls = fake("sources.tasks_draft.draft", result)
    ended = skillgit(
        "tasks",
        "draft",
        "SKILL.md",
        "--limit",
        "3",
        "-f",
        "tasks.jsonl",
        "-o",
        "model.optimizer=b",
        "--max-tokens",
        "9",
    )
    request = DraftRequest(
        subject="SKILL.md", file=Path("tasks.jsonl"), limit=3, overrides=("model.optimizer=b",), max_tokens=9
    )
    assert calls == [(request,)]
    assert ended.text.startswith("2 drafts by a/b in tasks.jsonl · ")
    assert ended.text.endswith("next: skillgit tasks review /home/user/tasks.jsonl\n")
    assert "left out: draft 3 is none" in ended.err


def test_the_three_have_documents(skillgit, fake):
    fake("sources.tasks.add", ADDED)
    assert json.loads(skillgit("tasks", "add", "f.jsonl", "--prompt", "a", "--json").out)["schema"] == (
        "skillgit.tasks-add/1"
    )
    fake("sources.tasks.review", Reviewed(path=ADDED.path, accepted=(), drafts=(LEFT,), count=3))
    assert json.loads(skillgit("tasks", "review", "f.jsonl", "--json").out)["drafts"][0]["line"] == 7


def test_the_help_lists_what_there_is(skillgit):
    ended = skillgit("tasks", "--help")
    assert [line.split()[0] for line in ended.text.partition("Commands:")[2].split("\n") if line.strip()] == [
        "add",
        "draft",
        "review",
    ]
    assert "Show this help" in ended.text


@pytest.fixture
def drafts(tmp_path) -> Path:
    Repo.init(tmp_path)
    rows = [draft(name, prompt=f"How long is pier {name}?", files=[f"files/{name}"]) for name in ("a", "b", "c", "d")]
    return write_drafts(tmp_path, rows, {f"files/{row['id']}/x.txt": b"180\x1b[2J metres" for row in rows})


@pytest.mark.usefixtures("drafts")
def test_on_a_terminal_a_review_opens_its_screen(skillgit, monkeypatch):
    calls = []
    monkeypatch.setattr("skillgit.cli.session.sys.stdin", SimpleNamespace(isatty=lambda: True))
    screen_of = session.screen_of
    monkeypatch.setattr(session, "screen_of", lambda *given: replace(screen_of(*given), terminal=True))
    monkeypatch.setattr("skillgit.tui.start.review_drafts", lambda _, *given, **more: calls.append((*given, more)))
    ended = skillgit("tasks", "review", "--skill", SKILL, "--into", "tasks/x.jsonl")
    assert (ended.code, ended.text) == (0, "0 tasks in x.jsonl\n")
    assert calls == [(SKILL, Path("tasks/x.jsonl"), {"unicode": True})]


def test_after_an_answer_the_drafts_that_are_left_are_counted(skillgit, drafts, tmp_path):
    rows = [json.loads(line) for line in drafts.read_text().splitlines()]
    drafts.write_text("".join(f"{json.dumps({**row, 'prompt': 'How long is pier a?'})}\n" for row in rows))
    answered = skillgit("tasks", "review", "--skill", SKILL, "--accept", "a").text
    assert answered.splitlines() == [
        "accepted 1 draft: a",
        f"3 drafts to review · 1 task in {SKILL}.jsonl",
        f"skillgit tasks review --skill {SKILL} --undo takes it back",
        f"skillgit tasks review --skill {SKILL} shows what is left, and why it may need a look",
    ]
    assert "accepted" not in skillgit("tasks", "review", "--skill", SKILL, "--accept", "all").text
    (tmp_path / "x.jsonl").write_text('{"id": "one", "status": "draft", "prompt": "b", "answer": "y"}\n')
    assert "no drafts are left" in skillgit("tasks", "review", "x.jsonl", "--accept", "one").text


@pytest.mark.usefixtures("drafts")
def test_without_a_terminal_drafts_are_listed_and_the_document_has_what_would_be_committed(skillgit):
    document = json.loads(skillgit("tasks", "review", "--skill", SKILL, "--json").out)
    assert [row["id"] for row in document["drafts"]] == ["a", "b", "c", "d"]
    assert json.loads(document["drafts"][0]["line"])["status"] == "reviewed"
    assert skillgit("tasks", "review", "--skill", SKILL).text.splitlines()[-2:] == [
        f"4 drafts to review · 0 tasks in {SKILL}.jsonl",
        f"next: skillgit tasks review --skill {SKILL} --accept ID",
    ]
    skillgit("tasks", "review", "--skill", SKILL, "--drop", "d")
    answered = skillgit("tasks", "review", "--skill", SKILL, "--accept", "c", "--accept", "a", "--drop", "b").text
    assert answered.startswith("accepted 2 drafts: c a\ndropped 1 draft: b\n")
    assert "--undo takes all 3 back" in answered
    taken = [skillgit("tasks", "review", "--skill", SKILL, "--undo") for _ in range(3)]
    assert taken[0].text.splitlines()[:2] == ["taken back: dropped b", "taken back: accepted a c"]
    assert taken[1].text.splitlines()[0] == "taken back: dropped d"
    assert (taken[2].code, taken[2].err.splitlines()[0]) == (3, "skillgit: there is no answer to take back")


@pytest.mark.parametrize(
    "words", [("x.jsonl", "--skill", "s"), ("x.jsonl", "--drop", "all"), ("--undo", "--drop", "a")]
)
def test_review_takes_a_file_or_a_skill(skillgit, words):
    assert skillgit("tasks", "review", *words).code == 2


def test_what_was_never_harvested_is_named_with_the_command_that_does(skillgit, tmp_path):
    Repo.init(tmp_path)
    ended = skillgit("tasks", "review", "--skill", "gone")
    assert (ended.code, ended.err) == (
        3,
        "skillgit: nothing was harvested for gone\nhint: skillgit tasks draft gone --from sessions\n",
    )
