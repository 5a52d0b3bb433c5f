"""``eval`` with ``trigger/default``: a file of requests of one's own, in a repository of several skills."""

from __future__ import annotations

import json

import pytest
from program import git

from skillgit.cli import main

SKILL = "---\nname: {name}\ndescription: {name} of what a user brings.\n---\n\nDo it.\n"


@pytest.fixture
def evaluated(tmp_path, monkeypatch, capsys):
    """What ``eval HEAD`` says of so many requests for the skill ``totals`` and so many near misses."""
    for name in ("totals", "town"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(SKILL.format(name=name))
    git("init", "-q", "-b", "main", cwd=tmp_path)
    for key, value in (("user.name", "P"), ("user.email", "p@example.org")):
        git("config", key, value, cwd=tmp_path)
    git("add", "-A", cwd=tmp_path)
    git("commit", "-qm", "skills", cwd=tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(own: int, near: int, *arguments: str) -> tuple[int, str, str]:
        rows = [{"request": f"request {number}", "should_trigger": number < own} for number in range(own + near)]
        (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)))
        options = ("-o", "env.data_path=requests.jsonl", "-o", "env.library=skills", *arguments)
        code = main.run(["eval", "HEAD", "--config", "trigger/default", "--json", *options])
        return code, *capsys.readouterr()

    return run


TOTALS = ("-o", "env.skill_init=skills/totals")


def test_eval_of_all_splits_measures_every_request(evaluated):
    code, out, errors = evaluated(14, 10, "--split", "all", *TOTALS)
    assert code == 0, errors
    (arm,) = json.loads(out)["arms"]
    assert [(share["name"], share["n"]) for share in arm["shares"][:2]] == [("recall", 14), ("false positives", 10)]
    assert all(
        {kind["task_type"] for kind in split["types"]} == {"should load", "near miss"} for split in arm["splits"]
    )
    assert [split["overall"]["n"] for split in arm["splits"]] == [6, 12, 6]


@pytest.mark.parametrize(("own", "near"), [(4, 4), (5, 4), (7, 11)])
def test_four_requests_of_each_kind_are_in_every_split(evaluated, own, near):
    code, out, errors = evaluated(own, near, "--dry-run", "--split", "all", *TOTALS)
    assert code == 0, errors
    shares = json.loads(out)["facts"]
    for split in ("train", "selection", "test"):
        assert "recall of 0" not in shares[f"{split} shares"]
        assert "positives of 0" not in shares[f"{split} shares"]


def test_eval_does_not_ask_for_what_the_gate_pins(evaluated):
    assert evaluated(12, 0, "--dry-run", *TOTALS)[0] == 0


def test_the_hint_for_one_of_several_skills_is_an_option_that_eval_knows(evaluated):
    code, _, errors = evaluated(6, 6, "--dry-run")
    assert code != 0
    assert "has 2 skills: totals, town" in errors
    assert evaluated(6, 6, "--dry-run", "--skill", "town")[0] == 0
    assert evaluated(6, 6, "--dry-run", "-o", "env.skill_init=skills/town/SKILL.md")[0] == 0


def test_an_agent_as_client_wants_an_agent_as_target(evaluated):
    code, _, errors = evaluated(6, 6, "-o", "env.client=agent", *TOTALS)
    assert code == 2
    assert "trigger wants an agent that loads skills as target, and offline is none" in errors
    agent = ("-o", "model.target_backend=claude_code_exec", "-o", "model.target=a-model")
    code, _, errors = evaluated(6, 6, "--dry-run", "-o", "env.client=agent", *agent, *TOTALS)
    assert "wants an agent" not in errors
