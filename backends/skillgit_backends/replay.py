"""The ``replay`` backend: answers with what was recorded, for tests, demonstrations and audits.

Roles, models and parameters stay as they were recorded: `model.target_backend: replay` with the same `model.target`. A
request is found by its model, parameters, messages, tools and schema
(``skillgit.plugin.backend.request_digest``), else without its schema; one that was not recorded is an error that
says what was asked. Where the same request was recorded several times, the
answers come in the order of their recording, and from the first again after the last.

A line of a JSON lines file is ``{"request": DIGEST, "reply": TEXT}``, or in the place of the text an object with the
keys ``text``, ``finish_reason``, ``tool_calls`` (lists of id, name and arguments) and ``usage`` (``tokens_in``,
``tokens_out``, ``cached``, ``cache_written``, ``reasoning``; estimated at four characters a token where there is none).
A relative path refers to the folder of the configuration that it is in, as all paths do. Nothing is written to the
record; what was recorded while it is replayed is not seen.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from skillgit.domain.untrusted.json_limits import read_document
from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import BackendInfo, Reply, Request, Usage, estimated_tokens
from skillgit.plugin.backend_settings import Knob, read_settings
from skillgit.plugin.call_records import read_reply, request_digest
from skillgit.plugin.skill_marks import as_text
from skillgit_backends.backend_settings import FreePrices

_SHOWN = 60
_SETTINGS = {
    "path": Knob(
        default="", meaning="required: a ledger of skillgit (.git/skillgit/ledger.db), or a file of JSON lines"
    )
}


class ReplayBackend:
    info = BackendInfo(
        name="replay",
        summary="Answers from a ledger or a file of recorded replies; what was not recorded is an error.",
        needs_network=False,
        prices=FreePrices(),
        paths={"path": ""},
        settings=_SETTINGS,
        installs_skills=True,
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        values = cast("dict[str, str]", read_settings("replay", _SETTINGS, settings))
        if not values["path"]:
            raise ConfigError("replay has nothing to answer from", hint="set model.replay_path to a ledger.db or JSONL")
        self._path = Path(values["path"]).expanduser()
        if not self._path.is_file():
            hint = "model.replay_path names a ledger.db or a JSONL file"
            raise ConfigError(f"there is no file {self._path} to replay", hint=hint)
        self._record: LedgerRecord | LinesRecord | None = None
        self._asked: Counter[str] = Counter()

    async def complete(self, request: Request) -> Reply:
        """Answer ``request``; a FatalBackendError if it was not recorded, a ConfigError if the record is unusable."""
        if self._record is None:
            self._record = open_record(self._path)
        # What was recorded may have read skills as text, and may be older than schemas.
        requests = (request, replace(request, messages=as_text(request.messages)))
        forms = [form for each in requests for form in (each, replace(each, schema=None))]
        digests = list(dict.fromkeys(map(request_digest, forms)))
        digest = next(filter(self._record.count, digests), digests[0])
        count = self._record.count(digest)
        if count == 0:
            raise self._unknown(request, digest, self._record)
        number = self._asked[digest]
        self._asked[digest] += 1
        return self._record.reply(digest, number % count)

    def folder_problem(self) -> str:
        return ""  # what an agent did is recorded, and no program runs

    async def aclose(self) -> None:
        if self._record is not None:
            self._record.close()
            self._record = None

    def _unknown(self, request: Request, digest: str, record: LedgerRecord | LinesRecord) -> FatalBackendError:
        text = " ".join(request.messages[-1].text.split()) if request.messages else ""
        excerpt = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        without = f"; {record.undated} of its replies were recorded without their requests" if record.undated else ""
        return FatalBackendError(
            f"{self._path} has no reply of {request.model} to request {digest[:12]}, which ends with a message of"
            f" {request.messages[-1].role if request.messages else 'nobody'}: '{excerpt}'{without}",
            hint="a replay needs the same model, parameters, skill, items and prompts as the recording",
        )


_MAGIC = b"SQLite format 3\x00"
_COUNTS = ("tokens_in", "tokens_out", "cached", "cache_written", "reasoning")


def open_record(path: Path) -> LedgerRecord | LinesRecord:
    """Open the record at ``path``; a ConfigError if it is neither a ledger nor a file of JSON lines."""
    try:
        with path.open("rb") as file:
            is_ledger = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    return LedgerRecord(path) if is_ledger else LinesRecord(path)


def _unusable(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path} cannot be replayed: {why}", hint="model.replay_path names a ledger.db or JSON lines")


class LedgerRecord:
    """The replies of a ledger, as it is when it is opened; it may be written meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, list[int]] = {}
        try:
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        except sqlite3.Error as error:
            raise _unusable(path, str(error)) from error
        try:
            columns = {name for _, name, *_ in self._connection.execute("PRAGMA table_info(reply)")}
            self._counts = [name for name in _COUNTS if name in columns]  # an older skillgit counts fewer things
            for request, row in self._connection.execute("SELECT request, rowid FROM reply ORDER BY rowid"):
                self._rows.setdefault(request, []).append(row)
        except sqlite3.Error as error:
            self._connection.close()
            why = "an older skillgit wrote it, without the requests" if "no such column" in str(error) else str(error)
            raise _unusable(path, why) from error
        self.undated = len(self._rows.pop("", ()))  # an older skillgit recorded them without their request

    def count(self, request: str) -> int:
        return len(self._rows.get(request, ()))

    def reply(self, request: str, number: int) -> Reply:
        query = f"SELECT reply, {', '.join(self._counts)} FROM reply WHERE rowid = ?"  # noqa: S608 - names of columns
        try:
            text, *counts = self._connection.execute(query, (self._rows[request][number],)).fetchone()
            return read_reply(read_document(text), Usage(**dict(zip(self._counts, counts, strict=True))))
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise _unusable(self._path, f"reply {number} to {request[:12]} cannot be read: {error}") from error

    def close(self) -> None:
        self._connection.close()


class LinesRecord:
    undated = 0

    def __init__(self, path: Path) -> None:
        self._replies: dict[str, list[Reply]] = {}
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise _unusable(path, str(error)) from error
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                request, reply = _read_line(read_document(line))
            except (TypeError, ValueError) as error:
                raise _unusable(path, f"line {number}: {error}") from error
            self._replies.setdefault(request, []).append(reply)

    def count(self, request: str) -> int:
        return len(self._replies.get(request, ()))

    def reply(self, request: str, number: int) -> Reply:
        return self._replies[request][number]

    def close(self) -> None:
        """Leave the file, which is closed."""


def _read_line(value: object) -> tuple[str, Reply]:
    match value:
        case {"request": str(request), "reply": str(text)}:
            return request, read_reply({"text": text}, _estimate(text))
        case {"request": str(request), "reply": dict(said)}:
            return request, read_reply(said, _usage(said))
    raise ValueError("a line has the keys request and reply")


def _usage(reply: Mapping[str, object]) -> Usage:
    match reply.get("usage"):
        case None:
            return _estimate(str(reply.get("text", "")))
        case dict(counts) if all(type(value) is int for value in counts.values()):
            return Usage(**cast("dict[str, int]", counts))
    raise ValueError(f"usage has the keys {', '.join(_COUNTS)}, all of them numbers")


def _estimate(text: str) -> Usage:
    return Usage(tokens_in=0, tokens_out=estimated_tokens(text))
