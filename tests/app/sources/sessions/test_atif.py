"""Trajectories in ATIF as a source of tasks: what is in them is read as the sessions of agents are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from atif_rules import Trajectory
from hypothesis import given
from hypothesis import strategies as st
from program import git, skillgit

from skillgit.app.sources.sessions.agents import Atif, SessionSearch
from skillgit.app.sources.sessions.session import NoTurn, SessionAgent, SkillUse

SKILL = "---\nname: totals\ndescription: Sums amounts.\n---\nSum them.\n"


def call(number: int, name: str, result: object = "ok", extra: dict[str, Any] | None = None, **arguments: Any) -> Any:
    """Return a call and its result."""
    identity = f"c{number}"
    row = {"source_call_id": identity, "content": result, **({"extra": extra} if extra else {})}
    return {"tool_call_id": identity, "function_name": name, "arguments": arguments}, row


def step(source: str, message: object, *calls: Any, **more: Any) -> dict[str, Any]:
    parts = {}
    if calls:
        parts = {
            "tool_calls": [each for each, _ in calls],
            "observation": {"results": [row for _, row in calls if row]},
        }
    return {"source": source, "message": message, **parts, **more}


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a trajectory, after a look at the format's rules."""
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "one",
        "agent": {"name": "claude-code", "version": "2.1", "extra": {"cwds": ["/app"]}},
        "steps": [{"step_id": number, **each} for number, each in enumerate(steps, 1)],
        **more,
    }
    Trajectory.model_validate_json(json.dumps(document))
    return document


def read(document: object, folder: Path) -> Any:
    file = folder / "trajectory.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return Atif.read(file, lambda *_: None)


WRITES = [
    [
        call(1, "Write", file_path="/app/a.py", content="x = 1\n"),
        call(2, "Edit", file_path="a.py", old_string="1", new_string="2"),
    ],
    [
        call(1, "create", path="/app/a.py", file_text="x = 1\n"),
        call(2, "edit", path="/app/a.py", old_str="1", new_str="2"),
    ],
    [
        call(1, "str_replace_editor", command="create", path="/app/a.py", file_text="x = 1\n"),
        call(2, "str_replace_editor", command="str_replace", path="/app/a.py", old_str="1", new_str="2"),
    ],
    [
        call(1, "write", filePath="/app/a.py", content="x = 1\n"),
        call(2, "edit", filePath="/app/a.py", oldString="1", newString="2", replaceAll=True),
    ],
]


@pytest.mark.parametrize("calls", WRITES)
def test_edits_of_every_spelling_are_followed(calls, tmp_path):
    session = read(trajectory(step("user", "make a"), step("agent", "", *calls), step("agent", "done")), tmp_path)
    (turn,) = session.turns
    assert [(edit.path, edit.before, edit.after) for edit in turn.edits] == [
        ("/app/a.py", None, "x = 1\n"),
        ("/app/a.py", "x = 1\n", "x = 2\n"),
    ]
    assert (turn.prompt, turn.answer, session.directory) == ("make a", "done", "/app")
    assert not [each for each in turn.calls if each.command]


