"""What docs/ci.md offers is run: its commands, and the workflow for a schedule, step by step."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from documents import DOCS, blocks
from once import copy_folder
from program import git, refs, surroundings
from town_host import make_host

import skillgit as package

WORKFLOW = DOCS / "examples" / "skillgit-propose.yml"
GATE = WORKFLOW.with_name("skillgit-gate.yml")
USES = re.compile(r"uses: (\S+@\S+ # \S+)$", re.MULTILINE)


def program(path: Path, words: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    path.chmod(0o755)


@pytest.mark.soak
def test_the_commands_of_the_page_work(tmp_path):
    scripts = [blocks(name, "sh", mark="executed")[0] for name in ("tasks.md", "ci.md")]
    program(tmp_path / "skillgit", f'"{sys.executable}" -m skillgit')
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(scripts)],
        cwd=tmp_path,
        env=surroundings(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert ".claude/skills/town  proposed" in done.stdout
    assert "the year alone, in four digits" in (tmp_path / "town/.claude/skills/town/SKILL.md").read_text()


def test_the_workflow_gives_nobody_more_than_it_needs():
    text = WORKFLOW.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    (job,) = workflow["jobs"].values()
    pins = USES.findall(text)
    assert set(pins) <= set(USES.findall(GATE.read_text(encoding="utf-8")))
    assert len(pins) == sum("uses" in step for step in job["steps"])
    assert set(workflow[True]) == {"schedule", "workflow_dispatch"}, "what others push starts nothing"
    assert (workflow["permissions"], job["permissions"]) == ({}, {"contents": "write", "pull-requests": "write"})
    assert not any("${{" in str(step.get("run", "")) for step in job["steps"]), "words of others would become a script"
    assert text.count("secrets.") == 1
    assert workflow["env"]["SKILLGIT_VERSION"] == package.__version__


@pytest.fixture
def runner(repository, tmp_path):
    """Return what runs the job on a fresh clone with what the cache kept, and its exit code, summary and calls."""
    host = make_host(repository, tmp_path)
    program(host / "bin" / "skillgit", f'"{sys.executable}" -m skillgit')
    cache = tmp_path / "cache"

    def run(number: int) -> tuple[int, str]:
        workspace, home = tmp_path / f"workspace-{number}", tmp_path / f"home-{number}"
        git("clone", "-q", host / "origin.git", workspace, cwd=tmp_path)
        home.mkdir()
        workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
        code = 0
        for step in workflow["jobs"]["propose"]["steps"]:
            action = str(step.get("uses", "")).partition("@")[0]
            kept = step.get("with", {}).get("path", "").split()
            if action == "actions/cache/restore" and cache.is_dir():
                shutil.copytree(cache, workspace, dirs_exist_ok=True)
            elif action == "actions/cache/save":
                shutil.rmtree(cache, ignore_errors=True)
                for name in kept:
                    copy_folder(workspace / name, cache / name)
            elif step["name"] == "Propose what is better":
                environment = workflow["env"] | {
                    "PATH": f"{host / 'bin'}{os.pathsep}{os.environ['PATH']}",
                    "HOME": str(home),
                    "XDG_STATE_HOME": str(workspace / ".git/state"),
                    "GITHUB_STEP_SUMMARY": str(workspace / "summary.md"),
                }
                command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
                done = subprocess.run(
                    command, cwd=workspace, env=surroundings(**environment), capture_output=True, check=False
                )
                code = done.returncode
        return code, (workspace / "summary.md").read_text()

    return run, host


@pytest.mark.soak
def test_the_workflow_proposes_once_and_remembers_that_on_a_new_runner(runner):
    run, host = runner
    code, summary = run(1)
    assert (code, summary.count("  proposed\n")) == (0, 2), summary
    before = refs(host / "origin.git")
    code, summary = run(2)
    assert (code, summary.count("  stands\n")) == (0, 2), summary
    git("update-ref", "-d", "refs/heads/propose/town", cwd=host / "origin.git")
    code, summary = run(3)
    assert (code, summary.count("  stands\n"), summary.count("  nothing new\n")) == (0, 1, 1), summary
    assert "cost" not in summary
    assert refs(host / "origin.git").items() < before.items()
    assert (host / "log").read_text().count("created") == 2
