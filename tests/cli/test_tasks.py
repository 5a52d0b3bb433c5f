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
        '    answers: ["so"]\n'
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


class Terminal:
    """What a person at a terminal types, each answer behind its question, and what the editor makes of a text."""

    def __init__(self, monkeypatch, answers: list[str], edits: list[str]):
        self.shown: list[str] = []
        self._answers, self._edits = iter(answers), iter(edits)
        monkeypatch.setattr("skillgit.cli.session.sys.stdin", SimpleNamespace(isatty=lambda: True))
        screen_of = session.screen_of
        monkeypatch.setattr(session, "screen_of", lambda *given: replace(screen_of(*given), terminal=True))
        monkeypatch.setattr("skillgit.cli.session.click.prompt", lambda *_, **__: next(self._answers))
        monkeypatch.setattr("skillgit.cli.session.click.confirm", lambda *_, **__: next(self._answers) == "y")
        if edits:
            monkeypatch.setattr("skillgit.cli.session.click.edit", self._edit)

    def _edit(self, text: str, **_: object) -> str | None:
        self.shown.append(text)
        return next(self._edits)


@pytest.fixture
def drafts(tmp_path) -> Path:
    Repo.init(tmp_path)
    rows = [draft(name, prompt=f"How long is pier {name}?", files=[f"files/{name}"]) for name in ("a", "b", "c", "d")]
    return write_drafts(tmp_path, rows, {f"files/{row['id']}/x.txt": b"180\x1b[2J metres" for row in rows})


def test_on_a_terminal_each_draft_is_asked_about_and_each_answer_takes_effect_at_once(
    skillgit, monkeypatch, drafts, tmp_path
):
    answers = ["f", "l", "a", "d", "e", "y", "e", "a", "q"]
    edits = ["prompt: why?", "prompt: Why?\nanswer: so", "prompt: Why not?\nanswer: so"]
    terminal = Terminal(monkeypatch, answers, edits)
    ended = skillgit("tasks", "review", "--skill", SKILL)
    assert ended.code == 0
    assert "180^[[2J metres" in ended.text
    assert "\x1b[2J" not in ended.text
    assert ended.text.splitlines()[-1] == f"2 tasks in {SKILL}.jsonl"
    assert terminal.shown[1] == "prompt: why?"
    assert "this is not a task: draft c does not say what a right result is" in ended.err
    tasks = [json.loads(line) for line in (tmp_path / "tasks" / f"{SKILL}.jsonl").read_text().splitlines()]
    assert [(task["id"], task["prompt"]) for task in tasks] == [("a", "How long is pier a?"), ("c", "Why not?")]
    statuses = [json.loads(line)["status"] for line in drafts.read_text().splitlines()]
    assert statuses == ["reviewed", "dropped", "reviewed", "draft"]


EDITORS = [
    ("printf 'a: [\\nb: 1' >", ["n"], "line 2 is not valid YAML"),
    ("printf 'a: [' >", ["y"], "is not valid YAML"),
    (": >", [], ""),
    ("touch", [], ""),
    ("false", [], "Editing failed"),
    ("printf '\\377' >", [], "$EDITOR: 'utf-8' codec"),
]


@pytest.mark.parametrize("case", EDITORS)
def test_an_editor_is_started_again_only_if_the_user_says_so(skillgit, monkeypatch, drafts, tmp_path, case):
    editor, answers, fault = case
    program = tmp_path / "editor"
    program.write_text(f'#!/bin/sh\necho >> "{tmp_path}/starts"\n{editor} "$1"\n')
    program.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(program))
    before = drafts.read_bytes()
    Terminal(monkeypatch, ["e", *answers, "q"], [])
    ended = skillgit("tasks", "review", "--skill", SKILL)
    assert (ended.code, drafts.read_bytes()) == (0, before)
    assert ended.text.endswith(f"0 tasks in {SKILL}.jsonl\n")
    assert len((tmp_path / "starts").read_text()) == 1 + answers.count("y")
    assert fault in ended.err if fault else ended.err == ""


@pytest.mark.parametrize("editor", ["/nonexistent/editor", "'open"])
@pytest.mark.usefixtures("drafts")
def test_an_editor_that_cannot_be_started_does_not_end_the_review(skillgit, monkeypatch, editor):
    monkeypatch.setenv("VISUAL", editor)
    Terminal(monkeypatch, ["e", "a", "q"], [])
    ended = skillgit("tasks", "review", "--skill", SKILL)
    assert (ended.code, ended.text.splitlines()[-1]) == (0, f"1 task in {SKILL}.jsonl")
    assert "hint: set EDITOR" in ended.err


def test_a_draft_has_its_place_among_all_its_context_once_and_lines_that_fit(skillgit, monkeypatch, tmp_path):
    Repo.init(tmp_path)
    words = "the project of many words " * 12
    write_drafts(tmp_path, [draft(name, prompt=words + name, context="See the notes.") for name in ("a", "b")])
    monkeypatch.setenv("COLUMNS", "80")
    Terminal(monkeypatch, ["s", "s"], [])
    lines = skillgit("tasks", "review", "--skill", SKILL).text.splitlines()
    assert [line for line in lines if " of 2" in line] == ["a 1 of 2", "b 2 of 2"]
    assert sum("See the notes." in line for line in lines) == 2
    text = next(" ".join(lines[:number]) for number, line in enumerate(lines) if "rubric" in line)
    assert words.strip() in " ".join(text.split())


def test_after_an_answer_the_drafts_that_are_left_are_counted(skillgit, drafts, tmp_path):
    rows = [json.loads(line) for line in drafts.read_text().splitlines()]
    drafts.write_text("".join(f"{json.dumps({**row, 'prompt': 'How long is pier a?'})}\n" for row in rows))
    answered = skillgit("tasks", "review", "--skill", SKILL, "--accept", "a").text
    assert answered.splitlines() == [
        "accepted 1 draft: a",
        f"3 drafts to review · 1 task in {SKILL}.jsonl",
        f"skillgit tasks review --skill {SKILL} --undo takes the last answer back",
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
    assert skillgit("tasks", "review", "--skill", SKILL, "--accept", "a", "--drop", "b").text.startswith(
        "accepted 1 draft: a\ndropped 1 draft: b\n"
    )
    taken = [skillgit("tasks", "review", "--skill", SKILL, "--undo") for _ in range(3)]
    assert [ended.text.splitlines()[0] for ended in taken[:2]] == ["taken back: dropped b", "taken back: accepted a"]
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
