"""A training whose agent never loads the skill says so first and stops; one whose agent loads it goes on as usual."""

from __future__ import annotations

import json
import shlex

import pytest
from program import attempt, new_repository, skillgit
from stand_ins import write_agent

from skillgit.errors import ExitCode

pytestmark = pytest.mark.slow

AGENT = """
if "--version" in ARGUMENTS:
    sys.exit(print("2.1.0"))
task = sys.stdin.read()
if Path(sys.argv[0]).with_name("loads").exists() and Path(".claude/skills").exists():
    name = os.listdir(".claude/skills")[0]
    use = {"type": "tool_use", "id": "t", "name": "Skill", "input": {"skill": name}}
    say({"type": "assistant", "message": {"content": [use]}})
    say({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "Launching"}]}})
say({"type": "assistant", "message": {"content": [{"type": "text", "text": "<answer>Seine</answer>"}]}})
say({"type": "result", "subtype": "success", "result": "<answer>Seine</answer>", "stop_reason": "end_turn",
     "usage": {"input_tokens": 10, "output_tokens": 5}})
"""
NEVER, ALWAYS = "skill loaded in 0 of 3 rollouts", "skill loaded in 3 of 3 rollouts"


@pytest.fixture
def train(tmp_path):
    """Return what trains three items with an agent of its own, and asks the repository of it."""
    path, _ = write_agent(tmp_path, AGENT)
    items = tmp_path / "items.json"
    texts = {"question": "Which river is it?", "context": "Rivers.", "answers": ["Po"]}
    rows = [{"id": f"i{number}", **texts, "question": f"Which river runs through {number}?"} for number in range(30)]
    items.write_text(json.dumps(rows))
    settings = {
        "model.target_backend": "claude_code_exec",
        "model.claude_code_exec_path": path,
        "model.claude_code_exec_allow_root": "true",
        "model.target": "m",
        "train.num_epochs": 1,
        "evaluation.sel_env_num": 3,
        "env.data_path": str(items),
        "evaluation.eval_test": "false",
    }
    words = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    repository = new_repository(tmp_path / "repository")
    key = {"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}

    def run(*arguments, code=None):
        if arguments[0] != "train":
            return skillgit(*arguments, cwd=repository, env=key)
        ended = attempt(*arguments, *(words if "-o" not in arguments else ()), cwd=repository, env=key)
        assert ended.code == code, ended
        return ended

    return run


def test_an_agent_that_never_loads_it_is_told_first_and_stops_the_run(train):
    ended = train("train", "demo", "--run", "x", code=ExitCode.NOT_LOADED)
    lines = ended.err.splitlines()
    [warning] = [index for index, line in enumerate(lines) if line.startswith(f"warning: {NEVER}")]
    [score] = [index for index, line in enumerate(lines) if " v0 " in line]
    assert warning < score
    assert f"skillgit: {NEVER} of the baseline, so no change to its text can be measured" in lines
    assert train("show", "x/v0").out.count(f"score   {NEVER} · hard") == 1
    shown = json.loads(train("show", "x/v0", "--json").out)
    assert shown["event"]["evaluation"]["loads"] == {"loaded": 0, "ignored": 3, "unknown": 0}
    assert not json.loads(train("cost", "x", "--json").out)["total"]["tokens_in"], "no optimizer was asked"
    assert train("train", "demo", "--run", "x", code=ExitCode.NOT_LOADED).err.splitlines()[-2] == lines[-2]
    hint = next(line for line in lines if line.startswith("hint: "))
    command = shlex.split(hint[hint.index("skillgit train") :].removesuffix(" goes on"))
    document = json.loads(train(*command[1:], "--json", code=ExitCode.OK).out)
    assert document["sentence"].startswith(f"v0: {NEVER}, so the score says little about its text. ")
    assert document["report"][0]["loads"] == {"loaded": 0, "ignored": 3, "unknown": 0}
    rule = next(line for line in train("show", "x/r1").out.splitlines() if line.startswith("+- "))
    story = train("why", rule.removeprefix("+- "), "--rev", "x/r1").out
    assert f"loading  {NEVER}, so the score says little about its text" in story
    assert not json.loads(train("fsck", "--json").out)["problems"]


def test_an_agent_that_loads_it_is_trained(train, tmp_path):
    (tmp_path / "loads").touch()
    ended = train("train", "demo", "--run", "x", code=ExitCode.OK)
    assert ended.err.index(ALWAYS) < ended.err.index(" v0 ")
    assert f"v0: {ALWAYS}. " in ended.out
    assert "warning: skill loaded" not in ended.err
    measured = train("eval", "x/v0", "--split", "selection")
    assert f"v0: {ALWAYS}\n" in measured.out
    assert f"v0  selection  {ALWAYS} · hard" in measured.err
    document = json.loads(train("eval", "x/v0", "--split", "selection", "--json").out)
    assert document["arms"][0]["splits"][0]["overall"]["loads"] == {"loaded": 3, "ignored": 0, "unknown": 0}
    (tmp_path / "repository" / ".git" / "skillgit" / "index.db").unlink()
    assert ALWAYS in train("show", "x/v0").out
