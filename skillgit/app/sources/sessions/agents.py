"""The agents whose sessions are read: where each keeps them on this machine, and what their records say."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Self
from urllib.parse import unquote, urlsplit

from skillgit.app.sources.sessions.session import (
    MOST_LINE,
    MOST_TEXT,
    AgentCall,
    AgentSession,
    NoTurn,
    Original,
    Record,
    SessionAgent,
    SessionReader,
    SessionTurn,
    SkillUse,
    at,
    counting_damage,
    join_texts,
    objects_at,
    patched,
    records_of,
    text_at,
    whole,
)
from skillgit.domain.untrusted.json_limits import DocumentError, loads
from skillgit.errors import DataError, NotFoundError, SkillgitError, UsageError
from skillgit.files import read_plain

_INTERACTIVE = frozenset({"", "cli", "claude-vscode", "claude-desktop"})
_COMMAND = re.compile(r"<command-name>/?(?P<name>[^<]*)</command-name>")
_WRAPPED = ("<local-command-", "<bash-", "<task-notification>", "<system-reminder>", "<user-memory-input>", "Caveat: ")
_INTERRUPTION = "[Request interrupted by user"
_BODY = "Base directory for this skill: "
_LISTED = re.compile(r"^- (?P<name>[^\s:]+(?::[^\s:]+)?): (?P<text>.*)$", re.MULTILINE)
_RECENT = re.compile(r"Recent commits:\n(?P<commit>[0-9a-f]{7,40}) ")
_BACKUP = re.compile(r"[0-9a-f]+@v\d+")


class Claude(SessionReader):
    """Claude Code: ``projects/<folder>/<session>.jsonl`` below its configuration."""

    agent = SessionAgent.CLAUDE
    home = "CLAUDE_CONFIG_DIR", ".claude"
    # Requests as they were sent: most of a file, and a second copy of everything in it.
    noise = (b'{"type":"api-request', b'{"type":"file-history-snapshot"')
    kinds = frozenset(
        {
            *("user", "assistant", "attachment", "system", "summary", "file-history-delta", "queue-operation"),
            *("last-prompt", "mode", "permission-mode", "tools-used", "atis-latch", "cost-state", "ai-title"),
            *("custom-title", "agent-name", "file-history-snapshot", "api-request", "api-request-blob"),
            "api-request-shape",
        }
    )

    def __init__(self, path: Path, original: Original, name: str) -> None:
        super().__init__(path, original, name)
        self._backups: dict[str, str] = {}  # absolute path to the name of the file's first backup
        self._parents: dict[str, str] = {}
        self._leaf = ""  # the last record of the conversation
        self._commands: set[str] = set()  # turns that began with a slash and have no answer yet

    @classmethod
    def read(cls, path: Path, original: Original) -> AgentSession:
        if path.parent.name != "subagents" and not path.name.startswith("agent-"):
            return super().read(path, original)
        session = AgentSession(agent=cls.agent, path=path, id=path.stem)
        session.left_out[NoTurn.SUBAGENT] += 1
        session.directory = text_at(next(records_of(session, cls.noise), None), "cwd")
        return session

    def end(self) -> None:
        session, live, identity = self.session, set[str](), self._leaf
        self.leave_out(NoTurn.COMMAND, len(self._commands))
        session.turns = [turn for turn in session.turns if turn.id not in self._commands]
        while identity and identity not in live:
            live.add(identity)
            identity = self._parents.get(identity, "")
        for turn in session.turns:
            turn.is_live = turn.id in live

    def text_before(self, path: str) -> str | None:
        """Return what a file held before its first edit, from the copy that the program made of it, or elsewhere."""
        name, folders = self._backups.get(path, ""), self.session.path.parents
        if _BACKUP.fullmatch(name) and len(folders) > 2:  # noqa: PLR2004 - below projects/<folder>
            with suppress(OSError, UnicodeDecodeError):
                file = folders[2] / "file-history" / self.session.id / name
                if text := read_plain(file, most=MOST_TEXT).decode():
                    return text
        return super().text_before(path)

    def take(self, record: Record) -> None:
        kind, session, identity = text_at(record, "type"), self.session, text_at(record, "uuid")
        if kind not in self.kinds:
            session.unknown[kind or "no type"] += 1
            return
        session.version = text_at(record, "version") or session.version
        session.directory = session.directory or text_at(record, "cwd")
        if identity:
            self._parents[identity] = text_at(record, "parentUuid") or text_at(record, "logicalParentUuid")
        if record.get("isSidechain") is True:
            self.leave_out(NoTurn.SUBAGENT, record.get("parentUuid") is None)
            return
        if kind in ("user", "assistant"):
            self._leaf = identity or self._leaf
        match kind:
            case "user":
                self._user(record, identity)
            case "assistant" if self.turn is not None:
                self._assistant(self.turn, record)
            case "attachment" if text_at(record, "attachment", "type") == "skill_listing":
                for match in _LISTED.finditer(text_at(record, "attachment", "content")):
                    session.offers[match["name"]] = whole(match["text"])
            case "attachment" if text_at(record, "attachment", "type") == "session_context":
                recent = _RECENT.search(text_at(record, "attachment", "context", "gitStatus"))
                session.commit = session.commit or (recent["commit"] if recent else "")
            case "system" if text_at(record, "subtype") == "compact_boundary":
                session.compactions += 1
                session.links |= dict.fromkeys(filter(None, (identity, text_at(record, "logicalParentUuid"))))
            case "file-history-delta":
                folder = text_at(record, "backup", "realParentDir") or session.directory
                path = str(Path(folder) / PurePosixPath(text_at(record, "trackingPath")).name)
                self._backups.setdefault(path, text_at(record, "backup", "backupFileName"))

    def _user(self, record: Record, identity: str) -> None:
        parts = objects_at(record, "message", "content")
        results = [part for part in parts if part.get("type") == "tool_result"]
        text = _without_reminders(join_texts(at(record, "message", "content"))).strip()
        for part in results:
            self._result(record, part)
        if text.startswith(_INTERRUPTION):
            if self.turn is not None and not (self.turn.calls and self.turn.calls[-1].refused):
                self.turn.interrupted = True
        elif results:
            if text and self.turn is not None and not text.startswith("<"):
                self.turn.comments.append(text)
        elif (reason := self._no_person(record, text)) is None:
            self._begin(identity, text, text_at(record, "timestamp"))
        else:
            self.leave_out(reason)
            if reason is NoTurn.SKILL_BODY and text.startswith(_BODY):
                folder, _, body = text.removeprefix(_BODY).partition("\n")
                self.session.bodies[PurePosixPath(folder).name] = (folder, body.strip())
                if self.turn is not None:
                    self._commands.discard(self.turn.id)
            elif reason is NoTurn.HEADLESS:
                self.turn = None

    def _no_person(self, record: Record, text: str) -> NoTurn | None:
        """Return why a record of role user is not a prompt of a person; None if it is one."""
        entry, origin = text_at(record, "entrypoint"), text_at(record, "origin", "kind")
        if record.get("isCompactSummary") is True:
            self.session.links[text_at(record, "uuid")] = None
            return NoTurn.SUMMARY
        if origin == "task-notification" or text.startswith("<task-notification>"):
            return NoTurn.NOTIFICATION
        if record.get("isMeta") is True:
            is_body = text.startswith(_BODY) or record.get("turnCompanion") is True
            return NoTurn.SKILL_BODY if is_body else NoTurn.INJECTED
        if "sdk" in (text_at(record, "turnOrigin"), text_at(record, "promptSource")) or entry.startswith("sdk"):
            return NoTurn.HEADLESS
        if origin and origin != "human":
            return NoTurn.INJECTED
        if not origin and entry not in _INTERACTIVE:
            return NoTurn.HEADLESS
        if text.startswith(_WRAPPED) or not text:
            return NoTurn.COMMAND if text.startswith(("<local-command-", "<bash-")) else NoTurn.INJECTED
        return None

    def _begin(self, identity: str, text: str, date: str) -> None:
        match = _COMMAND.search(text)
        if match:
            # to the last end, for the person may have written one; a pattern would search again from every beginning
            arguments = text.partition("<command-args>")[2].rpartition("</command-args>")[0]
            text = whole(arguments.strip()) or f"/{match['name']}"
            self._commands.add(identity)
        parent, turns = self._parents.get(identity, ""), self.session.turns
        ends = [number for number, before in enumerate(turns) if before.follows == parent and parent]
        if ends:
            self.go_back(turns[ends[-1] :])
        turn = self.begin(identity, text, date)
        turn.follows = parent
        if match:
            turn.uses[match["name"]] = SkillUse.USER

    def _assistant(self, turn: SessionTurn, record: Record) -> None:
        self._commands.discard(turn.id)
        if skill := text_at(record, "attributionSkill"):
            turn.uses.setdefault(skill, SkillUse.MODEL)
        for part in objects_at(record, "message", "content"):
            if part.get("type") == "text":
                turn.answer = whole(text_at(part, "text"))
            elif part.get("type") == "tool_use":
                name = text_at(part, "name")
                call = AgentCall(tool=name, command=text_at(part, "input", "command") if name == "Bash" else "")
                turn.calls.append(call)
                self.calls[text_at(part, "id")] = (call, part)

    def _result(self, record: Record, part: Record) -> None:
        call, use = self.calls.pop(text_at(part, "tool_use_id"), (None, None))
        turn, result = self.turn, record.get("toolUseResult")
        if call is None or turn is None:
            return
        is_error, call.output = part.get("is_error") is True, whole(join_texts(part.get("content")))
        call.failed = is_error and call.output.startswith("Exit code ")
        # What the program itself refused to run has an error and no code; what it left running has neither.
        call.has_ended = call.failed or (not is_error and not text_at(result, "backgroundTaskId"))
        if result == "User rejected tool use":
            call.interrupted = "toolDenialKind" in record and record.get("toolDenialBeforeRun") is not True
            call.refused = not call.interrupted
        elif is_error:
            return
        elif call.tool == "Skill":
            turn.uses.setdefault(text_at(use, "input", "skill").removeprefix("/"), SkillUse.MODEL)
        elif path := text_at(result, "filePath"):
            self._edit(turn, path, result)
        elif path := text_at(result, "file", "filePath"):
            file = at(result, "file")
            if at(file, "startLine") == 1 and at(file, "numLines") == at(file, "totalLines"):
                turn.reads[path] = text_at(file, "content")
                self.files.learn(path, turn.reads[path])

    def _edit(self, turn: SessionTurn, path: str, result: object) -> None:
        before, after = at(result, "originalFile"), at(result, "content")
        if not isinstance(before, str):
            before = None if at(result, "type") == "create" else self.files.text(path)
        if not isinstance(after, str):
            after = None if before is None else patched(before, list(_diff_lines(result)))
        by_person = at(result, "userModified") is True
        turn.edits.append(self.files.written(path, before, after, by_person=by_person))


def _diff_lines(result: object) -> Iterator[str]:
    for hunk in objects_at(result, "structuredPatch"):
        old, new = (f"{hunk.get(f'{side}Start')},{hunk.get(f'{side}Lines')}" for side in ("old", "new"))
        yield f"@@ -{old} +{new} @@"
        lines = hunk.get("lines")
        yield from map(str, lines if isinstance(lines, list) else ())


def _without_reminders(text: str) -> str:
    """Leave out what the program put in; without a pattern, which would look for the end again from every beginning."""
    parts, position, end = list[str](), 0, "</system-reminder>"
    while (start := text.find("<system-reminder>", position)) >= 0 and (stop := text.find(end, start)) >= 0:
        parts.append(text[position:start] if not parts else text[position:start].lstrip())
        position = stop + len(end)
    return "".join([*parts, text[position:].lstrip() if parts else text])


_OFFERED = re.compile(r"^- (?P<name>[^\s:]+(?::[^\s:]+)?): (?P<text>.*?) \(file: [^)\n]{0,400}\)$", re.MULTILINE)
_SKILL = re.compile(
    r"<skill>\n<name>(?P<name>[^<]*)</name>\n<path>(?P<path>[^<]*)</path>\n(?P<body>.*)</skill>", re.DOTALL
)
_NAMED = re.compile(r"\$(?P<name>[\w:-]+)\s*")
_DOCUMENT = "SKILL.md"
_INJECTED = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")


class Codex(SessionReader):
    """Codex: ``sessions/YYYY/MM/DD/rollout-….jsonl`` below its home, archived ones as well."""

    agent = SessionAgent.CODEX
    home = "CODEX_HOME", ".codex"
    patterns = tuple(
        f"{folder}/**/rollout-*.jsonl{end}" for folder in ("sessions", "archived_sessions") for end in ("", ".zst")
    )
    folder, first = ("payload", "cwd"), "session_meta"
    kinds = frozenset(
        {
            *("session_meta", "response_item", "event_msg", "turn_context", "world_state", "token_usage_record"),
            *("compacted", "inter_agent_communication", "ghost_snapshot"),
        }
    )
    events = frozenset(
        {
            *("task_started", "task_complete", "turn_started", "turn_complete", "item_started", "item_completed"),
            *("user_message", "agent_message", "token_count", "turn_aborted", "thread_settings_applied", "error"),
            *("warning", "thread_rolled_back", "context_compacted", "agent_reasoning", "thread_name_updated"),
            "turn_diff",
        }
    )
    items = frozenset(
        {
            *("UserMessage", "AgentMessage", "CommandExecution", "FileChange", "Reasoning", "Plan", "McpToolCall"),
            "ContextCompaction",
        }
    )

    def __init__(self, path: Path, original: Original, name: str) -> None:
        super().__init__(path, original, name)
        self._trigger = ""  # of the turn that is under way, as the program names it
        self._origin = ""

    @classmethod
    def of(cls, path: Path, original: Original) -> Self:
        return cls(path, original, path.name.partition(".")[0])

    def take(self, record: Record) -> None:
        kind, payload = text_at(record, "type"), at(record, "payload")
        match kind:
            case "session_meta" if not self.session.directory:  # a fork repeats the records of its origin
                self._meta(payload)
            case "response_item" if text_at(payload, "type") == "message":
                self._message(text_at(payload, "role"), join_texts(at(payload, "content")))
            case "event_msg":
                self._event(text_at(payload, "type"), payload, text_at(record, "timestamp"))
            case "compacted":
                self.compacted()
            case _ if kind not in self.kinds:
                self.session.unknown[kind or "no type"] += 1

    def _meta(self, payload: object) -> None:
        session = self.session
        session.id = text_at(payload, "id") or session.id
        session.version, session.directory = text_at(payload, "cli_version"), text_at(payload, "cwd")
        session.commit = text_at(payload, "git", "commit_hash")
        session.links |= dict.fromkeys(filter(None, (text_at(payload, "forked_from_id"), session.id)))
        self._origin = text_at(payload, "originator")
        self.is_over = isinstance(at(payload, "source"), dict)
        self.leave_out(NoTurn.SUBAGENT, self.is_over)

    def _message(self, role: str, text: str) -> None:
        if role == "developer":
            self.session.offers |= {match["name"]: match["text"] for match in _OFFERED.finditer(text)}
        elif role == "user" and (skill := _SKILL.match(text)):
            self.leave_out(NoTurn.SKILL_BODY)
            self.session.bodies[skill["name"]] = (str(PurePosixPath(skill["path"]).parent), skill["body"].strip())
            if self.turn is not None:
                self.turn.uses[skill["name"]] = SkillUse.USER
        elif role == "user" and text.startswith(_INJECTED):
            self.leave_out(NoTurn.INJECTED)

    def _event(self, kind: str, payload: object, date: str) -> None:
        turn = self.turn
        match kind:
            case "task_started" | "turn_started":
                self._trigger = text_at(payload, "turn_attribution", "turn_trigger")
                self.turn = None
            case "item_completed":
                self._item(at(payload, "item"), text_at(payload, "turn_id"), date)
            case "user_message":  # of versions that complete no items
                self._begin(text_at(payload, "message"), f"{self.session.id}:{date}", date)
            case "agent_message" if turn is not None:
                turn.answer = whole(text_at(payload, "message"))
            case "turn_aborted" if turn is not None:
                turn.interrupted = text_at(payload, "reason") == "interrupted"
            case "thread_rolled_back":
                number = at(payload, "num_turns")
                live = [turn for turn in self.session.turns if turn.is_live]
                self.go_back(live[-number:] if isinstance(number, int) and number > 0 else [])
            case _ if kind not in self.events:
                self.session.unknown[f"event {kind}"] += 1

    def _item(self, item: object, identity: str, date: str) -> None:
        turn, kind = self.turn, text_at(item, "type")
        match kind:
            case "UserMessage":
                self._begin(join_texts(at(item, "content")), identity, date)
                for part in objects_at(item, "content"):
                    if part.get("type") == "skill" and self.turn is not None:
                        self.turn.uses[text_at(part, "name")] = SkillUse.USER
            case "AgentMessage" if turn is not None:
                turn.answer = whole(join_texts(at(item, "content")))
            case "CommandExecution" if turn is not None:
                self._command(turn, item)
            case "FileChange" if turn is not None:
                self._change(turn, item)
            case "ContextCompaction":
                self.session.compactions += 1
            case _ if kind not in self.items:
                self.session.unknown[f"item {kind}"] += 1

    def _begin(self, text: str, identity: str, date: str) -> None:
        # older versions say of no prompt who gave it, and all that is left is the program; a damaged file says neither
        is_person = self._trigger == "user" or (not self._trigger and self._origin not in ("", "codex_exec"))
        if not is_person:
            self.leave_out(NoTurn.HEADLESS if self._trigger in ("", "exec") else NoTurn.INJECTED)
            self.turn = None
        elif self.turn is not None:  # what the person adds while the agent is at work
            self.turn.comments.append(whole(text))
        else:
            match = _NAMED.match(text)
            self.begin(identity, (text[match.end() :] if match and match.end() < len(text) else text).strip(), date)

    def _command(self, turn: SessionTurn, item: object) -> None:
        words, code = at(item, "command"), at(item, "exit_code")
        command = str(words[-1]) if isinstance(words, list) and words else str(words or "")
        call = AgentCall(
            tool="shell", command=command, output=whole(text_at(item, "aggregated_output")), has_ended=True
        )
        call.refused = text_at(item, "status") == "declined"
        call.interrupted = not call.refused and not (isinstance(code, int) and code >= 0)
        call.failed = isinstance(code, int) and code > 0
        turn.calls.append(call)
        folder = _path_of(text_at(item, "cwd")) or self.session.directory
        for part in objects_at(item, "parsed_cmd"):
            if part.get("type") != "read" or code != 0:
                continue
            path = PurePosixPath(folder) / text_at(part, "path")
            if path.name == _DOCUMENT:
                turn.uses.setdefault(path.parent.name, SkillUse.MODEL)
                self.session.bodies.setdefault(path.parent.name, (str(path.parent), call.output.strip()))
            elif command == f"cat {text_at(part, 'path')}":
                turn.reads[str(path)] = call.output
                self.files.learn(str(path), call.output)

    def _change(self, turn: SessionTurn, item: object) -> None:
        changes, status = at(item, "changes"), text_at(item, "status")
        if status == "declined":
            turn.calls.append(AgentCall(tool="apply_patch", refused=True))
        for name, change in changes.items() if status == "completed" and isinstance(changes, dict) else ():
            path, content = str(PurePosixPath(self.session.directory) / name), text_at(change, "content")
            match text_at(change, "type"):
                case "update":
                    turn.edits.append(self.files.patched(path, text_at(change, "unified_diff")))
                case "add":
                    turn.edits.append(self.files.written(path, None, content))
                case "delete":
                    turn.edits.append(self.files.written(path, content, None))
                case kind:
                    self.session.unknown[f"change {kind}"] += 1


def _path_of(address: str) -> str:
    """Return the path in a ``file:`` address, or in what is a path already; empty for what is neither."""
    try:
        return unquote(urlsplit(address).path)
    except ValueError:
        return ""


class Copilot(SessionReader):
    """The GitHub Copilot command line: ``session-state/<id>/events.jsonl`` below its home."""

    agent = SessionAgent.COPILOT
    home = "COPILOT_HOME", ".copilot"
    patterns = ("session-state/*/events.jsonl",)
    folder, first = ("data", "context", "cwd"), "session.start"
    kinds = (
        *("session.", "assistant.", "tool.", "skill.", "permission.", "hook.", "system.", "subagent.", "mcp."),
        *("command.", "external_tool.", "elicitation.", "user_input.", "model.", "exit_plan_mode.", "agent."),
    )
    headless = "running in non-interactive mode"  # words of the system message; nothing else in the file says it

    def __init__(self, path: Path, original: Original, name: str) -> None:
        super().__init__(path, original, name)
        self._events: dict[str, int] = {}  # event to how many turns had begun by then
        self._is_headless = False

    @classmethod
    def of(cls, path: Path, original: Original) -> Self:
        return cls(path, original, path.parent.name)

    def end(self) -> None:
        if self._is_headless:
            self.leave_out(NoTurn.HEADLESS, len(self.session.turns))
            self.session.turns.clear()

    def take(self, record: Record) -> None:
        kind, data, session = text_at(record, "type"), at(record, "data"), self.session
        self._events[text_at(record, "id")] = len(session.turns)
        if text_at(data, "parentToolCallId") or text_at(record, "agentId"):
            self.leave_out(NoTurn.SUBAGENT, kind == "user.message")
            return
        match kind:
            case "session.start":
                session.version, session.directory = text_at(data, "copilotVersion"), text_at(data, "context", "cwd")
                session.commit = text_at(data, "context", "headCommit")
            case "user.message":
                if source := text_at(data, "source"):
                    reason = NoTurn.SKILL_BODY if source.startswith("skill") else NoTurn.INJECTED
                    self.leave_out(reason if source != "user" else NoTurn.COMMAND)
                else:
                    self.begin(text_at(record, "id"), text_at(data, "content").strip(), text_at(record, "timestamp"))
            case "system.message":
                self._is_headless = self._is_headless or self.headless in text_at(data, "content")
            case "session.snapshot_rewind":
                number = self._events.get(text_at(data, "upToEventId"), len(session.turns))
                self.go_back(session.turns[max(0, number - 1) :])
            case "session.compaction_complete":
                self.compacted()
            case "abort" | "agent.interrupted" if self.turn is not None:
                self.turn.interrupted = True
            case _ if self.turn is not None and kind.startswith(("assistant.", "tool.", "skill.")):
                self._work(self.turn, kind, data)
            case _ if not kind.startswith(self.kinds):
                session.unknown[kind or "no type"] += 1

    def _work(self, turn: SessionTurn, kind: str, data: object) -> None:
        match kind:
            case "assistant.message":
                turn.answer = whole(text_at(data, "content")) or turn.answer
            case "tool.execution_start":
                name = text_at(data, "toolName")
                command = text_at(data, "arguments", "command") if name in ("bash", "powershell") else ""
                call = AgentCall(tool=name, command=command)
                turn.calls.append(call)
                self.calls[text_at(data, "toolCallId")] = (call, at(data, "arguments"))
            case "tool.execution_complete":
                self._complete(turn, data)
            case "skill.invoked" if text_at(data, "trigger") != "context-load":
                name = text_at(data, "name")
                use = SkillUse.USER if text_at(data, "trigger") == "user-invoked" else SkillUse.MODEL
                turn.uses.setdefault(name, use)
                folder = str(PurePosixPath(text_at(data, "path")).parent)
                self.session.bodies[name] = (folder, text_at(data, "content").strip())
                self.session.offers.setdefault(name, text_at(data, "description"))
            case _:
                pass

    def _complete(self, turn: SessionTurn, data: object) -> None:
        call, arguments = self.calls.pop(text_at(data, "toolCallId"), (None, None))
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
            turn.edits.append(self.files.replaced(path, old, new))
        elif call.tool == "create":
            turn.edits.append(self.files.written(path, None, text_at(arguments, "file_text")))
        elif call.tool == "view" and at(arguments, "view_range") is None and path:
            # The program numbers no lines, and says where it has cut.
            if self.files.text(path) is None and "truncated" not in call.output[-200:]:
                self.files.learn(path, call.output)
            if (text := self.files.text(path)) is not None:
                turn.reads[path] = text


TreeReader = Callable[[Path, str, str], "str | None"]
"""Returns the text of a file in a tree of one of a program's own repositories below a folder."""
_TABLES = frozenset({"session", "message", "part"})
_HINT = "end OpenCode, or copy the file with its -wal"


