"""The real Codex against a model on the loopback; it needs no network and no account."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from loopback_model import call, loopback, response, said
from stand_ins import SKILL, trivia

from skillgit.domain.evaluation import Loading
from skillgit.errors import BackendError, FatalBackendError, PromptTooLongError, RetryableBackendError
from skillgit.plugin.backend import Image, Message, Reply, Request, Text, Tool, Usage
from skillgit_backends.codex_exec import CodexExecBackend

if TYPE_CHECKING:
    from loopback_model import Event

CODEX = os.environ.get("SKILLGIT_CODEX") or shutil.which("codex") or ""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CODEX, reason="codex is not installed (npm install -g @openai/codex, or SKILLGIT_CODEX)"),
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def settings(url: str, **more: Any) -> dict[str, object]:
    return {"path": CODEX, "base_url": f"{url}/v1", "request_retries": 0, "timeout_s": 60, **more}


def ask(request: Request, *script: list[Event] | tuple[int, Event], **more: Any) -> tuple[Reply, list[str]]:
    async def asked() -> tuple[Reply, list[str]]:
        async with loopback(*script) as model:
            backend = CodexExecBackend(settings(model.url, **more))
            return await backend.complete(request), model.bodies

    return asyncio.run(asked())


def test_it_reads_the_skill_and_answers():
    reply, bodies = ask(trivia(reasoning_effort="low"), response(said("<answer>Seine</answer>"), 1200, 30))
    assert reply == Reply(
        text="<answer>Seine</answer>", usage=Usage(tokens_in=1200, tokens_out=30), loading=Loading.LOADED
    )
    (body,) = bodies
    assert SKILL.splitlines()[-1] in body
    assert "Which river runs through Paris?" in body
    assert '"effort": "low"' in body


def test_commands_run_in_the_sandbox_and_do_not_see_the_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOCAL_KEY", "local-secret-0123456789")
    monkeypatch.setenv("PLANTED_SECRET", "planted-secret")
    command = "env; touch inside ../home/outside /tmp/outside; echo; ls"
    script = (response(call("exec_command", cmd=command), 1000, 10), response(said("done"), 1100, 5))
    reply, bodies = ask(trivia(), *script, api_key_env="LOCAL_KEY")
    assert reply == Reply(text="done", usage=Usage(tokens_in=2100, tokens_out=15), loading=Loading.LOADED)
    output = bodies[1]
    assert "HOME=" in output
    assert "inside" in output
    assert output.count("Read-only file system") == 2
    assert "local-secret" not in output
    assert "planted-secret" not in output


@pytest.mark.parametrize(
    ("status", "told", "kind", "part"),
    [
        (500, {}, RetryableBackendError, ""),
        (429, {"message": "slow down", "code": "rate_limit_exceeded"}, RetryableBackendError, "429"),
        (401, {"message": "no"}, FatalBackendError, "not logged in"),
        (400, {"message": "too long", "code": "context_length_exceeded"}, PromptTooLongError, "context"),
        (404, {"message": "The model a-model does not exist", "code": "model_not_found"}, FatalBackendError, "model"),
    ],
)
def test_failures_are_told_apart(status: int, told: Event, kind: type[BackendError], part: str):
    with pytest.raises(BackendError) as caught:
        ask(trivia(), (status, {"error": told}))
    assert type(caught.value) is kind
    assert part in caught.value.message


def test_pictures_and_tools_reach_the_model():
    answer = '{"content": "", "tool_calls": [{"name": "look", "arguments": "{}"}]}'
    parts = (Text(text="What is this?"), Image(media_type="image/png", data=PIXEL))
    look = Tool(name="look", description="Looks.", parameters={"type": "object"})
    request = Request(model="m", messages=(Message(role="user", parts=parts),), tools=(look,))
    reply, (body,) = ask(request, response(said(answer), 10, 1))
    assert [made.name for made in reply.tool_calls] == ["look"]
    assert "input_image" in body
    assert '"json_schema"' in body


def test_calls_at_once():
    async def all_at_once() -> list[Reply]:
        async with loopback(response(said("yes"), 10, 1)) as model:
            backend = CodexExecBackend(settings(model.url))
            return await asyncio.gather(*(backend.complete(trivia()) for _ in range(4)))

    assert [reply.text for reply in asyncio.run(all_at_once())] == ["yes"] * 4


def test_a_probe_sees_the_version_and_no_login(monkeypatch: pytest.MonkeyPatch):
    for name in ("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = asyncio.run(CodexExecBackend({"path": CODEX}).probe())
    assert found.version
    assert not found.ready
