"""Reads the sessions of Claude Code: ``projects/<folder>/<session>.jsonl`` below its configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from skillgit.app.sources.sessions.session import (
    MOST_TEXT,
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
    patched,
    records_of,
    text_at,
    whole,
)
from skillgit.files import read_plain

# Requests as they were sent: most of a file, and a second copy of everything in it.
_SKIPPED = (b'{"type":"api-request', b'{"type":"file-history-snapshot"')
_KNOWN = frozenset(
    {
        *(
            "user",
            "assistant",
            "attachment",
            "system",
            "summary",
            "file-history-delta",
            "queue-operation",
            "last-prompt",
        ),
        *(
            "mode",
            "permission-mode",
            "tools-used",
            "atis-latch",
            "cost-state",
            "ai-title",
            "custom-title",
            "agent-name",
        ),
        *("file-history-snapshot", "api-request", "api-request-blob", "api-request-shape"),
    }
)
_INTERACTIVE = frozenset({"", "cli", "claude-vscode", "claude-desktop"})
_COMMAND = re.compile(r"<command-name>/?(?P<name>[^<]*)</command-name>")
_WRAPPED = ("<local-command-", "<bash-", "<task-notification>", "<system-reminder>", "<user-memory-input>", "Caveat: ")
_INTERRUPTION = "[Request interrupted by user"
_BODY = "Base directory for this skill: "
_LISTED = re.compile(r"^- (?P<name>[^\s:]+(?::[^\s:]+)?): (?P<text>.*)$", re.MULTILINE)
_RECENT = re.compile(r"Recent commits:\n(?P<commit>[0-9a-f]{7,40}) ")


def encoded(directory: Path) -> str:
    """Return the name that the program gives to the folder with the sessions in ``directory``; others may share it."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(directory))


def read(path: Path, original: Callable[[AgentSession, str], str | None]) -> AgentSession:
    """Return the session in the file at ``path``; ``original`` has the text of a file before it."""
    session = AgentSession(agent=SessionAgent.CLAUDE, path=path, id=path.stem)
    return _Reader(session, original).read()


