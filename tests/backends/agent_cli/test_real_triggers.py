"""The real Claude Code and Codex with installed skills, against a model on the loopback that loads some of them."""

from __future__ import annotations

import asyncio
import os
import shutil

import pytest
from loopback_model import call, loopback, response, said, tool_use, words

from skillgit.domain.evaluation import Split
from skillgit.plugin.backend import Request
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend
from skillgit_backends.codex_exec import CodexExecBackend
from skillgit_envs.trigger import BODY, Trigger

CLAUDE = os.environ.get("SKILLGIT_CLAUDE") or shutil.which("claude") or ""
CODEX = os.environ.get("SKILLGIT_CODEX") or shutil.which("codex") or ""
pytestmark = pytest.mark.soak


class Installed:
    """An agent as the target of a rollout."""

    def __init__(self, backend):
        self.backend = backend

    async def chat(self, messages, tools=(), form=None):
        assert (tools, form) == ((), None)
        return await self.backend.complete(Request(model="a-model", messages=tuple(messages)))


def rolled_out(make, *script):
    async def asked():
        async with loopback(*script) as model:
            trigger = Trigger({"client": "agent"}, None)
            item = next(item for item in trigger.items(Split.TRAIN) if item.content["skill"] == "@")
            target = Installed(make(model.url))
            trajectory = await trigger.rollout(item, trigger.seed_skill(), target)
            return (await trigger.score(item, trajectory, None))[0], trajectory, model.bodies

    return asyncio.run(asked())


def claude(url: str) -> ClaudeCodeExecBackend:
    settings = {"path": CLAUDE, "base_url": url, "request_retries": 0, "allow_root": True, "model_backend": ""}
    return ClaudeCodeExecBackend(settings)


def codex(url: str) -> CodexExecBackend:
    return CodexExecBackend({"path": CODEX, "base_url": f"{url}/v1", "request_retries": 0, "model_backend": ""})


@pytest.fixture(autouse=True)
def _a_key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")


@pytest.mark.skipif(not CLAUDE, reason="claude is not installed (npm install -g @anthropic-ai/claude-code)")
@pytest.mark.parametrize(
    ("script", "answer", "hard"),
    [
        ((tool_use("Skill", skill="trigger"), words("It is loaded.")), "trigger", 1.0),
        ((tool_use("Skill", skill="table-extractor"), words("It is loaded.")), "table-extractor", 0.0),
        ((words("No skill."),), "none", 0.0),
    ],
)
def test_claude_code_loads_what_its_model_asks_for(script, answer, hard):
    score, trajectory, bodies = rolled_out(claude, *script)
    assert (trajectory.answer, score.hard) == (answer, hard)
    assert "- table-extractor: Takes tables out of PDF files" in bodies[0]
    assert "Before you begin, load the skill" not in bodies[0]
    assert (BODY in bodies[-1]) == (answer != "none")


@pytest.mark.skipif(not CODEX, reason="codex is not installed (npm install -g @openai/codex)")
@pytest.mark.parametrize("name", ["trigger", "csv-cleaner", ""])
def test_codex_loads_what_its_model_reads(name):
    reading = response(call("exec_command", cmd=f"cat .agents/skills/{name}/SKILL.md"), 1000, 10)
    end = response(said("Done."), 1100, 5)
    score, trajectory, bodies = rolled_out(codex, *([reading, end] if name else [end]))
    assert (trajectory.answer, score.hard) == (name or "none", float(name == "trigger"))
    assert "- csv-cleaner: Cleans CSV" in bodies[0]
    assert (BODY in bodies[-1]) == bool(name)
