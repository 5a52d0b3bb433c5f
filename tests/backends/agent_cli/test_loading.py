"""Each agent's own events say whether it loaded the skill, and where they do not, that is unknown.

The events have the shapes of Claude Code 2.1, Codex 0.171, OpenCode 1.18 and Copilot 1.0, as the programs wrote them.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import trivia

from skillgit.domain.evaluation import Loading
from skillgit.plugin.backend import ModelAccess, Request, system, user
from skillgit.plugin.call_records import read_reply, reply_json
from skillgit.plugin.skill_loads import ToolLog, loaded_skills
from skillgit.plugin.skill_marks import marked
from skillgit_backends.agent_cli.backend import AgentBackend
from skillgit_backends.agent_cli.process import Ended
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend
from skillgit_backends.codex_exec import CodexExecBackend
from skillgit_backends.copilot_exec import CopilotExecBackend
from skillgit_backends.opencode_exec import OpenCodeExecBackend

Event = dict[str, Any]
ANSWER = "<answer>Seine</answer>"


@dataclass(frozen=True)
class Agent:
    """How an agent tells of a tool and of its answer."""

    make: type[Any]
    folder: str
    tool: tuple[str, str] | None  # its tool for skills, and the name of the argument
    read: tuple[str, str]  # its tool that reads files, and the name of the argument

    def use(self, name: str, arguments: Event, *, ok: bool | None) -> list[Event]:
        """Return the events of one use of a tool; ``ok`` is how it ended, None if they do not say."""
        match self.make.__name__:
            case "ClaudeCodeExecBackend":
                block = {"type": "tool_use", "id": "t", "name": name, "input": arguments}
                end = {"type": "tool_result", "tool_use_id": "t", "content": "x", **({} if ok else {"is_error": True})}
                events = [{"type": "assistant", "message": {"content": [block]}}]
                return events if ok is None else [*events, {"type": "user", "message": {"content": [end]}}]
            case "CodexExecBackend":
                command = {"type": "command_execution", "id": "item_1", "command": arguments["command"]}
                code = {"exit_code": 0, "status": "completed"} if ok else {"exit_code": 1, "status": "failed"}
                return [{"type": "item.completed", "item": {**command, **({} if ok is None else code)}}]
            case "OpenCodeExecBackend":
                status = "running" if ok is None else "completed" if ok else "error"
                state = {"status": status, "input": arguments}
                return [{"type": "tool_use", "part": {"type": "tool", "tool": name, "callID": "c", "state": state}}]
            case _:
                data = {"toolCallId": "c", "toolName": name, "arguments": arguments}
                end = {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": ok}}
                return [{"type": "tool.execution_start", "data": data}, *([] if ok is None else [end])]

    def ends(self) -> list[Event]:
        match self.make.__name__:
            case "ClaudeCodeExecBackend":
                said = {"type": "assistant", "message": {"content": [{"type": "text", "text": ANSWER}]}}
                counts = {"input_tokens": 5, "output_tokens": 2}
                return [said, {"type": "result", "subtype": "success", "result": ANSWER, "usage": counts}]
            case "CodexExecBackend":
                said = {"type": "item.completed", "item": {"type": "agent_message", "text": ANSWER}}
                return [said, {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}}]
            case "OpenCodeExecBackend":
                said = {"type": "text", "part": {"text": ANSWER}}
                return [{"type": "step_start"}, said, {"type": "step_finish", "part": {"reason": "stop"}}]
            case _:
                return [
                    {"type": "assistant.message", "data": {"content": ANSWER, "toolRequests": []}},
                    {"type": "result", "exitCode": 0},
                ]


AGENTS = {
    "claude": Agent(ClaudeCodeExecBackend, ".claude/skills", ("Skill", "skill"), ("Read", "file_path")),
    "codex": Agent(CodexExecBackend, ".agents/skills", None, ("command_execution", "command")),
    "opencode": Agent(OpenCodeExecBackend, ".opencode/skills", ("skill", "name"), ("read", "filePath")),
    "copilot": Agent(CopilotExecBackend, ".github/skills", ("skill", "skill"), ("view", "path")),
}
MENTIONED = "<skill>\n<name>{name}</name>\n<path>/w/.agents/skills/{name}/SKILL.md</path>\n# Trivia\n</skill>"


@pytest.fixture(autouse=True)
def _a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    monkeypatch.setenv("CODEX_API_KEY", "sk-codex-0123456789abcdef")


def session(*texts: str) -> bytes:
    """Return Codex's record of a session in which it showed its model ``texts`` by itself."""
    contents = [[{"type": "input_text", "text": text}] for text in texts]
    payloads = [{"type": "message", "role": "user", "content": content} for content in contents]
    return "".join(json.dumps({"type": "response_item", "payload": each}) + "\n" for each in payloads).encode()


SEEN = session("# AGENTS.md", "Which river?")  # it loaded nothing by itself


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch):
    """Return what a call says of its skill; ``record`` is Codex's file of its session, of which there may be none."""

    def asked(agent: Agent, events: list[Event], request: Request | None = None, record: bytes | None = SEEN):
        async def run(_backend, *call):
            _command, _stdin, workspace, _environment, hear = call
            if record is not None:
                path = workspace.home / ".codex/sessions/2026/11/28/rollout-2026-11-28T09-27-14-01a2217a.jsonl"
                path.parent.mkdir(parents=True)
                path.write_bytes(record)
            for event in [*events, *agent.ends()]:
                hear(event)
            return Ended(code=0, errors=""), ""

        monkeypatch.setattr(AgentBackend, "_run", run)
        access = ModelAccess(url="http://127.0.0.1:9", token="t")  # noqa: S106 - it lets nobody in
        reply = asyncio.run(agent.make({}).complete_through(request or trivia(), access))
        assert read_reply(json.loads(json.dumps(reply_json(reply))), reply.usage) == reply, "the ledger keeps it"
        return reply.loading

    return asked