class OpenCode(SessionReader):
    """OpenCode: its database, opened read-only, and the copies of work trees that it keeps in git."""

    agent = SessionAgent.OPENCODE
    home = "OPENCODE_DB", ".local/share/opencode/opencode.db"
    kinds = frozenset(
        {
            *("text", "tool", "step-start", "step-finish", "patch", "reasoning", "file", "agent", "subtask"),
            *("compaction", "retry"),
        }
    )

    @classmethod
    def sessions(cls, path: Path, is_allowed: Callable[[str], bool], snapshot: TreeReader) -> Iterator[AgentSession]:
        """Yield the sessions of the database at ``path`` whose folder is allowed, the others as ones without turns."""
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
                database.execute("PRAGMA query_only = 1")
                database.text_factory = lambda content: content.decode("utf-8", "replace")
                # a view under a table's name runs any query of its author's, perhaps without end
                tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                missing = _TABLES - {str(name) for (name,) in tables}
                if missing:
                    raise DataError(f"{path} has no tables {', '.join(sorted(missing))}", hint=_HINT)
                rows = database.execute(
                    "SELECT id, project_id, parent_id, directory, version, permission, revert FROM session "
                    "ORDER BY time_created"
                )
                for identity, project, parent, directory, version, permission, revert in rows.fetchall():
                    reader = cls(path, lambda *_: None, str(identity))
                    session = reader.session
                    session.version, session.directory = str(version), str(directory)
                    if is_allowed(session.directory):
                        session.copies = path.parent / "snapshot" / PurePosixPath(str(project)).name
                        reader.snapshot = snapshot
                        reader.read_turns(database, parent, _object(permission), _object(revert))
                    yield session
        except sqlite3.Error as error:
            raise DataError(f"{path} cannot be read: {error}", hint=_HINT) from error

    def __init__(self, path: Path, original: Original, name: str) -> None:
        super().__init__(path, original, name)
        self.snapshot: TreeReader
        self._tree = ""  # of the work tree at the step that is under way

    def text_before(self, path: str) -> str | None:
        root, copies = PurePosixPath(self.session.directory), self.session.copies
        if not self._tree or copies is None or not PurePosixPath(path).is_relative_to(root):
            return None
        return self.snapshot(copies, self._tree, str(PurePosixPath(path).relative_to(root)))

    def read_turns(self, database: sqlite3.Connection, parent: object, permission: object, revert: object) -> None:
        is_headless = any(
            rule.get("permission") == "question" and rule.get("action") == "deny"
            for rule in objects_at({"rules": permission}, "rules")
        )
        if parent is not None or is_headless:
            self.leave_out(NoTurn.SUBAGENT if parent is not None else NoTurn.HEADLESS)
            return
        parts = database.execute(
            "SELECT message.id, message.data, part.data FROM message JOIN part ON part.message_id = message.id "
            "WHERE message.session_id = ? ORDER BY message.time_created, message.id, part.id",
            (self.session.id,),
        )
        before = ""
        for identity, message, part in parts:
            with counting_damage(self.session):
                self._take(str(identity), _object(message), _object(part), is_first=identity != before)
            before = identity
        if undone := text_at(revert, "messageID"):
            self.go_back([turn for turn in self.session.turns if turn.id >= undone])

    def _take(self, identity: str, message: object, part: object, *, is_first: bool) -> None:
        kind = text_at(part, "type")
        if kind not in self.kinds:
            self.session.unknown[f"part {kind or 'without a type'}"] += 1
        elif text_at(message, "role") == "user":
            self._user(identity, kind, message, part)
        elif (turn := self.turn) is not None:
            if is_first and text_at(message, "error", "name") == "MessageAbortedError":
                turn.interrupted = True
            if kind == "step-start":
                self._tree = text_at(part, "snapshot")
                self.session.tree = self.session.tree or self._tree
            elif kind == "text":
                turn.answer = whole(text_at(part, "text"))
            elif kind == "tool":
                self._tool(turn, part)

    def _user(self, identity: str, kind: str, message: object, part: object) -> None:
        text = text_at(part, "text")
        if kind == "compaction":
            self.compacted()
            self.turn = None
        elif kind != "text":
            return
        elif at(part, "synthetic") is True or at(part, "ignored") is True:
            self.leave_out(NoTurn.INJECTED)
        elif self.turn is not None and self.turn.id == identity:
            self.turn.prompt = whole(f"{self.turn.prompt}\n{text}")
        else:
            self.begin(identity, text.strip(), _date(at(message, "time", "created")))

    def _tool(self, turn: SessionTurn, part: object) -> None:
        name, state = text_at(part, "tool"), at(part, "state")
        status, error, code = text_at(state, "status"), text_at(state, "error"), at(state, "metadata", "exit")
        call = AgentCall(tool=name, command=text_at(state, "input", "command") if name in ("bash", "shell") else "")
        call.output = whole(text_at(state, "output") or error)
        call.has_ended = status in ("completed", "error")
        call.refused = error.startswith("The user rejected permission")
        call.interrupted = bool(call.command) and ("User aborted the command" in call.output or status == "error")
        call.failed = isinstance(code, int) and code != 0
        turn.interrupted = turn.interrupted or (call.interrupted and not call.refused)
        turn.calls.append(call)
        if name == "skill":
            turn.uses.setdefault(text_at(state, "input", "name"), SkillUse.MODEL)
        elif status == "completed":
            self._file(turn, name, at(state, "input"), at(state, "metadata"))

    def _file(self, turn: SessionTurn, tool: str, arguments: object, metadata: object) -> None:
        path = text_at(arguments, "filePath")
        match tool:
            case "read" if (text := self.files.text(path)) is not None:
                turn.reads[path] = text
            case "edit":
                every = at(arguments, "replaceAll") is True
                old, new = text_at(arguments, "oldString"), text_at(arguments, "newString")
                turn.edits.append(self.files.replaced(path, old, new, every=every))
            case "write":
                turn.edits.append(self.files.written(path, self.files.text(path), text_at(arguments, "content")))
            case "apply_patch" | "patch":
                for file in objects_at(metadata, "files"):
                    name = text_at(file, "filePath") or text_at(file, "path")
                    turn.edits.append(self.files.patched(name, text_at(file, "diff") or text_at(file, "patch")))
            case _:
                pass


