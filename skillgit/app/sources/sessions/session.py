"""A session of a coding agent in one form, for all programs that keep them: what people asked for, and what was done.

A turn is one prompt of a person with all that the agent did until the next one. What no person said has no turn; a
reader counts it under the reason for which it was left out. What a reader does not know it counts as well.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, ClassVar, Self, cast

from skillgit.domain.untrusted.json_limits import DocumentError, loads
from skillgit.errors import UsageError
from skillgit.files import open_plain

Record = dict[str, object]


class SessionAgent(StrEnum):
    """Programs whose sessions are read."""

    CLAUDE = "claude"
    CODEX = "codex"
    OPENCODE = "opencode"
    COPILOT = "copilot"
    ATIF = "atif"  # a format of several, which has no folder of its own


class SkillUse(StrEnum):
    """How a skill came into a turn."""

    MODEL = "model"
    """The model called it, or read its file."""
    USER = "user"
    """The person named it."""
    OFFERED = "offered"
    """It was in the list that the model saw, and was not used."""
    NONE = "none"
    """Nothing says that the model knew of it."""


class NoTurn(StrEnum):
    """Why a prompt, or a whole session, gives no turn."""

    SUBAGENT = "of sub-agents"
    HEADLESS = "of headless runs"
    NOTIFICATION = "in notifications of tasks"
    SUMMARY = "in summaries of compacted sessions"
    SKILL_BODY = "in texts of skills"
    INJECTED = "put in by the program"
    COMMAND = "as commands to the program"
    DUPLICATE = "repeated by a fork"


@dataclass(slots=True, kw_only=True)
class AgentCall:
    tool: str
    command: str = ""  # of a shell; empty for other tools
    output: str = ""
    has_ended: bool = False
    failed: bool = False  # a command that ended with another code than 0
    refused: bool = False  # by the person, before it ran
    interrupted: bool = False

    @property
    def passed(self) -> bool:
        return bool(self.command) and self.has_ended and not (self.failed or self.refused or self.interrupted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    path: str  # absolute
    before: str | None  # None if there was no such file, or its content is unknown
    after: str | None  # None if the file was removed, or its content is unknown
    by_person: bool = False  # the person changed what the agent proposed


@dataclass(slots=True, kw_only=True)
class SessionTurn:
    id: str  # what the program calls the prompt; the same in a fork
    prompt: str
    date: str  # as the program writes it, ISO 8601
    follows: str = ""  # the record that the prompt was an answer to, where the program says so
    is_live: bool = True  # False if the person went back to before it
    uses: dict[str, SkillUse] = field(default_factory=dict)
    calls: list[AgentCall] = field(default_factory=list)
    edits: list[FileEdit] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # absolute path to text, as known when the turn began
    reads: dict[str, str] = field(default_factory=dict)  # files whose whole text the agent read in it
    comments: list[str] = field(default_factory=list)  # what the person said with a permission
    answer: str = ""  # the last text of the agent
    interrupted: bool = False

    @property
    def refused(self) -> bool:
        return any(call.refused for call in self.calls)


@dataclass(slots=True, kw_only=True)
class AgentSession:
    agent: SessionAgent
    path: Path
    id: str = ""
    version: str = ""  # of the program
    directory: str = ""  # where the agent worked
    commit: str = ""  # of the project when the session began, in full or shortened; empty if unknown
    tree: str = ""  # of the work tree when the session began, where the program keeps copies of it
    copies: Path | None = None  # the folder of the repositories that hold such copies
    turns: list[SessionTurn] = field(default_factory=list)
    links: dict[str, None] = field(default_factory=dict)  # ids that a fork of the session shares, in order
    offers: dict[str, str] = field(default_factory=dict)  # skills that the model was offered, with their descriptions
    bodies: dict[str, tuple[str, str]] = field(default_factory=dict)  # skills that were loaded: folder, and text
    compactions: int = 0
    left_out: Counter[NoTurn] = field(default_factory=Counter[NoTurn])
    unknown: Counter[str] = field(default_factory=Counter[str])  # kinds of record that the reader does not know


MOST_TEXT = 256 << 10
"""Characters of a file, an output or a prompt that is kept; a longer file counts as unknown."""
_MOST_KNOWN = 400
"""Files whose text is kept at once."""
_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,\d{1,9})? @@")


class FileStates:
    """What the files of a project hold while a session goes on, as far as its records say."""

    def __init__(self, original: Callable[[str], str | None]) -> None:
        self._original = original  # the text of a file before the session, by its absolute path
        self.known: dict[str, str] = {}

    def learn(self, path: str, text: str | None) -> None:
        if text is None or len(text) > MOST_TEXT or (path not in self.known and len(self.known) >= _MOST_KNOWN):
            self.known.pop(path, None)
        else:
            self.known[path] = text

    def text(self, path: str) -> str | None:
        return self.known[path] if path in self.known else self._original(path)

    def written(self, path: str, before: str | None, after: str | None, *, by_person: bool = False) -> FileEdit:
        """Record an edit whose texts are known."""
        if before is not None:
            self.learn(path, before)
        edit = FileEdit(path=path, before=before, after=after, by_person=by_person)
        self.learn(path, after)
        return edit

    def replaced(self, path: str, old: str, new: str, *, every: bool = False) -> FileEdit:
        before = self.text(path)
        after = before.replace(old, new, -1 if every else 1) if before is not None and old in before else None
        return self.written(path, before, after)

    def patched(self, path: str, diff: str) -> FileEdit:
        before = self.text(path)
        return self.written(path, before, None if before is None else patched(before, diff.splitlines()))


def patched(text: str, diff: Sequence[str]) -> str | None:
    """Return ``text`` changed by the hunks of a unified diff; None if they do not fit it."""
    lines, position = text.split("\n"), -1
    result, end = list[str](), 0  # and how many of the lines are in it, or were taken out
    for line in diff:
        if match := _HUNK.match(line):
            # A hunk of no old lines goes behind the line that it names.
            position = int(match[1]) - (match[2] != "0")
            if end > position >= 0:
                return None
            result += lines[end:position] if position >= 0 else []
            end = max(end, position)
        elif position < 0 or line.startswith("\\"):
            continue
        elif line[:1] == "+":
            result.append(line[1:])
        elif end >= len(lines) or lines[end] != line[1:]:
            return None
        else:
            result += [] if line[:1] == "-" else [line[1:]]
            end += 1
    return "\n".join([*result, *lines[end:]])


Original = Callable[[AgentSession, str], "str | None"]
"""Returns the text of a file before a session, by its absolute path; None if it is not known."""


class SessionReader:
    """Reads the session in a file, record by record; a subclass knows the records of one agent, and where they are."""

    agent: ClassVar[SessionAgent]
    home: ClassVar[tuple[str, str]]  # the variable that names where the agent keeps what it knows, and its place in ~
    patterns: ClassVar[tuple[str, ...]] = ()  # the files of sessions below that place
    folder: ClassVar[tuple[str, ...]] = ()  # where in the first record the session's folder is; empty if in any
    first: ClassVar[str] = ""  # the type of the first record, where only this agent has it
    noise: ClassVar[tuple[bytes, ...]] = ()  # the beginnings of lines that say nothing

    def __init__(self, path: Path, original: Original, name: str) -> None:
        self.session = AgentSession(agent=self.agent, path=path, id=name)
        self.original = original
        self.files = FileStates(self.text_before)
        self.turn: SessionTurn | None = None  # None where no person leads
        self.calls: dict[str, tuple[AgentCall, object]] = {}  # those under way, each with its arguments
        self.is_over = False  # whether what follows says nothing

    @classmethod
    def of(cls, path: Path, original: Original) -> Self:
        return cls(path, original, path.stem)

    @classmethod
    def read(cls, path: Path, original: Original) -> AgentSession:
        """Return the session in the file at ``path``."""
        reader = cls.of(path, original)
        for record in records_of(reader.session, cls.noise):
            with counting_damage(reader.session):
                reader.take(record)
            if reader.is_over:
                break
        reader.end()
        return reader.session

    @classmethod
    def directory_of(cls, path: Path) -> str:
        """Return where the agent worked, from the first record of a session."""
        probe = AgentSession(agent=cls.agent, path=path)
        return text_at(next(records_of(probe, cls.noise), None), *cls.folder)

    def take(self, record: Record) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Put in order what only the whole session shows."""

    def text_before(self, path: str) -> str | None:
        return self.original(self.session, path)

    def begin(self, identity: str, prompt: str, date: str) -> SessionTurn:
        """Add the turn of a prompt, which begins with the files as they are known now."""
        turn = SessionTurn(id=identity, prompt=whole(prompt), date=date, files=dict(self.files.known))
        self.session.links[identity] = None
        self.session.turns.append(turn)
        self.turn = turn
        return turn

    def go_back(self, turns: Sequence[SessionTurn]) -> None:
        """Throw ``turns`` away: the person went back to before them, and maybe the files did as well."""
        for turn in turns:
            turn.is_live = False
            for edit in turn.edits:
                self.files.learn(edit.path, None)

    def leave_out(self, reason: NoTurn, number: int = 1) -> None:
        self.session.left_out[reason] += number

    def compacted(self) -> None:
        self.session.compactions += 1
        self.leave_out(NoTurn.SUMMARY)


