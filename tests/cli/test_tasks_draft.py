"""``skillgit tasks draft``: each source takes the options that suit it, and refuses the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from program import git

from skillgit.app.sources.tasks_draft import Drafted
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import Cost
from skillgit.verbs.command_line import read_words
from skillgit.verbs.verb import Effect

INDEX = Workspace.index  # that of the repository; ``fake`` gives another
DRAFTED = Drafted(path=Path("/r/tasks.jsonl"), ids=("t-1",), refused=(), removed=0, model="a/b", cost=Cost())


@pytest.fixture
def skill(tmp_path):
    """A repository whose only skill is called town, and a plug-in with one eval case next to it."""
    (tmp_path / "skills/town").mkdir(parents=True)
    (tmp_path / "skills/town/SKILL.md").write_text("---\nname: town\ndescription: Answers.\n---\n\n- Be kind.\n")
    git("init", "-qb", "main", cwd=tmp_path)
    git("add", "-A", cwd=tmp_path)
    git("-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-qm", "a skill", cwd=tmp_path)
    case = tmp_path / "plugin/evals/short"
    (case / "graders").mkdir(parents=True)
    (case / "prompt.md").write_text("Say hello.\n")
    (case / "graders/one.md").write_text("---\ntype: regex\n---\nhello\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--since", "7d"), "--since needs --from sessions"),
        (("--rubric",), "--rubric needs --from sessions"),
        (("--from", "sessions", "-f", "x.jsonl"), "--file needs --from model or DIR"),
        (("--from", "codex", "--limit", "3"), "--limit needs --from model"),
        (("--from", "plugin", "-n"), "--dry-run needs --from model or sessions"),
        (("--from", "plugin", "--max-calls", "3"), "--max-calls needs --from model or sessions"),
        (("town", "--skill", "town"), "SKILL cannot be combined with --skill"),
    ],
)
@pytest.mark.usefixtures("skill")
def test_an_option_of_another_source_is_refused(words, sentence, skillgit):
    ended = skillgit("tasks", "draft", *words)
    assert ended.code == 2
    assert ended.err == f"skillgit: {sentence}\nhint: skillgit tasks draft --help\n"


@pytest.mark.usefixtures("skill")
def test_a_source_that_is_none_leads_to_those_that_are(skillgit):
    ended = skillgit("tasks", "draft", "--from", "sesions")
    assert (ended.code, "there is no folder sesions" in ended.err) == (3, True)
    assert "sessions:PATH" in ended.err


@pytest.mark.parametrize("words", [(), ("town",), ("--skill", "town"), ("skills/town",), ("skills/town/SKILL.md",)])
def test_one_skill_in_every_spelling_is_drafted_for_into_its_own_file(words, skill, skillgit, fake, monkeypatch):
    calls = fake("sources.tasks_draft.draft", DRAFTED)
    monkeypatch.setattr(Workspace, "index", INDEX)
    assert skillgit("tasks", "draft", *words).code == 0
    ((request,),) = calls
    assert request.file == skill.resolve() / "tasks/town.jsonl"
    assert (skill / request.subject).resolve() in {(skill / f"skills/town{end}").resolve() for end in ("", "/SKILL.md")}


def test_cases_of_a_plug_in_become_tasks_of_the_skill(skill, skillgit):
    ended = skillgit("tasks", "draft", "--from", "plugin", "--json")
    assert (ended.code, json.loads(ended.out)["schema"]) == (0, "skillgit.tasks-import/1")
    (row,) = map(json.loads, (skill / "tasks/town.jsonl").read_text().splitlines())
    assert (row["id"], row["check"]) == ("short", {"type": "regex", "pattern": "hello", "name": "one"})


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        ((), Effect.PAYS),
        (("-n",), Effect.READS),
        (("--from", "claude"), Effect.FILES),
        (("--from", "sessions:old", "--rubric"), Effect.PAYS),
        (("--from", "plugin"), Effect.FILES),
    ],
)
def test_what_a_draft_changes_depends_on_its_source(words, effect):
    verb, request = read_words(["tasks", "draft", *words])
    assert verb.effect_of(request) is effect