def test_commands_pass_or_fail_by_what_the_result_says(tmp_path):
    calls = [
        call(1, "Bash", "1 failed", {"exit_code": 1}, command="pytest"),
        call(2, "bash", "boom", {"is_error": True}, command="pytest"),
        call(3, "shell", [{"type": "text", "text": "2 passed"}], command="pytest"),
        (call(4, "shell", command="sleep 9")[0], None),
    ]
    session = read(trajectory(step("user", "test it"), step("agent", "", *calls)), tmp_path)
    (turn,) = session.turns
    assert [(each.failed, each.passed) for each in turn.calls] == [
        (True, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert turn.calls[2].output == "2 passed"


def test_a_skill_counts_as_used_where_it_is_called_or_read(tmp_path):
    ways = [
        call(1, "Skill", skill="totals"),
        call(1, "read_file", path="/app/.claude/skills/totals/SKILL.md"),
        call(1, "bash", command="cat .claude/skills/totals/SKILL.md"),
    ]
    for way in ways:
        (turn,) = read(trajectory(step("user", "sum"), step("agent", "", way)), tmp_path).turns
        assert turn.uses == {"totals": SkillUse.MODEL}


def test_what_no_person_said_gives_no_turn(tmp_path):
    inner = trajectory(step("user", "look around"), trajectory_id="inner")
    steps = [
        step("system", "You are an agent."),
        step("user", "before", is_copied_context=True),
        step("user", "sum", timestamp="2026-11-01T10:00:00Z"),
        step("agent", "6"),
    ]
    session = read(trajectory(*steps, subagent_trajectories=[inner]), tmp_path)
    assert [(turn.prompt, turn.date, turn.answer) for turn in session.turns] == [("sum", "2026-11-01T10:00:00Z", "6")]
    assert session.left_out == {NoTurn.DUPLICATE: 1, NoTurn.SUBAGENT: 1}
    assert session.version == "claude-code 2.1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["user", "agent", "c1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["source", "message", "tool_calls", "arguments", "path", "content", "observation", "results"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(steps=st.lists(JSON, max_size=5), more=JSON)
def test_no_damaged_document_stops_the_reader(steps, more, tmp_path_factory):
    document = {"schema_version": "ATIF-v1.7", "agent": more, "steps": steps, "subagent_trajectories": more}
    session = read(document, tmp_path_factory.mktemp("damaged"))
    assert all(turn.prompt is not None for turn in session.turns)


def test_a_folder_gives_its_trajectories_and_no_other_json(tmp_path):
    (tmp_path / "job" / "agent").mkdir(parents=True)
    read(trajectory(step("user", "sum"), step("agent", "6")), tmp_path / "job" / "agent")
    (tmp_path / "job" / "result.json").write_text('{"reward": 1}')
    (tmp_path / "job" / "broken.json").write_text('{"schema_version": "ATIF-v1.7", ')
    (tmp_path / "job" / "next.json").write_text('{"schema_version": "ATIF-v2.0", "steps": []}')
    search = SessionSearch(projects=(Path("/elsewhere"),), since=0, original=lambda *_: None, snapshot=lambda *_: None)
    sessions = [*search.at(tmp_path)]
    assert [(each.agent, len(each.turns)) for each in sessions] == [(SessionAgent.ATIF, 1)]
    assert search.foreign == ["result.json"]
    assert len(search.unreadable) == 2
    assert any("broken.json" in sentence for sentence in search.unreadable)
    assert "next.json has the schema_version 'ATIF-v2.0'; ATIF-v1.x can be read" in search.unreadable


def test_a_correction_in_a_trajectory_becomes_a_draft(tmp_path):
    repository = tmp_path / "repository"
    (repository / "skills/totals").mkdir(parents=True)
    (repository / "skills/totals/SKILL.md").write_text(SKILL)
    git("init", "-q", "-b", "main", cwd=repository)
    git("add", ".", cwd=repository)
    git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "x", cwd=repository)
    first = call(1, "Write", file_path="/app/total.txt", content="5\n")
    second = call(1, "Write", file_path="/app/total.txt", content="6\n")
    steps = [
        step("user", "Sum 1, 2 and 3 into total.txt."),
        step("agent", "", call(2, "Skill", skill="totals"), first),
        step("user", "No, it is one more."),
        step("agent", "Now 6.", second),
    ]
    job = tmp_path / "job"
    job.mkdir()
    (job / "trajectory.json").write_text(json.dumps(trajectory(*steps)))
    words = ("tasks", "draft", "totals", "--from", f"atif:{job}/trajectory.json", "--json")
    done = json.loads(skillgit(*words, cwd=repository).out)
    (draft,) = done["drafts"]
    assert (draft["agent"], draft["title"]) == ("atif", "Sum 1, 2 and 3 into total.txt.")
    assert "correction" in draft["signals"]
    (job / "result.json").write_text('{"reward": 1}')
    mixed = skillgit("tasks", "draft", "totals", "--from", f"atif:{job}", cwd=repository)
    assert "1 file is neither a session nor in ATIF: result.json" in mixed.err
    assert f"looked for sessions in {job}\n" in mixed.out  # the draft is known by now, so there is no other
    for name, source, code, sentence, hint in (
        ("totals", "atif", 2, "kept nowhere", "--from atif:PATH"),
        ("totls", f"atif:{job}", 3, "there is no skill 'totls'", "totals"),
        ("totals", f"atif:{job}/result.json", 3, "holds no session of an agent", "schema_version ATIF-v1.x"),
    ):
        refusal = skillgit("tasks", "draft", name, "--from", source, cwd=repository, code=code).err
        assert sentence in refusal
        assert hint in refusal.partition("hint: ")[2]
