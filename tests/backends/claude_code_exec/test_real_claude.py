"""The real Claude Code against a model on the loopback; it needs no network and no account."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from loopback_model import loopback, tool_use, words
from stand_ins import SKILL, trivia

from skillgit.domain.evaluation import Loading
from skillgit.errors import BackendError, FatalBackendError, PromptTooLongError, RetryableBackendError
from skillgit.plugin.backend import Reply, Request, Tool, ToolCall, Usage
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend

if TYPE_CHECKING:
    from pathlib import Path

    from loopback_model import Event

CLAUDE = os.environ.get("SKILLGIT_CLAUDE") or shutil.which("claude") or ""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CLAUDE, reason="claude is not installed (npm install -g @anthropic-ai/claude-code, or SKILLGIT_CLAUDE)"
    ),
]


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")


def ask(request: Request, *script: list[Event] | tuple[int, Event], **more: Any) -> tuple[Reply, list[str]]:
    async def asked() -> tuple[Reply, list[str]]:
        async with loopback(*script) as model:
            settings = {"path": CLAUDE, "base_url": model.url, "request_retries": 0, "allow_root": True, **more}
            return await ClaudeCodeExecBackend(settings).complete(request), model.bodies

    return asyncio.run(asked())


def test_it_loads_the_skill_and_answers():
    script = (tool_use("Skill", skill="searchqa"), words("<answer>Seine</answer>"))
    reply, bodies = ask(trivia(reasoning_effort="low", max_output_tokens=1234), *script)
    usage = Usage(tokens_in=340, tokens_out=14, cached=40, cache_written=100)
    assert reply == Reply(text="<answer>Seine</answer>", usage=usage, loading=Loading.LOADED)
    assert len(bodies) == 2
    assert "Which river runs through Paris?" in bodies[0]
    assert "You answer trivia." in bodies[0]
    assert '"max_tokens": 1234' in bodies[0]
    assert '"effort": "low"' in bodies[0]
    assert SKILL.splitlines()[-1] not in bodies[0]
    assert SKILL.splitlines()[-1] in bodies[1]


def test_it_reads_its_workspace_and_nothing_else(tmp_path: Path):
    secret = tmp_path / "gold.txt"
    secret.write_text("the expected answer")
    _, bodies = ask(trivia(), tool_use("Read", file_path=str(secret)), words("done"))
    assert "the expected answer" not in bodies[1]
    assert "denied" in bodies[1]


def test_it_runs_no_commands_by_default():
    _, bodies = ask(trivia(), tool_use("Bash", command="echo out-of-$((40 + 2))"), words("done"))
    assert "out-of-42" not in bodies[1]


@pytest.mark.parametrize(
    ("status", "told", "kind", "part"),
    [
        (500, {}, RetryableBackendError, ""),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, RetryableBackendError, "529"),
        (429, {"type": "rate_limit_error", "message": "slow down"}, RetryableBackendError, "429"),
        (401, {"type": "authentication_error", "message": "no"}, FatalBackendError, "not logged in"),
        (
            400,
            {"type": "invalid_request_error", "message": "prompt is too long: 300000 tokens > 200000 maximum"},
            PromptTooLongError,
            "context",
        ),
        (404, {"type": "not_found_error", "message": "model: a-model"}, FatalBackendError, "model"),
    ],
)
def test_failures_are_told_apart(status: int, told: Event, kind: type[BackendError], part: str):
    with pytest.raises(BackendError) as caught:
        ask(trivia(), (status, {"type": "error", "error": told}))
    assert type(caught.value) is kind
    assert part in caught.value.message


def test_not_logged_in_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    settings = {"path": CLAUDE, "request_retries": 0, "allow_root": True}
    with pytest.raises(FatalBackendError, match="not logged in"):
        asyncio.run(ClaudeCodeExecBackend(settings).complete(trivia()))


def test_tools_are_called_through_the_schema():
    calls = [{"name": "look", "arguments": "{}"}]
    look = Tool(name="look", description="Looks.", parameters={"type": "object"})
    script = (tool_use("StructuredOutput", content="so", tool_calls=calls), words("done"))
    reply, _ = ask(trivia(tools=(look,)), *script)
    assert (reply.text, reply.tool_calls) == ("so", (ToolCall(id="call_1", name="look", arguments="{}"),))


def test_a_probe_sees_the_version_and_no_login(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    found = asyncio.run(ClaudeCodeExecBackend({"path": CLAUDE}).probe())
    assert found.version
    assert not found.ready
