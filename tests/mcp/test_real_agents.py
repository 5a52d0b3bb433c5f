"""The real Claude Code and Codex with a built plug-in, asking a model on the loopback; no network and no account."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from loopback_model import LoopbackModel, call, loopback, response, said, tool_use, words
from once import copy_folder
from program import SKILLGIT, skillgit, surroundings

if TYPE_CHECKING:
    from pathlib import Path

CLAUDE = os.environ.get("SKILLGIT_CLAUDE") or shutil.which("claude") or ""
CODEX = os.environ.get("SKILLGIT_CODEX") or shutil.which("codex") or ""
needs_claude = pytest.mark.skipif(not CLAUDE, reason="claude is not installed (or named by SKILLGIT_CLAUDE)")
needs_codex = pytest.mark.skipif(not CODEX, reason="codex is not installed (or named by SKILLGIT_CODEX)")
pytestmark = [pytest.mark.slow, pytest.mark.soak]
DEADLINE_S = 120
RULE = "four digits"
TASKS = [
    {
        "id": "year",
        "prompt": "When was it built?",
        "check": {"type": "regex", "pattern": r"18\d\d"},
        "extract": "whole",
    },
    {"id": "tone", "prompt": "Say hello.", "criteria": ["It is polite.", "It is short: one line."]},
]
TRIGGERS = [
    {"id": "asks", "prompt": "Answer from these search results.", "skill": "searchqa"},
    {"id": "near", "prompt": "What is 2+2?", "skill": ""},
]


@pytest.fixture(scope="module")
def project(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a trained skill and its plug-in, eval cases included."""
    project = copy_folder(trained, tmp_path_factory.mktemp("project") / "repository")
    for name, rows in (("tasks", TASKS), ("tasks-triggers", TRIGGERS)):
        (project / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    skillgit("export", "best", "plugin", "--as", "plugin", "--evals", "tasks.jsonl", cwd=project)
    return project


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A user's variables; ``skillgit`` on the path writes down what it answered, in ``answered``."""
    program = tmp_path / "bin" / "skillgit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{" ".join(SKILLGIT)} "$@" | tee -a {tmp_path}/answered\n')
    program.chmod(0o755)
    for name in ("home", "claude", "codex"):
        (tmp_path / name).mkdir()
    return surroundings(
        PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        HOME=str(tmp_path / "home"),
        CLAUDE_CONFIG_DIR=str(tmp_path / "claude"),
        CODEX_HOME=str(tmp_path / "codex"),
        ANTHROPIC_API_KEY="sk-ant-0123456789abcdef",
        LOCAL_KEY="sk-0123456789abcdef",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        IS_SANDBOX="1",
    )


def run(command: list[str], project: Path, machine: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=project, env=machine, capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def answered(
    script: list[Any], command: list[str], project: Path, machine: dict[str, str], *, until: Any = None
) -> Any:
    """Run an agent whose model says what ``script`` says; it says nothing before ``until`` holds."""

    class Waiting(LoopbackModel):
        def answer(self, headers: Any, body: Any) -> bytes:
            deadline = time.monotonic() + DEADLINE_S
            while until is not None and not until() and time.monotonic() < deadline:
                time.sleep(0.05)
            return super().answer(headers, body)

    async def whole() -> Any:
        async with loopback(*script) as model:
            model.__class__ = Waiting
            spelled = [word.replace("{url}", model.url) for word in command]
            done = await asyncio.to_thread(run, spelled, project, {**machine, "ANTHROPIC_BASE_URL": model.url})
            return done, model

    return asyncio.run(whole())


def holds_the_story(text: str) -> bool:
    return all(part in text for part in ("years as four digits", "failures", "verdict", "current"))


@needs_claude
def test_claude_code_gets_the_reason_of_a_rule_with_one_call(project, machine):
    tool = "mcp__plugin_searchqa_skillgit__why"
    command = [CLAUDE, "-p", "Why?", "--plugin-dir", str(project / "plugin/searchqa"), "--allowedTools", tool]
    done, model = answered(
        [tool_use(tool, rule=RULE), words("v1")], [*command, "--no-session-persistence"], project, machine
    )
    assert done.stdout.strip() == "v1", done
    assert len(model.requests) == 2
    assert holds_the_story(model.bodies[-1])


@needs_claude
def test_claude_code_takes_the_server_without_the_plugin_too(project, machine, tmp_path):
    config = tmp_path / "servers.json"
    config.write_text((project / "plugin/searchqa/.mcp.json").read_text())
    command = [
        CLAUDE,
        "-p",
        "Why?",
        "--mcp-config",
        str(config),
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__skillgit__why",
    ]
    script = [tool_use("mcp__skillgit__why", rule=RULE), words("v1")]
    done, model = answered(script, [*command, "--no-session-persistence"], project, machine)
    assert done.stdout.strip() == "v1", done
    assert holds_the_story(model.bodies[-1])


@needs_claude
@pytest.mark.parametrize("place", ["plugin", "plugin/searchqa"])
def test_claude_code_finds_nothing_to_complain_about(place, project, machine):
    done = run([CLAUDE, "plugin", "validate", place, "--strict"], project, machine)
    assert done.returncode == 0, done


@needs_codex
def test_codex_gets_the_reason_of_a_rule_with_two_calls_at_most(project, machine, tmp_path):
    for command in (["marketplace", "add", "./plugin"], ["add", "searchqa@searchqa-skills"]):
        assert run([CODEX, "plugin", *command], project, machine).returncode == 0
    listing = run([CODEX, "debug", "prompt-input", "why?"], project, machine).stdout
    assert "searchqa:searchqa: Answers a question from search results" in listing
    provider = 'model_providers.loop={name="loop",base_url="{url}/v1",wire_api="responses",env_key="LOCAL_KEY"}'
    command = [CODEX, "exec", "--json", "-c", 'model_provider="loop"', "-c", provider, "-c", 'model="m"']
    script = [
        response({**call("list_mcp_resource_templates"), "call_id": "first"}, 10, 1),
        response({**call("why", rule=RULE), "namespace": "mcp__skillgit", "call_id": "second"}, 10, 1),
        response(said("v1"), 10, 1),
    ]
    file = tmp_path / "answered"
    # it begins a turn before its servers have begun
    done, model = answered(
        script,
        [*command, "Why?"],
        project,
        machine,
        until=lambda: file.exists() and '"inputSchema"' in file.read_text(),
    )
    assert '"text":"v1"' in done.stdout, done
    assert holds_the_story(model.bodies[-1])


@needs_claude
def test_claude_code_runs_the_cases_that_were_written(project, machine, tmp_path):
    help_text = run([CLAUDE, "plugin", "--help"], project, machine).stdout
    if "eval" not in help_text:
        pytest.skip("this claude has no plugin eval")
    report = tmp_path / "report.json"
    command = [CLAUDE, "plugin", "eval", "plugin/searchqa", "--trust-plugin", "--no-publish", "--ablation", "none"]
    command += ["--runs", "1", "--threshold", "0", "--json", str(report), "--output-dir", str(tmp_path / "out")]
    script = [tool_use("Skill", skill="searchqa:searchqa"), words("Built in 1871.")]
    answered(script, [*command, "--case", "asks"], project, machine)
    (case,) = json.loads(report.read_text())["cases"]
    assert case["aggregates"]["score"] == 1
    answered([words("Built in 1871.")], command, project, machine)
    cases = {case["name"]: case for case in json.loads(report.read_text())["cases"]}
    assert set(cases) == {"year", "tone", "asks", "near"}
    assert [cases[name]["aggregates"]["score"] for name in ("year", "near", "asks")] == [1, 1, 0]
    assert [grader["config"]["criteria"] for grader in cases["tone"]["graders"]] == TASKS[1]["criteria"]