def _date(milliseconds: object) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat() if isinstance(milliseconds, int) else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _object(text: object) -> Record | list[object] | None:
    try:
        value = loads(text) if isinstance(text, str) else None
    except DocumentError:
        return None
    return value if isinstance(value, dict | list) else None


class Atif(SessionReader):
    """A trajectory in the Agent Trajectory Interchange Format, versions 1.x: one JSON document, from any agent.

    It names no person and says little of its place: a user's message counts as a prompt, and paths are as in the
    container that the agent worked in.
    """

    agent = SessionAgent.ATIF
    home = "", ""
    mark = b'"ATIF-v'

    @classmethod
    def read(cls, path: Path, original: Original) -> AgentSession:
        document, reader = loads(read_plain(path, most=MOST_LINE, follow=True)), cls.of(path, original)
        session, about = reader.session, at(document, "agent")
        schema = text_at(document, "schema_version")
        if not schema.startswith("ATIF-v1."):
            raise DataError(f"{path.name} has the schema_version '{schema[:40]}'", hint="ATIF-v1.x can be read")
        session.id = text_at(document, "trajectory_id") or text_at(document, "session_id") or session.id
        session.version = f"{text_at(about, 'name')} {text_at(about, 'version')}"
        folders = at(about, "extra", "cwds")
        first = folders[0] if isinstance(folders, list) and folders else text_at(about, "extra", "cwd")
        session.directory = first if isinstance(first, str) and first.startswith("/") else "/"
        reader.leave_out(NoTurn.SUBAGENT, len(objects_at(document, "subagent_trajectories")))
        for step in objects_at(document, "steps"):
            with counting_damage(session):
                reader.take(step)
        return session

    def take(self, record: Record) -> None:
        source, text, turn = text_at(record, "source"), join_texts(at(record, "message")).strip(), self.turn
        if source == "user" and at(record, "is_copied_context") is True:
            self.leave_out(NoTurn.DUPLICATE)
        elif source == "user":
            self.begin(f"{self.session.id}:{at(record, 'step_id')}", text, text_at(record, "timestamp"))
        elif source == "agent" and turn is not None:
            turn.answer = whole(text) or turn.answer
            results = {text_at(row, "source_call_id"): row for row in objects_at(record, "observation", "results")}
            for call in objects_at(record, "tool_calls"):
                self._call(turn, call, results.get(text_at(call, "tool_call_id")))
        elif source not in ("system", "agent"):
            self.session.unknown[f"step of {source or 'no source'}"] += 1

    def _call(self, turn: SessionTurn, record: Record, result: Record | None) -> None:
        arguments = at(record, "arguments")

        def first(*names: str) -> str | None:
            return next((value for name in names if isinstance(value := at(arguments, name), str)), None)

        path, code = first("file_path", "filePath", "path"), at(result, "extra", "exit_code")
        command = first("command", "cmd") if path is None else None
        call = AgentCall(tool=text_at(record, "function_name"), command=command or "", has_ended=result is not None)
        call.output = whole(join_texts(at(result, "content")))
        call.failed = at(result, "extra", "is_error") is True or (isinstance(code, int) and code != 0)
        turn.calls.append(call)
        skill = _READ_SKILL.search(path or command or "")
        if name := first("skill") or (skill["name"] if skill else ""):
            turn.uses.setdefault(name, SkillUse.MODEL)
        if path is None or call.failed or result is None:
            return
        place = str(PurePosixPath(self.session.directory) / path)
        old, new = first("old_string", "old_str", "oldString"), first("new_string", "new_str", "newString")
        if old is not None and new is not None:
            every = True in (at(arguments, "replace_all"), at(arguments, "replaceAll"))
            turn.edits.append(self.files.replaced(place, old, new, every=every))
        elif (content := first("content", "file_text")) is not None:
            turn.edits.append(self.files.written(place, self.files.text(place), content))


