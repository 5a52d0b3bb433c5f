"""Reads the sessions of OpenCode: its database, opened read-only, and the copies of work trees that it keeps in git."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
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
    objects_at,
    text_at,
    whole,
)
from skillgit.domain.untrusted.json_limits import DocumentError, loads
from skillgit.errors import DataError

DATABASE = "opencode.db"
_PARTS = frozenset(
    {
        *("text", "tool", "step-start", "step-finish", "patch", "reasoning", "file", "agent", "subtask"),
        "compaction",
        "retry",
    }
)
_TABLES = frozenset({"session", "message", "part"})
_HINT = "end OpenCode, or copy the file with its -wal"
_SHELL = frozenset({"bash", "shell"})
_REFUSED = "The user rejected permission"
_ABORTED = "User aborted the command"


def sessions(
    path: Path, is_allowed: Callable[[str], bool], snapshot: Callable[[Path, str, str], str | None]
) -> Iterator[AgentSession]:
    """Yield the sessions of the database at ``path`` whose folder is allowed, the others as ones without turns.

    ``snapshot`` has the text of a file in a tree of one of the program's own repositories below a folder.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.execute("PRAGMA query_only = 1")
            database.text_factory = lambda content: content.decode("utf-8", "replace")
            # a view under a table's name runs any query of its author's, perhaps without end
            names = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not names >= _TABLES:
                raise DataError(f"{path} has no tables {', '.join(sorted(_TABLES - names))}", hint=_HINT)
            rows = database.execute(
                "SELECT id, project_id, parent_id, directory, version, permission, revert FROM session "
                "ORDER BY time_created"
            )
            for row in rows.fetchall():
                session = AgentSession(agent=SessionAgent.OPENCODE, path=path, id=str(row[0]), version=str(row[4]))
                session.directory = str(row[3])
                if is_allowed(session.directory):
                    _Reader(session, snapshot, path.parent / "snapshot" / PurePosixPath(str(row[1])).name).read(
                        database, row
                    )
                yield session
    except sqlite3.Error as error:
        raise DataError(f"{path} cannot be read: {error}", hint=_HINT) from error


class _Reader:
    def __init__(self, session: AgentSession, snapshot: Callable[[Path, str, str], str | None], folder: Path) -> None:
        self._session, self._snapshot, self._folder = session, snapshot, folder
        self._tree = ""  # of the work tree at the step that is under way
        self._files = FileStates(self._original)
        session.copies = folder
        self._turn: SessionTurn | None = None

    def _original(self, path: str) -> str | None:
        root = PurePosixPath(self._session.directory)
        if not self._tree or not PurePosixPath(path).is_relative_to(root):
            return None
        return self._snapshot(self._folder, self._tree, str(PurePosixPath(path).relative_to(root)))

    def read(self, database: sqlite3.Connection, row: tuple[object, ...]) -> None:
        session, permission, revert = self._session, _object(row[5]), _object(row[6])
        is_asking = not any(
            rule.get("permission") == "question" and rule.get("action") == "deny"
            for rule in objects_at({"rules": permission}, "rules")
        )
        if row[2] is not None or not is_asking:
            session.left_out[NoTurn.SUBAGENT if row[2] is not None else NoTurn.HEADLESS] += 1
            return
        parts = database.execute(
            "SELECT message.id, message.data, part.data FROM message JOIN part ON part.message_id = message.id "
            "WHERE message.session_id = ? ORDER BY message.time_created, message.id, part.id",
            (session.id,),
        )
        before = ""
        for identity, message, part in parts:
            with counting_damage(session):
                self._take(str(identity), _object(message), _object(part), is_first=identity != before)
            before = identity
        if undone := text_at(revert, "messageID"):
            session.go_back([turn for turn in session.turns if turn.id >= undone], self._files)

    def _take(self, identity: str, message: object, part: object, *, is_first: bool) -> None:
        kind = text_at(part, "type")
        if kind not in _PARTS:
            self._session.unknown[f"part {kind or 'without a type'}"] += 1
        elif text_at(message, "role") == "user":
            self._user(identity, message, part)
        elif self._turn is not None:
            turn = self._turn
            if is_first and text_at(message, "error", "name") == "MessageAbortedError":
                turn.interrupted = True
            if kind == "step-start":
                self._tree = text_at(part, "snapshot")
                self._session.tree = self._session.tree or self._tree
            elif kind == "text":
                turn.answer = whole(text_at(part, "text"))
            elif kind == "tool":
                self._tool(turn, part)

    def _user(self, identity: str, message: object, part: object) -> None:
        session, kind = self._session, text_at(part, "type")
        if kind == "compaction":
            session.compactions += 1
            session.left_out[NoTurn.SUMMARY] += 1
            self._turn = None
        elif kind != "text":
            return
        elif at(part, "synthetic") is True or at(part, "ignored") is True:
            session.left_out[NoTurn.INJECTED] += 1
        elif self._turn is not None and self._turn.id == identity:
            self._turn.prompt = whole(f"{self._turn.prompt}\n{text_at(part, 'text')}")
        else:
            milliseconds = at(message, "time", "created")
            turn = SessionTurn(id=identity, prompt=whole(text_at(part, "text").strip()), date=_date(milliseconds))
            self._turn = session.begin(turn, self._files)

    def _tool(self, turn: SessionTurn, part: object) -> None:
        name, state = text_at(part, "tool"), at(part, "state")
        call = AgentCall(tool=name, command=text_at(state, "input", "command") if name in _SHELL else "")
        call.output = whole(text_at(state, "output") or text_at(state, "error"))
        call.has_ended = text_at(state, "status") in ("completed", "error")
        call.refused = text_at(state, "error").startswith(_REFUSED)
        code = at(state, "metadata", "exit")
        call.interrupted = bool(call.command) and (_ABORTED in call.output or text_at(state, "status") == "error")
        call.failed = isinstance(code, int) and code != 0
        turn.interrupted = turn.interrupted or (call.interrupted and not call.refused)
        turn.calls.append(call)
        if name == "skill":
            turn.uses.setdefault(text_at(state, "input", "name"), SkillUse.MODEL)
        elif text_at(state, "status") == "completed":
            self._file(turn, name, at(state, "input"), at(state, "metadata"))

    def _file(self, turn: SessionTurn, tool: str, arguments: object, metadata: object) -> None:
        path = text_at(arguments, "filePath")
        match tool:
            case "read" if (text := self._files.text(path)) is not None:
                turn.reads[path] = text
            case "edit":
                every = at(arguments, "replaceAll") is True
                old, new = text_at(arguments, "oldString"), text_at(arguments, "newString")
                turn.edits.append(self._files.replaced(path, old, new, every=every))
            case "write":
                turn.edits.append(self._files.written(path, self._files.text(path), text_at(arguments, "content")))
            case "apply_patch" | "patch":
                for file in objects_at(metadata, "files"):
                    name = text_at(file, "filePath") or text_at(file, "path")
                    turn.edits.append(self._files.patched(name, text_at(file, "diff") or text_at(file, "patch")))
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