MOST_LINE = 24 << 20
"""Bytes of a record; a longer one is counted and skipped. Pasted pictures make the longest."""


def records_of(session: AgentSession, skip: tuple[bytes, ...] = ()) -> Iterator[Record]:
    """Yield the records of a file of JSON lines, also of one that zstd compressed, without those that begin so."""
    with os.fdopen(open_plain(session.path, follow=True), "rb") as file:
        stream = _decompressed(file, session.path) if session.path.suffix == ".zst" else file
        is_rest = False  # of a line that is too long
        while line := stream.readline(MOST_LINE):
            is_whole = line.endswith(b"\n") or len(line) < MOST_LINE
            if is_rest or not is_whole:
                session.unknown["too long"] += is_whole
                is_rest = not is_whole
            elif line.strip() and not line.startswith(skip):
                try:
                    record = loads(line)
                except DocumentError:
                    record = None
                if isinstance(record, dict):
                    yield record
                else:
                    session.unknown["no JSON object"] += 1


def _decompressed(file: IO[bytes], path: Path) -> IO[bytes]:
    try:
        import zstandard  # noqa: PLC0415 - optional
    except ImportError as error:
        hint = "pip install zstandard, or decompress it: unzstd FILE"
        raise UsageError(f"{path.name} is compressed with zstd, which this Python cannot read", hint=hint) from error
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))