def by_tool(agent: Agent, name: str, *, ok: bool | None) -> list[Event]:
    assert agent.tool is not None
    return agent.use(agent.tool[0], {agent.tool[1]: name}, ok=ok)


def by_reading(agent: Agent, path: str, *, ok: bool | None) -> list[Event]:
    words = f"/bin/bash -lc 'cat {path}'" if agent.tool is None else path
    return agent.use(agent.read[0], {agent.read[1]: words}, ok=ok)


every_agent = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)


@pytest.mark.parametrize(
    ("agent", "way"),
    [
        pytest.param(agent, way, id=f"{name}-{way.__name__}")
        for name, agent in AGENTS.items()
        for way in (by_tool, by_reading)
        if agent.tool or way is by_reading
    ],
)
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (("searchqa", True), Loading.LOADED),
        (("searchqa", False), Loading.NOT_LOADED),
        (("searchqa", None), Loading.UNKNOWN),
        (("another", True), Loading.NOT_LOADED),
        (("searchqa-2", True), Loading.NOT_LOADED),
    ],
)
def test_an_agent_loads_the_skill_by_its_tool_or_by_reading_its_document(agent, way, use, expected, loading):
    name, ok = use
    events = way(agent, name if way is by_tool else f"{agent.folder}/{name}/SKILL.md", ok=ok)
    if agent.tool is None and ok is False:
        expected = Loading.UNKNOWN  # a command that fails may have shown the file before
    assert loading(agent, events) is expected


@every_agent
def test_an_agent_that_never_loads_it_says_so(agent, loading):
    events = by_reading(agent, "notes.txt", ok=True)
    assert loading(agent, events) is Loading.NOT_LOADED


@every_agent
@pytest.mark.parametrize("path", ["SKILL.md", "*/SKILL.md"])
def test_a_document_without_a_name_may_be_any(agent, path, loading):
    assert loading(agent, by_reading(agent, path, ok=True)) is Loading.UNKNOWN


@pytest.mark.parametrize("agent", [agent for agent in AGENTS.values() if agent.tool], ids=lambda agent: agent.folder)
def test_a_list_of_names_shows_no_text(agent, loading):
    events = [event for name in ("Glob", "glob") for event in agent.use(name, {"pattern": "**/SKILL.md"}, ok=True)]
    assert loading(agent, events) is Loading.NOT_LOADED


@every_agent
@pytest.mark.parametrize("skill", ["", marked("searchqa", "---\nname: searchqa\n---\nx", offered=True)])
def test_nothing_is_said_where_no_skill_was_to_be_loaded(agent, skill, loading):
    request = Request(model="m", messages=(system(f"Answer.\n\n{skill}"), user("Which river?")))
    assert loading(agent, by_reading(agent, "x", ok=True), request) is None


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([MENTIONED.format(name="searchqa")], Loading.LOADED),
        ([MENTIONED.format(name="another")], Loading.NOT_LOADED),
        (["Say <skill>\n<name>searchqa</name> aloud."], Loading.NOT_LOADED),
        ([], Loading.UNKNOWN),
    ],
)
def test_codex_loads_by_itself_what_the_prompt_mentions(texts, expected, loading):
    assert loading(AGENTS["codex"], [], record=session(*texts)) is expected


def test_without_its_record_codex_may_have_loaded_it(loading):
    assert loading(AGENTS["codex"], [], record=None) is Loading.UNKNOWN
    events = by_reading(AGENTS["codex"], ".agents/skills/searchqa/SKILL.md", ok=True)
    assert loading(AGENTS["codex"], events, record=None) is Loading.LOADED


@pytest.mark.parametrize("record", [b"no json", b'{"payload": 5}', b'{"payload": {"type": "message", "role": "user"}}'])
def test_a_damaged_record_says_nothing(record, loading):
    assert loading(AGENTS["codex"], [], record=record) is Loading.UNKNOWN


names = st.text(alphabet="abc-_", min_size=1, max_size=6)


@given(names, names, st.sampled_from(["Skill", "Read", "bash"]), st.sampled_from([True, False, None]))
def test_what_is_loaded_is_what_is_named(name, other, tool, ok):
    arguments = {"skill": other} if tool == "Skill" else {"x": f"a/skills/{other}/SKILL.md"}
    log = ToolLog()
    log.begin("1", tool, arguments)
    if ok is not None:
        log.end("1", is_success=ok)
    assert loaded_skills(log.uses, [name]) == ((name,) if name == other else ())
    expected = {True: Loading.LOADED, False: Loading.NOT_LOADED, None: Loading.UNKNOWN}
    assert log.loading([name], is_whole=True) is (expected[ok] if name == other else Loading.NOT_LOADED)
    assert log.loading([name], is_whole=False) is not Loading.NOT_LOADED
    assert log.loading([], is_whole=True) is None
