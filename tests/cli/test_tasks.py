from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillgit.app.sources.tasks import Added, Reviewed, TaskDraft
from skillgit.app.sources.tasks_draft import Drafted
from skillgit.domain.cost import Caps, Cost
from skillgit.errors import DataError

ADDED = Added(path=Path("/home/user/tasks.jsonl"), id="t-1", count=2)
LEFT = TaskDraft(id="t-2", line=7, prompt="Why?\nSay so.", expected={"answers": ["so"]})


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
    assert "--check is no JSON" in ended.err


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
        "t-2 line 7\n"
        "    Why?\n"
        "    Say so.\n"
        '    answers: ["so"]\n'
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
    overrides = {"count": 3, "config": "tasks/default", "overrides": ("model.optimizer=b",)}
    overrides |= {"caps": Caps(max_tokens=9), "dry_run": False}
    assert calls == [(Path("SKILL.md"), Path("tasks.jsonl"), overrides)]
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
        "harvest",
        "review",
    ]
    assert "Show this help" in ended.text
