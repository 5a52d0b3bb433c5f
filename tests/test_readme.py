"""The commands of the README and the code of the plug-in guide do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import DOCS, ROOT, blocks, code
from program import git, skillgit, surroundings

EXECUTED = blocks("README.md", "sh", mark="executed")


def bash(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        env=surroundings(PATH=programs),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_block_of_commands_is_executed_here_or_says_make_or_pip():
    others = [block.strip() for block in blocks("README.md", "sh") if block not in EXECUTED]
    assert len(EXECUTED) == 3
    assert others == ["make demo"]


@pytest.mark.slow
def test_the_demo_can_be_made_and_looked_at(tmp_path):
    stamp = ROOT / ".venv/.installed"
    if not stamp.exists() or stamp.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        pytest.skip("the virtual environment of the Makefile is missing or older than pyproject.toml")
    demo = tmp_path / "demo"
    made = bash(f"make demo DEMO={demo}", ROOT)
    assert made.returncode == 0, made
    assert (demo / ".git").is_dir()
    suggested = re.findall(r"^\s+(?:next\s+)?(skillgit .*|git .*)$", made.stdout, flags=re.MULTILINE)
    assert len(suggested) >= 5
    for command in suggested:
        if command not in EXECUTED[0].splitlines():
            found = bash(command, demo)
            assert found.returncode == 0, found
    looked = bash(EXECUTED[0].replace("cd build/demo", f"cd {demo}"), ROOT)
    assert looked.returncode == 0, looked


@pytest.mark.slow
@pytest.mark.parametrize("trunk", ["", "master"], ids=["a new folder", "a repository on master"])
def test_training_on_tasks_of_ones_own(tmp_path, trunk):
    preparation, training = blocks("tasks.md", "sh", mark="executed")
    sessions = "\n".join(EXECUTED[2].splitlines()[-2:]) + "\n"
    begin = (
        'git init -q -b master . && git -c user.name=n -c user.email=n@localhost commit -q --allow-empty -m "mine"\n'
        if trunk
        else ""
    )
    promotion = "skillgit promote v1\ngit branch --format='%(refname:short)'\n"
    done = bash(preparation + begin + training + sessions + promotion, tmp_path)
    assert done.returncode == 0, done
    assert "0 drafts from 0 requests" in done.stdout
    branches = [line for line in done.stdout.splitlines() if line in {"main", "master"}]
    assert branches == [trunk or "main"]
    assert "10 train, 5 selection, 5 test" in done.stdout
    assert "+++ b/.claude/skills/town/SKILL.md" in done.stdout
    assert re.search(r"^\+- .*year", done.stdout, flags=re.MULTILINE), (
        "the best version has learned what the answers want"
    )


@pytest.mark.slow
def test_the_readme_is_true_in_the_order_in_which_it_is_read(tmp_path):
    """Each block is typed where the one before ended; the first is in a repository that another program made."""
    git("init", "-q", cwd=tmp_path)
    done = bash("".join(EXECUTED[1:]), tmp_path)
    assert done.returncode == 0, done
    assert "10 train, 5 selection, 5 test" in done.stdout
    assert "+++ b/.claude/skills/town/SKILL.md" in done.stdout
    assert re.search(r"^\+- .*year", done.stdout, flags=re.MULTILINE)


def test_the_configuration_of_an_agent_is_resolved_and_planned(tmp_path):
    (example,) = blocks("configuration.md", "yaml", mark="resolved")
    skillgit("init", "skills", "--env", "searchqa", cwd=tmp_path)
    repository = tmp_path / "skills"
    (repository / "agent.yaml").write_text(example, encoding="utf-8")
    settings = skillgit("config", "agent.yaml", cwd=repository).out.splitlines()
    assert {"model.target_backend=claude_code_exec", "model.claude_code_exec_model_backend=openai_chat"} <= {*settings}
    plan = skillgit("train", "agent.yaml", "--dry-run", cwd=repository)
    assert "claude_code_exec asks its model several times a call" in plan.out + plan.err


def test_every_configuration_that_a_page_marks_so_is_resolved(tmp_path):
    skillgit("init", "skills", "--env", "searchqa", cwd=tmp_path)
    examples = [
        (name, block)
        for name in ["README.md", *(page.name for page in DOCS.glob("*.md"))]
        for block in blocks(name, "yaml", mark="resolved")
    ]
    assert {name for name, _ in examples} == {"README.md", "configuration.md", "benchmarks.md"}
    for name, block in examples:
        (tmp_path / "skills" / f"{name}.yaml").write_text(block, encoding="utf-8")
        settings = skillgit("config", f"{name}.yaml", cwd=tmp_path / "skills").out
        assert re.search(r"^model.optimizer_backend=(openai|claude)_chat$", settings, flags=re.MULTILINE)


def test_the_environment_and_the_backend_of_the_guide_work(tmp_path):
    for name, words in (("sums", "class Sums:"), ("echo", "class Echo:"), ("policy", "(Policy):")):
        (tmp_path / f"{name}.py").write_text(code("extending.md", words))
    (tmp_path / "sums.yaml").write_text(
        "env: {name: 'sums.py:Sums'}\ntrain: {num_epochs: 1}\n"
        "gate: {policy: 'policy.py:NothingBroken'}\nmodel: {target_backend: 'echo.py:Echo', target: echo}\n"
    )
    skillgit("init", "repository", cwd=tmp_path)
    trained = skillgit("-C", "repository", "train", "../sums.yaml", "--run", "sums", cwd=tmp_path)
    assert "sums" in trained.out
    assert git("log", "-1", "--format=%s", "run/sums", cwd=tmp_path / "repository").out.startswith("run: ")
