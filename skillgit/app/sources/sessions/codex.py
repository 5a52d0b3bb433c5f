"""Reads the sessions of Codex: ``sessions/YYYY/MM/DD/rollout-….jsonl`` below its home, archived ones as well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import cast
from urllib.parse import unquote, urlsplit

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
    join_texts,
    objects_at,
    records_of,
    text_at,
    whole,
)

_KNOWN = frozenset(
    {
        *(
            "session_meta",
            "response_item",
            "event_msg",
            "turn_context",
            "world_state",
            "token_usage_record",
            "compacted",
        ),
        *("inter_agent_communication", "ghost_snapshot"),
    }
)
_EVENTS = frozenset(
    {
        *("task_started", "task_complete", "turn_started", "turn_complete", "item_started", "item_completed"),
        *(
            "user_message",
            "agent_message",
            "token_count",
            "turn_aborted",
            "thread_settings_applied",
            "error",
            "warning",
        ),
        *("thread_rolled_back", "context_compacted", "agent_reasoning", "thread_name_updated", "turn_diff"),
    }
)
_LISTED = re.compile(r"^- (?P<name>[^\s:]+(?::[^\s:]+)?): (?P<text>.*?) \(file: [^)\n]{0,400}\)$", re.MULTILINE)
_SKILL = re.compile(
    r"<skill>\n<name>(?P<name>[^<]*)</name>\n<path>(?P<path>[^<]*)</path>\n(?P<body>.*)</skill>", re.DOTALL
)
_NAMED = re.compile(r"\$(?P<name>[\w:-]+)\s*")
_DOCUMENT = "SKILL.md"
_INJECTED = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")


def find(home: Path) -> Iterator[Path]:
    """Yield the files of all sessions; which project one is of is in its first line only."""
    for folder in (home / "sessions", home / "archived_sessions"):
        yield from sorted((*folder.rglob("rollout-*.jsonl"), *folder.rglob("rollout-*.jsonl.zst")))


def directory_of(path: Path) -> str:
    """Return where the agent worked, from the first record of a session."""
    probe = AgentSession(agent=SessionAgent.CODEX, path=path)
    return text_at(next(records_of(probe), None), "payload", "cwd")


def read(path: Path, original: Callable[[AgentSession, str], str | None]) -> AgentSession:
    """Return the session in the file at ``path``; ``original`` has the text of a file before it."""
    session = AgentSession(agent=SessionAgent.CODEX, path=path, id=path.name.partition(".")[0])
    reader = _Reader(session, original)
    for record in records_of(session):
        with counting_damage(session):
            reader.take(record)
        if reader.is_whole_left_out:
            break
    return session


def _folder(address: str) -> str:
    """Return the path in a ``file:`` address, or in what is a path already; empty for what is neither."""
    try:
        return unquote(urlsplit(address).path)
    except ValueError:
        return ""


class _Reader:
    def __init__(self, session: AgentSession, original: Callable[[AgentSession, str], str | None]) -> None:
        self._session = session
        self._files = FileStates(lambda path: original(session, path))
        self._turn: SessionTurn | None = None
        self._trigger = ""  # of the turn that is under way, as the program names it
        self._origin = ""
        self._named: list[tuple[str, str, str]] = []
        self.is_whole_left_out = False

    def take(self, record: Record) -> None:
        kind, payload = text_at(record, "type"), at(record, "payload")
        match kind:
            case "session_meta":
                self._meta(payload)
            case "response_item" if text_at(payload, "type") == "message":
                self._message(text_at(payload, "role"), join_texts(at(payload, "content")))
            case "event_msg":
                self._event(text_at(payload, "type"), payload, text_at(record, "timestamp"))
            case "compacted":
                self._session.compactions += 1
                self._session.left_out[NoTurn.SUMMARY] += 1
            case _ if kind not in _KNOWN:
                self._session.unknown[kind or "no type"] += 1

    def _meta(self, payload: object) -> None:
        session = self._session
        if session.directory:
            return  # a fork repeats the records of the session that it is made of
        session.id = text_at(payload, "id") or session.id
        session.version, session.directory = text_at(payload, "cli_version"), text_at(payload, "cwd")
        session.commit = text_at(payload, "git", "commit_hash")
        session.links |= dict.fromkeys(filter(None, (text_at(payload, "forked_from_id"), session.id)))
        self._origin = text_at(payload, "originator")
        if isinstance(at(payload, "source"), dict):
            session.left_out[NoTurn.SUBAGENT] += 1
            self.is_whole_left_out = True

    def _message(self, role: str, text: str) -> None:
        if role == "developer":
            for match in _LISTED.finditer(text):
                self._session.offers[match["name"]] = match["text"]
        elif role == "user" and (skill := _SKILL.match(text)):
            self._session.left_out[NoTurn.SKILL_BODY] += 1
            self._session.bodies[skill["name"]] = (str(PurePosixPath(skill["path"]).parent), skill["body"].strip())
            if self._turn is not None:
                self._turn.uses[skill["name"]] = SkillUse.USER
        elif role == "user" and text.startswith(_INJECTED):
            self._session.left_out[NoTurn.INJECTED] += 1

    def _event(self, kind: str, payload: object, date: str) -> None:
        turn = self._turn
        match kind:
            case "task_started" | "turn_started":
                self._trigger = text_at(payload, "turn_attribution", "turn_trigger")
                self._turn = None
            case "item_completed":
                self._item(text_at(payload, "item", "type"), at(payload, "item"), text_at(payload, "turn_id"), date)
            case "user_message":  # of versions that complete no items
                self._begin(text_at(payload, "message"), f"{self._session.id}:{date}", date)
            case "agent_message" if turn is not None:
                turn.answer = whole(text_at(payload, "message"))
            case "turn_aborted" if turn is not None:
                turn.interrupted = text_at(payload, "reason") == "interrupted"
            case "thread_rolled_back":
                count = at(payload, "num_turns")
                live = [turn for turn in self._session.turns if turn.is_live]
                self._session.go_back(live[-count:] if isinstance(count, int) and count > 0 else [], self._files)
            case _ if kind not in _EVENTS:
                self._session.unknown[f"event {kind}"] += 1

    def _item(self, kind: str, item: object, identity: str, date: str) -> None:
        turn = self._turn
        match kind:
            case "UserMessage":
                self._begin(join_texts(at(item, "content")), identity, date)
                for part in objects_at(item, "content"):
                    if part.get("type") == "skill" and self._turn is not None:
                        self._turn.uses[text_at(part, "name")] = SkillUse.USER
            case "AgentMessage" if turn is not None:
                turn.answer = whole(join_texts(at(item, "content")))
            case "CommandExecution" if turn is not None:
                self._command(turn, item)
            case "FileChange" if turn is not None:
                self._change(turn, item)
            case "ContextCompaction":
                self._session.compactions += 1
            case (
                "UserMessage"
                | "AgentMessage"
                | "CommandExecution"
                | "FileChange"
                | "Reasoning"
                | "Plan"
                | "McpToolCall"
            ):
                pass
            case _:
                self._session.unknown[f"item {kind}"] += 1

    def _begin(self, text: str, identity: str, date: str) -> None:
        # older versions say of no prompt who gave it, and all that is left is the program; a damaged file says neither
        is_person = self._trigger == "user" or (not self._trigger and self._origin not in ("", "codex_exec"))
        if not is_person:
            self._session.left_out[NoTurn.HEADLESS if self._trigger in ("", "exec") else NoTurn.INJECTED] += 1
            self._turn = None
            return
        if self._turn is not None:  # what the person adds while the agent is at work
            self._turn.comments.append(whole(text))
            return
        match = _NAMED.match(text)
        prompt = text[match.end() :] if match and match.end() < len(text) else text
        turn = SessionTurn(id=identity, prompt=whole(prompt.strip()), date=date)
        self._turn = self._session.begin(turn, self._files)

    def _command(self, turn: SessionTurn, item: object) -> None:
        words = at(item, "command")
        command = str(words[-1]) if isinstance(words, list) and words else str(words or "")
        code, status = at(item, "exit_code"), text_at(item, "status")
        call = AgentCall(tool="shell", command=command, output=whole(text_at(item, "aggregated_output")))
        call.has_ended = True
        call.refused = status == "declined"
        call.interrupted = not call.refused and not (isinstance(code, int) and code >= 0)
        call.failed = isinstance(code, int) and code > 0
        turn.calls.append(call)
        folder = _folder(text_at(item, "cwd")) or self._session.directory
        for part in objects_at(item, "parsed_cmd"):
            if part.get("type") != "read" or code != 0:
                continue
            path = PurePosixPath(folder) / text_at(part, "path")
            if path.name == _DOCUMENT:
                turn.uses.setdefault(path.parent.name, SkillUse.MODEL)
                self._session.bodies.setdefault(path.parent.name, (str(path.parent), call.output.strip()))
            elif command == f"cat {text_at(part, 'path')}":
                turn.reads[str(path)] = call.output
                self._files.learn(str(path), call.output)

    def _change(self, turn: SessionTurn, item: object) -> None:
        changes, status = at(item, "changes"), text_at(item, "status")
        if status != "completed" or not isinstance(changes, dict):
            if status == "declined":
                turn.calls.append(AgentCall(tool="apply_patch", refused=True))
            return
        for name, change in cast("dict[str, object]", changes).items():
            path = str(PurePosixPath(self._session.directory) / name)
            match text_at(change, "type"):
                case "update":
                    turn.edits.append(self._files.patched(path, text_at(change, "unified_diff")))
                case "add":
                    turn.edits.append(self._files.written(path, None, text_at(change, "content")))
                case "delete":
                    turn.edits.append(self._files.written(path, text_at(change, "content"), None))
                case kind:
                    self._session.unknown[f"change {kind}"] += 1