@contextmanager
def counting_damage(session: AgentSession) -> Iterator[None]:
    """Count a record that a reader stumbles over as an unknown one, so that the rest is read."""
    try:
        yield
    except (ValueError, TypeError, LookupError, ArithmeticError, OSError, RecursionError):
        session.unknown["a damaged record"] += 1


def whole(text: str) -> str:
    """Return ``text``, or as much of a long one as ends with a line or a word: half a secret looks like none."""
    if len(text) <= MOST_TEXT:
        return text
    end = max(text.rfind("\n", 0, MOST_TEXT), text.rfind(" ", 0, MOST_TEXT))
    return text[: max(end, 0)]


def at(value: object, *keys: str) -> object:
    """Return what is below ``keys`` in nested objects; None if a level is missing."""
    for key in keys:
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, dict) else None
    return value


def text_at(value: object, *keys: str) -> str:
    result = at(value, *keys)
    return result if isinstance(result, str) else ""


def objects_at(value: object, *keys: str) -> list[Record]:
    result = at(value, *keys)
    return [cast("Record", entry) for entry in result if isinstance(entry, dict)] if isinstance(result, list) else []


def join_texts(content: object) -> str:
    """Return the text of a message, whether its content is one text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = objects_at({"content": content}, "content")
    return "\n".join(filter(None, (text_at(part, "text") for part in parts)))