_READ_SKILL = re.compile(r"(?P<name>[\w-]+)/SKILL\.md")
READERS: dict[SessionAgent, type[SessionReader]] = {
    reader.agent: reader for reader in (Claude, Codex, OpenCode, Copilot, Atif)
}


def home_of(agent: SessionAgent, environ: Mapping[str, str]) -> Path:
    """Return where ``agent`` keeps what it knows: a folder, or for OpenCode its database."""
    variable, default = READERS[agent].home
    path = Path(environ.get("HOME") or Path.home()) / default
    if agent is SessionAgent.OPENCODE and (data := environ.get("XDG_DATA_HOME")):
        path = Path(data, *path.parts[-2:])
    return Path(environ.get(variable) or path)


@dataclass(slots=True, kw_only=True)
class SessionSearch:
    """Reads sessions one after the other, and counts those of projects that are not allowed."""

    projects: tuple[Path, ...]  # none allows all
    since: float  # seconds since 1970; files that were written before are not opened
    original: Original
    snapshot: TreeReader
    other_projects: set[str] = field(default_factory=set)
    unreadable: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # names of files that hold neither a session nor a trajectory
    left_out: Counter[NoTurn] = field(default_factory=Counter[NoTurn])

    def sessions(self, agent: SessionAgent, home: Path) -> Iterator[AgentSession]:
        """Yield the sessions that ``agent`` keeps at ``home``, those that were written to last at the end."""
        if agent is not SessionAgent.OPENCODE:
            paths = self._of_claude(home) if agent is SessionAgent.CLAUDE else _found(home, READERS[agent].patterns)
            yield from self._files(agent, paths)
        elif home.is_file():
            yield from self._readable(home, OpenCode.sessions(home, self.allows, self.snapshot))

    def at(self, path: Path) -> Iterator[AgentSession]:
        """Yield the sessions in a file or folder, of any agent."""
        if not path.exists():
            raise UsageError(f"there is no file or folder {path}", hint="name an agent, or a file of sessions")
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        databases = [file for file in files if file.suffix in (".db", ".sqlite") and file.name.startswith("opencode")]
        for file in databases:
            yield from self.sessions(SessionAgent.OPENCODE, file)
        readable = [file for file in files if file.name.endswith((".json", ".jsonl", ".jsonl.zst"))]
        by_agent = [(_agent_of(file), file) for file in readable]
        self.foreign += [file.name for agent, file in by_agent if agent is None]
        if not databases and len(self.foreign) == len(by_agent):
            raise NotFoundError(
                f"{path} holds no session of an agent, and no trajectory in ATIF",
                hint="name the file or folder that does: JSON with the schema_version ATIF-v1.x, or JSON lines",
            )
        for agent in SessionAgent:
            yield from self._files(agent, (file for kind, file in by_agent if kind is agent))

    def allows(self, directory: str) -> bool:
        """Say whether a folder is one of the allowed projects, or in one, wherever links and ``..`` in it lead."""
        if not self.projects:
            return True
        try:
            folder = Path(os.path.realpath(directory)) if directory.startswith("/") else None
        except (ValueError, OSError):
            return False
        return folder is not None and any(folder.is_relative_to(project) for project in self.projects)

    def _of_claude(self, home: Path) -> Iterator[Path]:
        """Yield files by the name of their folder, which others may share, so that other projects' are not opened."""
        names = [re.sub(r"[^A-Za-z0-9]", "-", str(project)) for project in self.projects]
        for folder in sorted((home / "projects").glob("*")):
            if not names or any(folder.name == name or folder.name.startswith(f"{name}-") for name in names):
                yield from folder.rglob("*.jsonl")
            else:
                self.other_projects.add(folder.name)

    def _files(self, agent: SessionAgent, paths: Iterator[Path]) -> Iterator[AgentSession]:
        times = dict[Path, float]()
        for path in paths:
            with suppress(OSError):  # the program may remove one meanwhile
                times[path] = path.stat().st_mtime
        for path in sorted(times, key=lambda path: (times[path], path)):
            if times[path] >= self.since:
                yield from self._readable(path, self._read(READERS[agent], path))

    def _read(self, reader: type[SessionReader], path: Path) -> Iterator[AgentSession]:
        """Yield the session in a file, which is opened no further if its first record names another project."""
        directory = reader.directory_of(path) if reader.folder else ""
        if reader.folder and not self.allows(directory):
            self.other_projects.add(directory)
        else:
            yield reader.read(path, self.original)

    def _readable(self, path: Path, sessions: Iterator[AgentSession]) -> Iterator[AgentSession]:
        """Yield allowed sessions until one cannot be read, and name the file then: the others are read all the same."""
        try:
            for session in sessions:
                # a trajectory was made elsewhere, and a person named its file
                if session.agent is SessionAgent.ATIF or self.allows(session.directory):
                    self.left_out += session.left_out
                    yield session
                else:
                    self.other_projects.add(session.directory)
        except SkillgitError as error:
            self.unreadable.append(f"{error.message}; {error.hint}")
        except OSError as error:
            self.unreadable.append(f"{path.name} cannot be read: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - what a decompressor or a damaged file may raise has no end
            self.unreadable.append(f"{path.name} cannot be read: {error}")


def _found(home: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    return (path for pattern in patterns for path in home.glob(pattern))


def _agent_of(path: Path) -> SessionAgent | None:
    """Return whose session a file holds, of JSON lines by its first record; None if it holds none."""
    if path.suffix == ".json":
        with suppress(OSError):
            return SessionAgent.ATIF if Atif.mark in read_plain(path, most=MOST_LINE, follow=True) else None
        return None
    kind = text_at(next(records_of(AgentSession(agent=SessionAgent.CLAUDE, path=path)), None), "type")
    agents = (agent for agent, reader in READERS.items() if kind and reader.first == kind)
    return next(agents, SessionAgent.CLAUDE) if kind else None