class _Reader:
    def __init__(self, session: AgentSession, original: Callable[[AgentSession, str], str | None]) -> None:
        self._session = session
        self._files = FileStates(lambda path: self._backup(path) or original(session, path))
        self._backups: dict[str, str] = {}  # absolute path to the name of the file's first backup
        self._parents: dict[str, str] = {}
        self._leaf = ""  # the last record of the conversation
        self._turn: SessionTurn | None = None  # None where no person leads
        self._calls: dict[str, tuple[AgentCall, Record]] = {}
        self._commands: set[str] = set()  # turns that began with a slash and have no answer yet

    def read(self) -> AgentSession:
        if self._session.path.parent.name == "subagents" or self._session.path.name.startswith("agent-"):
            self._session.left_out[NoTurn.SUBAGENT] += 1
            record = next(records_of(self._session, _SKIPPED), None)
            self._session.directory = text_at(record, "cwd")
            return self._session
        session = self._session
        for record in records_of(session, _SKIPPED):
            with counting_damage(session):
                self._take(record)
        session.left_out[NoTurn.COMMAND] += len(self._commands)
        session.turns = [turn for turn in session.turns if turn.id not in self._commands]
        live = self._live()
        for turn in session.turns:
            turn.is_live = turn.id in live
        return session

    def _live(self) -> set[str]:
        live, identity = set[str](), self._leaf
        while identity and identity not in live:
            live.add(identity)
            identity = self._parents.get(identity, "")
        return live

    def _take(self, record: Record) -> None:
        kind, session = text_at(record, "type"), self._session
        if kind not in _KNOWN:
            session.unknown[kind or "no type"] += 1
            return
        session.version = text_at(record, "version") or session.version
        session.directory = session.directory or text_at(record, "cwd")
        if identity := text_at(record, "uuid"):
            self._parents[identity] = text_at(record, "parentUuid") or text_at(record, "logicalParentUuid")
        if record.get("isSidechain") is True:
            session.left_out[NoTurn.SUBAGENT] += record.get("parentUuid") is None
            return
        if kind in ("user", "assistant"):
            self._leaf = identity or self._leaf
        match kind:
            case "user":
                self._user(record)
            case "assistant":
                self._assistant(record)
            case "attachment":
                self._attachment(record)
            case "system" if text_at(record, "subtype") == "compact_boundary":
                session.compactions += 1
                session.links |= dict.fromkeys(filter(None, (identity, text_at(record, "logicalParentUuid"))))
            case "file-history-delta":
                folder = text_at(record, "backup", "realParentDir") or session.directory
                path = str(Path(folder) / PurePosixPath(text_at(record, "trackingPath")).name)
                self._backups.setdefault(path, text_at(record, "backup", "backupFileName"))

    def _user(self, record: Record) -> None:
        parts = objects_at(record, "message", "content")
        results = [part for part in parts if part.get("type") == "tool_result"]
        text = _without_reminders(join_texts(at(record, "message", "content"))).strip()
        for part in results:
            self._result(record, part)
        if text.startswith(_INTERRUPTION):
            if self._turn is not None and not (self._turn.calls and self._turn.calls[-1].refused):
                self._turn.interrupted = True
            return
        if results:
            if text and self._turn is not None and not text.startswith("<"):
                self._turn.comments.append(text)
            return
        if (reason := self._no_person(record, text)) is None:
            self._begin(record, text)
            return
        self._session.left_out[reason] += 1
        if reason is NoTurn.SKILL_BODY and text.startswith(_BODY):
            folder, _, body = text.removeprefix(_BODY).partition("\n")
            self._session.bodies[PurePosixPath(folder).name] = (folder, body.strip())
            if self._turn is not None and self._turn.id in self._commands:
                self._commands.discard(self._turn.id)
        elif reason is NoTurn.HEADLESS:
            self._turn = None

    def _no_person(self, record: Record, text: str) -> NoTurn | None:
        """Return why a record of role user is no prompt of a person; None if it is one."""
        entry, origin = text_at(record, "entrypoint"), text_at(record, "origin", "kind")
        if record.get("isCompactSummary") is True:
            self._session.links[text_at(record, "uuid")] = None
            return NoTurn.SUMMARY
        if origin == "task-notification" or text.startswith("<task-notification>"):
            return NoTurn.NOTIFICATION
        if record.get("isMeta") is True:
            is_body = text.startswith(_BODY) or record.get("turnCompanion") is True
            return NoTurn.SKILL_BODY if is_body else NoTurn.INJECTED
        if (
            text_at(record, "turnOrigin") == "sdk"
            or text_at(record, "promptSource") == "sdk"
            or entry.startswith("sdk")
        ):
            return NoTurn.HEADLESS
        if origin and origin != "human":
            return NoTurn.INJECTED
        if not origin and entry not in _INTERACTIVE:
            return NoTurn.HEADLESS
        if text.startswith(_WRAPPED) or not text:
            return NoTurn.COMMAND if text.startswith(("<local-command-", "<bash-")) else NoTurn.INJECTED
        return None

    def _begin(self, record: Record, text: str) -> None:
        identity = text_at(record, "uuid")
        turn = SessionTurn(id=identity, prompt=whole(text), date=text_at(record, "timestamp"))
        if match := _COMMAND.search(text):
            # to the last end, for the person may have written one; a pattern would search anew at every beginning
            arguments = text.partition("<command-args>")[2].rpartition("</command-args>")[0]
            turn.prompt = whole(arguments.strip()) or f"/{match['name']}"
            turn.uses[match["name"]] = SkillUse.USER
            self._commands.add(identity)
        turn.follows = self._parents.get(identity, "")
        ends = [at for at, before in enumerate(self._session.turns) if before.follows == turn.follows and turn.follows]
        if ends:
            self._session.go_back(self._session.turns[ends[-1] :], self._files)
        self._turn = self._session.begin(turn, self._files)

    def _assistant(self, record: Record) -> None:
        turn = self._turn
        if turn is None:
            return
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
                self._calls[text_at(part, "id")] = (call, part)

    def _result(self, record: Record, part: Record) -> None:
        call, use = self._calls.pop(text_at(part, "tool_use_id"), (None, None))
        turn, result = self._turn, record.get("toolUseResult")
        if call is None or turn is None:
            return
        call.output = whole(join_texts(part.get("content")))
        call.failed = part.get("is_error") is True and call.output.startswith("Exit code ")
        # What the program itself refused to run has an error and no code; what it left running has neither.
        call.has_ended = call.failed or (part.get("is_error") is not True and not text_at(result, "backgroundTaskId"))
        if result == "User rejected tool use":
            is_stop = "toolDenialKind" in record and record.get("toolDenialBeforeRun") is not True
            call.interrupted, call.refused = is_stop, not is_stop
        elif part.get("is_error") is True:
            return
        elif call.tool == "Skill":
            turn.uses.setdefault(text_at(use, "input", "skill").removeprefix("/"), SkillUse.MODEL)
        elif path := text_at(result, "filePath"):
            self._edited(turn, path, result)
        elif path := text_at(result, "file", "filePath"):
            file = at(result, "file")
            if at(file, "startLine") == 1 and at(file, "numLines") == at(file, "totalLines"):
                turn.reads[path] = text_at(file, "content")
                self._files.learn(path, turn.reads[path])

    def _edited(self, turn: SessionTurn, path: str, result: object) -> None:
        before = at(result, "originalFile")
        text = before if isinstance(before, str) else None if at(result, "type") == "create" else self._files.text(path)
        after = at(result, "content")
        if not isinstance(after, str) and text is not None:
            hunks = objects_at(result, "structuredPatch")
            lines = [line for hunk in hunks for line in (_header(hunk), *map(str, _lines(hunk)))]
            after = patched(text, lines)
        by_person = at(result, "userModified") is True
        after = after if isinstance(after, str) else None
        turn.edits.append(self._files.written(path, text, after, by_person=by_person))

    def _attachment(self, record: Record) -> None:
        match text_at(record, "attachment", "type"):
            case "skill_listing":
                for match in _LISTED.finditer(text_at(record, "attachment", "content")):
                    self._session.offers[match["name"]] = whole(match["text"])
            case "session_context":
                recent = _RECENT.search(text_at(record, "attachment", "context", "gitStatus"))
                if recent and not self._session.commit:
                    self._session.commit = recent["commit"]
            case _:
                pass

    def _backup(self, path: str) -> str | None:
        """Return what a file held before its first edit, from the copy that the program made of it."""
        name, session = self._backups.get(path, ""), self._session
        if not re.fullmatch(r"[0-9a-f]+@v\d+", name) or len(session.path.parents) < 3:  # noqa: PLR2004 - see the module
            return None
        try:
            file = session.path.parents[2] / "file-history" / session.id / name
            return read_plain(file, most=MOST_TEXT).decode()
        except (OSError, UnicodeDecodeError):
            return None


def _without_reminders(text: str) -> str:
    """Leave out what the program put in; without a pattern, which would look for the end anew at every beginning."""
    parts, position, end = list[str](), 0, "</system-reminder>"
    while (start := text.find("<system-reminder>", position)) >= 0 and (stop := text.find(end, start)) >= 0:
        parts.append(text[position:start] if not parts else text[position:start].lstrip())
        position = stop + len(end)
    return "".join([*parts, text[position:].lstrip() if parts else text])


def _header(hunk: Record) -> str:
    return f"@@ -{hunk.get('oldStart')},{hunk.get('oldLines')} +{hunk.get('newStart')},{hunk.get('newLines')} @@"


def _lines(hunk: Record) -> list[object]:
    lines = hunk.get("lines")
    return lines if isinstance(lines, list) else []
