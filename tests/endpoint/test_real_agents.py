"""The agents' own programs, asking at the endpoint: each request of the model's server is on record, and paid once."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from loopback_model import call, loopback, response, said, tool_use, words
from scripted import PRICE, Naps, chance
from stand_ins import SKILL, trivia

from skillgit.app.sources.sessions.agents import SessionSearch, home_of
from skillgit.app.sources.sessions.session import SessionAgent
from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Loading
from skillgit.errors import BudgetError
from skillgit_backends.claude_chat import ClaudeChatBackend
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend
from skillgit_backends.codex_exec import CodexExecBackend
from skillgit_backends.copilot_exec import CopilotExecBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.opencode_exec import OpenCodeExecBackend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loopback_model import LoopbackModel

    from skillgit.plugin.backend import Backend, Reply

CLAUDE = os.environ.get("SKILLGIT_CLAUDE") or shutil.which("claude") or ""
CODEX = os.environ.get("SKILLGIT_CODEX") or shutil.which("codex") or ""
OPENCODE = os.environ.get("SKILLGIT_OPENCODE") or shutil.which("opencode") or ""
COPILOT = os.environ.get("SKILLGIT_COPILOT") or shutil.which("copilot") or ""
pytestmark = [pytest.mark.slow, pytest.mark.soak]


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")


def played(agent: Backend, model: Backend, caps: Caps | None = None) -> tuple[Calls, Reply | Exception]:
    behind = Route(backend=model, backend_name="model", model="m", price=PRICE)
    route = Route(backend=agent, backend_name="agent", model="m", inner=behind)
    calls = Calls(
        routes={"target": route},
        ledger=Ledger.in_memory(),
        caps=caps or Caps(),
        sleep=Naps(),
        random=chance(0),
    )
    calls.enter("run/1", calls.spent())

    async def whole() -> Reply | Exception:
        try:
            return await calls.call("target", "rollout", trivia().messages, draw=("item",))
        except Exception as error:  # noqa: BLE001 - what a test looks at
            return error
        finally:
            await calls.aclose()

    return calls, asyncio.run(whole())


def on_loopback(play: Any, *script: Any) -> tuple[LoopbackModel, Any]:
    """Run ``play`` with the address of a model in a thread of its own loop."""

    async def serve() -> tuple[LoopbackModel, Any]:
        async with loopback(*script) as model:
            return model, await asyncio.to_thread(play, model.url)

    return asyncio.run(serve())


def claude_code(cap: Caps | None) -> tuple[LoopbackModel, Any]:
    def play(url: str) -> Any:
        agent = ClaudeCodeExecBackend({"path": CLAUDE, "allow_root": True})
        return played(agent, ClaudeChatBackend({"base_url": url}), cap)

    return on_loopback(play, tool_use("Skill", skill="searchqa"), words("<answer>Seine</answer>"))


def _by_responses(agent: Backend, tool: Any, cap: Caps | None) -> tuple[LoopbackModel, Any]:
    def play(url: str) -> Any:
        return played(agent, OpenAIChatBackend({"base_url": f"{url}/v1", "api": "responses"}), cap)

    return on_loopback(play, response(tool, 100, 7), response(said("<answer>Seine</answer>"), 100, 7))


ANSWER = "<answer>Seine</answer>"
READS = {
    "codex": call("exec_command", cmd="cat .agents/skills/searchqa/SKILL.md"),
    "opencode": call("read", filePath=".opencode/skills/searchqa/SKILL.md"),
    "copilot": call("view", path=".github/skills/searchqa/SKILL.md"),
}
WRONG = {
    "codex": call("exec_command", cmd="cat .agents/skills/another/SKILL.md"),
    "opencode": call("read", filePath=".opencode/skills/another/SKILL.md"),
    "copilot": call("skill", skill="another"),
}


def codex(cap: Caps | None) -> tuple[LoopbackModel, Any]:
    skill = ".agents/skills/searchqa/SKILL.md"
    return _by_responses(CodexExecBackend({"path": CODEX}), call("exec_command", cmd=f"cat {skill}"), cap)


def opencode(cap: Caps | None) -> tuple[LoopbackModel, Any]:
    agent = OpenCodeExecBackend({"path": OPENCODE})
    return _by_responses(agent, call("read", filePath=".opencode/skills/searchqa/SKILL.md"), cap)


def copilot(cap: Caps | None) -> tuple[LoopbackModel, Any]:
    return _by_responses(CopilotExecBackend({"path": COPILOT}), call("skill", skill="searchqa"), cap)


EVERY: dict[str, Callable[[Caps | None], tuple[LoopbackModel, Any]]] = {
    "claude_code": claude_code,
    "codex": codex,
    "opencode": opencode,
    "copilot": copilot,
}
PROGRAMS = {"claude_code": CLAUDE, "codex": CODEX, "opencode": OPENCODE, "copilot": COPILOT}


@pytest.mark.parametrize("cap", [None, Caps(max_calls=1)], ids=["", "capped"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(not program, reason=f"the program of {name} is not installed"))
        for name, program in PROGRAMS.items()
    ],
)
def test_a_rollout_with_a_tool_is_metered_to_the_last_question(name: str, cap: Caps | None):
    model, (calls, reply) = EVERY[name](cap)
    cost = calls.spent()
    assert cost.calls == len(model.requests)
    assert cost.calls == calls.ledger.spent("run/1").calls
    assert not cost.unpriced
    if cap is None:
        assert reply.text == "<answer>Seine</answer>"
        assert cost.calls >= 2
        assert SKILL.splitlines()[-1] in model.bodies[-1], "it has read the skill"
    else:
        assert isinstance(reply, BudgetError)
        assert cost.calls == 1


@pytest.mark.parametrize("tool", ["skill", "read", "wrong", "none"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(not program, reason=f"the program of {name} is not installed"))
        for name, program in PROGRAMS.items()
    ],
)
def test_a_skill_counts_as_loaded_exactly_where_its_model_has_read_it(name: str, tool: str):
    if name == "claude_code":
        name_of = {"skill": "searchqa", "wrong": "another"}
        first = tool_use("Read", file_path=".claude/skills/searchqa/SKILL.md")
        first = tool_use("Skill", skill=name_of[tool]) if tool in name_of else first
        script = (words(ANSWER),) if tool == "none" else (first, words(ANSWER))
        agent = ClaudeCodeExecBackend({"path": CLAUDE, "allow_root": True})
        model, (_, reply) = on_loopback(lambda url: played(agent, ClaudeChatBackend({"base_url": url})), *script)
    else:
        makes = {"codex": CodexExecBackend, "opencode": OpenCodeExecBackend, "copilot": CopilotExecBackend}
        first = {"wrong": WRONG, "read": READS}.get(tool, READS)[name]
        first = call("skill", skill="searchqa") if (name, tool) == ("copilot", "skill") else first
        script = (said(ANSWER),) if tool == "none" else (first, said(ANSWER))

        def play(url: str) -> Any:
            return played(
                makes[name]({"path": PROGRAMS[name]}), OpenAIChatBackend({"base_url": f"{url}/v1", "api": "responses"})
            )

        model, (_, reply) = on_loopback(play, *(response(step, 100, 7) for step in script))
    has_read = SKILL.splitlines()[-1] in model.bodies[-1]
    assert reply.loading is (Loading.LOADED if has_read else Loading.NOT_LOADED)
    assert has_read == (name == "codex" or tool in ("skill", "read"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(not program, reason=f"the program of {name} is not installed"))
        for name, program in PROGRAMS.items()
    ],
)
def test_a_rollout_leaves_no_session_that_a_harvest_would_read(name: str, tmp_path: Path, monkeypatch):
    for variable in ("CODEX_HOME", "COPILOT_HOME", "OPENCODE_DB", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    EVERY[name](None)
    search = SessionSearch(projects=(), since=0, original=lambda *_: None, snapshot=lambda *_: None)
    environ = {"HOME": str(tmp_path)}
    assert [session for agent in SessionAgent for session in search.sessions(agent, home_of(agent, environ))] == []
