"""The agents' own programs in a seal: they read, write and run in their folder, and ask by the doorway alone."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from loopback_model import call, loopback, response, said, tool_use, words
from scripted import PRICE, Naps, chance

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.plugin.backend import ReplyForm, user
from skillgit.plugin.work_folder import FolderChanges, WorkFolder
from skillgit_backends.agent_cli.seal import seal_problem
from skillgit_backends.claude_chat import ClaudeChatBackend
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend
from skillgit_backends.codex_exec import CodexExecBackend
from skillgit_backends.copilot_exec import CopilotExecBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.opencode_exec import OpenCodeExecBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopback_model import LoopbackModel

    from skillgit.plugin.backend import Backend

PROGRAMS = {
    name: os.environ.get(f"SKILLGIT_{name.upper()}") or shutil.which(name) or ""
    for name in ("claude", "codex", "opencode", "copilot")
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.usefixtures("seal"),
]
GIVEN = WorkFolder(files={"skill/SKILL.md": b"# Trivia\n\nAnswer.\n", "TASK.md": b"Improve it.\n"}, part="skill")
COMMAND = "mkdir -p skill/scripts && echo 'print(1)' > skill/scripts/x.py && echo '- Briefly.' >> skill/SKILL.md"


@pytest.fixture(scope="module")
def seal() -> None:
    if problem := seal_problem():
        pytest.skip(f"no seal here: {problem}")


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")


def claude(model: str) -> tuple[Backend, Backend]:
    agent = ClaudeCodeExecBackend({"path": PROGRAMS["claude"], "allow_root": True})
    return agent, ClaudeChatBackend({"base_url": model})


def by_responses(agent: Backend) -> Callable[[str], tuple[Backend, Backend]]:
    return lambda model: (agent, OpenAIChatBackend({"base_url": f"{model}/v1", "api": "responses"}))


def script(tool: Any) -> list[Any]:
    return [response(tool, 100, 7), response(said("Done."), 100, 7)]


EVERY: dict[str, tuple[Callable[[str], tuple[Backend, Backend]], list[Any]]] = {
    "claude": (claude, [tool_use("Bash", command=COMMAND, description="x"), words("Done.")]),
    "codex": (by_responses(CodexExecBackend({"path": PROGRAMS["codex"]})), script(call("exec_command", cmd=COMMAND))),
    "opencode": (
        by_responses(OpenCodeExecBackend({"path": PROGRAMS["opencode"]})),
        script(call("bash", command=COMMAND, description="x")),
    ),
    "copilot": (
        by_responses(CopilotExecBackend({"path": PROGRAMS["copilot"]})),
        script(call("bash", command=COMMAND, description="x", mode="sync", sessionId="s")),
    ),
}


async def worked(name: str) -> tuple[LoopbackModel, FolderChanges]:
    play, steps = EVERY[name]
    async with loopback(*steps) as model:
        agent, behind = play(model.url)
        route = Route(backend=behind, backend_name="model", model="m", price=PRICE)
        calls = Calls(
            routes={"optimizer": Route(backend=agent, backend_name="agent", model="m", inner=route)},
            ledger=Ledger.in_memory(),
            caps=Caps(max_calls=10),
            sleep=Naps(),
            random=chance(0),
        )
        calls.enter("run/1", calls.spent())
        try:
            reply = await calls.call("optimizer", "agent", [user("Do it.")], draw=(1,), form=ReplyForm(folder=GIVEN))
            return model, FolderChanges.read(reply.text)
        finally:
            await calls.aclose()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(not path, reason=f"{name} is not installed"))
        for name, path in PROGRAMS.items()
    ],
)
def test_a_program_changes_its_folder(name: str):
    model, changes = asyncio.run(worked(name))
    assert changes.texts == {"SKILL.md": "# Trivia\n\nAnswer.\n- Briefly.\n", "scripts/x.py": "print(1)\n"}
    assert not changes.refused
    assert changes.notes == "Done."
    assert len(model.requests) >= 2
