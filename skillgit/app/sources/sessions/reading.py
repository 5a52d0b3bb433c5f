"""Where the agents of this machine keep their sessions, and which of them are of the projects that may be read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from skillgit.app.sources.sessions import claude, codex, copilot, opencode
from skillgit.app.sources.sessions.session import AgentSession, NoTurn, SessionAgent, records_of, text_at
from skillgit.errors import SkillgitError, UsageError

_DATABASES = (".db", ".sqlite")


def home_of(agent: SessionAgent, environ: Mapping[str, str]) -> Path:
    """Return where ``agent`` keeps what it knows: a folder, or for OpenCode its database."""
    home = Path(environ.get("HOME") or Path.home())
    match agent:
        case SessionAgent.CLAUDE:
            return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        case SessionAgent.CODEX:
            return Path(environ.get("CODEX_HOME") or home / ".codex")
        case SessionAgent.COPILOT:
            return Path(environ.get("COPILOT_HOME") or home / ".copilot")
        case SessionAgent.OPENCODE:
            data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
            return Path(environ.get("OPENCODE_DB") or data / "opencode" / opencode.DATABASE)
        case _:
            assert_never(agent)


@dataclass(slots=True, kw_only=True)
class SessionSearch:
    """Reads sessions one after the other, and counts those of projects that are not allowed."""

    projects: tuple[Path, ...]  # none allows all
    since: float  # seconds since 1970; files that were written before are not opened
    original: Callable[[AgentSession, str], str | None]
    snapshot: Callable[[Path, str, str], str | None]
    other_projects: set[str] = field(default_factory=set)
    unreadable: list[str] = field(default_factory=list)
    left_out: Counter[NoTurn] = field(default_factory=Counter[NoTurn])

    def sessions(self, agent: SessionAgent, home: Path) -> Iterator[AgentSession]:
        """Yield the sessions that ``agent`` keeps at ``home``, those that were written to last at the end."""
        match agent:
            case SessionAgent.CLAUDE:
                yield from self._files(agent, self._of_claude(home))
            case SessionAgent.CODEX:
                yield from self._files(agent, codex.find(home))
            case SessionAgent.COPILOT:
                yield from self._files(agent, copilot.find(home))
            case SessionAgent.OPENCODE:
                if home.is_file():
                    sessions = opencode.sessions(home, self.allows, self.snapshot)
                    yield from self._kept(self._readable(home, sessions))
            case _:
                assert_never(agent)

    def at(self, path: Path) -> Iterator[AgentSession]:
        """Yield the sessions in a file or folder, whichever agent they are of."""
        if not path.exists():
            raise UsageError(f"there is no file or folder {path}", hint="name an agent, or a file of sessions")
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if file.suffix in _DATABASES and file.name.startswith("opencode"):
                yield from self.sessions(SessionAgent.OPENCODE, file)
        readable = [file for file in files if file.name.endswith((".jsonl", ".jsonl.zst"))]
        by_agent = [(agent, file) for file in readable if (agent := _agent_of(file)) is not None]
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
        """Yield files by the name of their folder, so that other projects' are not opened."""
        names = [claude.encoded(project) for project in self.projects]
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
                yield from self._kept(self._readable(path, self._read(agent, path)))

    def _read(self, agent: SessionAgent, path: Path) -> Iterator[AgentSession]:
        match agent:
            case SessionAgent.CLAUDE:
                yield claude.read(path, self.original)
            case SessionAgent.CODEX:
                yield from self._if_allowed(path, codex.directory_of(path), codex.read)
            case SessionAgent.COPILOT:
                yield from self._if_allowed(path, copilot.directory_of(path), copilot.read)
            case SessionAgent.OPENCODE:
                return
            case _:
                assert_never(agent)

    def _readable(self, path: Path, sessions: Iterator[AgentSession]) -> Iterator[AgentSession]:
        """Yield sessions until one cannot be read, and name the file then: the others are read all the same."""
        try:
            yield from sessions
        except SkillgitError as error:
            self.unreadable.append(f"{error.message}; {error.hint}")
        except OSError as error:
            self.unreadable.append(f"{path.name} cannot be read: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - what a decompressor or a damaged file may raise has no end
            self.unreadable.append(f"{path.name} cannot be read: {error}")

    def _if_allowed(self, path: Path, directory: str, read: Callable[..., AgentSession]) -> Iterator[AgentSession]:
        if self.allows(directory):
            yield read(path, self.original)
        else:
            self.other_projects.add(directory)

    def _kept(self, sessions: Iterator[AgentSession]) -> Iterator[AgentSession]:
        for session in sessions:
            if self.allows(session.directory):
                self.left_out += session.left_out
                yield session
            else:
                self.other_projects.add(session.directory)


def _agent_of(path: Path) -> SessionAgent | None:
    """Return whose session a file of JSON lines holds, by its first record; None if it holds none."""
    probe = AgentSession(agent=SessionAgent.CLAUDE, path=path)
    record = next(records_of(probe), None)
    match text_at(record, "type"):
        case "session_meta":
            return SessionAgent.CODEX
        case "session.start":
            return SessionAgent.COPILOT
        case "":
            return None
        case _:
            return SessionAgent.CLAUDE
