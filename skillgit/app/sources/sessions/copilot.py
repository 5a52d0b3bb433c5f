"""Reads the sessions of the GitHub Copilot command line: ``session-state/<id>/events.jsonl`` below its home."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from skillgit.app.sources.sessions.session import (
    AgentCall,
    AgentSession,
    FileStates,
    NoTurn,
    Record,
    SessionAgent,
    SessionTurn,
    SkillUse,
    at,
    counting_damage,
    records_of,
    text_at,
    whole,
)

_KNOWN = (
    *("session.", "assistant.", "tool.", "skill.", "permission.", "hook.", "system.", "subagent.", "mcp.", "command."),
    *("external_tool.", "elicitation.", "user_input.", "model.", "exit_plan_mode.", "agent."),
)
_HEADLESS = "running in non-interactive mode"
"""Words of the system message; nothing else in the file says it."""


def find(home: Path) -> Iterator[Path]:
    """Yield the files of all sessions; which project one is of is in its first line only."""
    yield from sorted((home / "session-state").glob("*/events.jsonl"))


def directory_of(path: Path) -> str:
    """Return where the agent worked, from the first record of a session."""
    probe = AgentSession(agent=SessionAgent.COPILOT, path=path)
    return text_at(next(records_of(probe), None), "data", "context", "cwd")


def read(path: Path, original: Callable[[AgentSession, str], str | None]) -> AgentSession:
    """Return the session in the file at ``path``; ``original`` has the text of a file before it."""
    session = AgentSession(agent=SessionAgent.COPILOT, path=path, id=path.parent.name)
    reader = _Reader(session, original)
    for record in records_of(session):
        with counting_damage(session):
            reader.take(record)
    if reader.is_headless:
        session.left_out[NoTurn.HEADLESS] += len(session.turns)
        session.turns.clear()
    return session


class _Reader:
    def __init__(self, session: AgentSession, original: Callable[[AgentSession, str], str | None]) -> None:
        self._session = session
        self._files = FileStates(lambda path: original(session, path))
        self._turn: SessionTurn | None = None
        self._calls: dict[str, tuple[AgentCall, object]] = {}
        self._events: dict[str, int] = {}  # event to how many turns had begun by then
        self.is_headless = False

    def take(self, record: Record) -> None:
        kind, data, session = text_at(record, "type"), at(record, "data"), self._session
        self._events[text_at(record, "id")] = len(session.turns)
        if text_at(data, "parentToolCallId") or text_at(record, "agentId"):
            session.left_out[NoTurn.SUBAGENT] += kind == "user.message"
            return
        match kind:
            case "session.start":
                session.version, session.directory = text_at(data, "copilotVersion"), text_at(data, "context", "cwd")
                session.commit = text_at(data, "context", "headCommit")
            case "user.message":
                self._user(text_at(record, "id"), data, text_at(record, "timestamp"))
            case "system.message":
                self.is_headless = self.is_headless or _HEADLESS in text_at(data, "content")
            case "session.snapshot_rewind":
                count = self._events.get(text_at(data, "upToEventId"), len(session.turns))
                session.go_back(session.turns[max(0, count - 1) :], self._files)
            case "session.compaction_complete":
                session.compactions += 1
                session.left_out[NoTurn.SUMMARY] += 1
            case "abort" | "agent.interrupted" if self._turn is not None:
                self._turn.interrupted = True
            case _ if self._turn is not None and kind.startswith(("assistant.", "tool.", "skill.")):
                self._work(self._turn, kind, data)
            case _ if not kind.startswith(_KNOWN):
                session.unknown[kind or "no type"] += 1

    def _user(self, identity: str, data: object, date: str) -> None:
        if source := text_at(data, "source"):
            reason = NoTurn.SKILL_BODY if source.startswith("skill") else NoTurn.INJECTED
            self._session.left_out[reason if source != "user" else NoTurn.COMMAND] += 1
            return
        turn = SessionTurn(id=identity, prompt=whole(text_at(data, "content").strip()), date=date)
        self._turn = self._session.begin(turn, self._files)

    def _work(self, turn: SessionTurn, kind: str, data: object) -> None:
        match kind:
            case "assistant.message":
                turn.answer = whole(text_at(data, "content")) or turn.answer
            case "tool.execution_start":
                name = text_at(data, "toolName")
                command = text_at(data, "arguments", "command") if name in ("bash", "powershell") else ""
                call = AgentCall(tool=name, command=command)
                turn.calls.append(call)
                self._calls[text_at(data, "toolCallId")] = (call, at(data, "arguments"))
            case "tool.execution_complete":
                self._complete(turn, data)
            case "skill.invoked" if text_at(data, "trigger") != "context-load":
                name = text_at(data, "name")
                use = SkillUse.USER if text_at(data, "trigger") == "user-invoked" else SkillUse.MODEL
                turn.uses.setdefault(name, use)
                folder = str(PurePosixPath(text_at(data, "path")).parent)
                self._session.bodies[name] = (folder, text_at(data, "content").strip())
                self._session.offers.setdefault(name, text_at(data, "description"))
            case _:
                pass

    def _complete(self, turn: SessionTurn, data: object) -> None:
        call, arguments = self._calls.pop(text_at(data, "toolCallId"), (None, None))
        if call is None:
            return
        call.output, call.has_ended = whole(text_at(data, "result", "content")), True
        code, path = at(data, "shellExecution", "exitCode"), text_at(arguments, "path")
        call.failed = isinstance(code, int) and code != 0
        if at(data, "success") is not True:
            call.refused = text_at(data, "error", "code") in ("denied", "rejected")
            call.failed = call.failed or bool(call.command and not call.refused)
        elif call.tool == "skill":
            turn.uses.setdefault(text_at(arguments, "skill"), SkillUse.MODEL)
        elif call.tool == "edit":
            old, new = text_at(arguments, "old_str"), text_at(arguments, "new_str")
            turn.edits.append(self._files.replaced(path, old, new))
        elif call.tool == "create":
            turn.edits.append(self._files.written(path, None, text_at(arguments, "file_text")))
        elif call.tool == "view" and at(arguments, "view_range") is None and path:
            # The program numbers no lines, and says where it has cut.
            if self._files.text(path) is None and "truncated" not in call.output[-200:]:
                self._files.learn(path, call.output)
            if (text := self._files.text(path)) is not None:
                turn.reads[path] = text
