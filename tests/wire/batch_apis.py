"""The batch APIs of OpenAI (files, batches) and Anthropic (message batches), over the dialects of single questions."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from wire.dialects import DIALECTS, Answer, HttpRequest, WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIALECTS = {dialect.wire.path: dialect for dialect in DIALECTS}
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_HEADERS = {"authorization": "Bearer x", "anthropic-version": "2023-06-01"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How batches fare.

    Attributes:
        looks: How often the state of a batch is asked for before it is over.
        stuck: The number of the batch that is never over, counted from 1; 0 for none.
        expired: A pattern of the questions that a batch leaves unanswered.
        errored: A pattern of the questions that end in an error of the server.
        failed: Why batches are refused as a whole; empty if they are not.
        lost: How many creations of a batch are carried out, and their answers lost.
        busy: How many creations are refused with 429.
    """

    looks: int = 1
    stuck: int = 0
    expired: str = ""
    errored: str = ""
    failed: str = ""
    lost: int = 0
    busy: int = 0


@dataclass(slots=True, kw_only=True)
class _Batch:
    id: str
    lines: list[Mapping[str, Any]]
    results: list[Mapping[str, Any]] = field(default_factory=list)
    metadata: Mapping[str, str] = field(default_factory=dict)
    looks: int = 0
    created: float = field(default_factory=time.time)


class LostError(Exception):
    """The request was carried out, and its answer is lost."""


class BatchApis:
    """Files and batches; ``ask`` answers one question and logs it as one of a batch."""

    def __init__(self, ask: Callable[[Any, HttpRequest], Answer]) -> None:
        self.settings = BatchSettings()
        self.calls = {"lost": 0, "busy": 0}
        self._ask = ask
        self._files: dict[str, str] = {}
        self._batches: list[_Batch] = []

    def answer(self, request: HttpRequest) -> Answer | None:
        """Answer a request; None if it is none of these APIs."""
        path = request.path.strip("/").split("/")
        return self._answer_openai(request, path) or self._answer_anthropic(request, path)

    def _answer_openai(self, request: HttpRequest, path: list[str]) -> Answer | None:
        match request.method, path:
            case "POST", ["v1", "files"]:
                file = self._add(_upload(str(request.document["body"])))
                return Answer(document={"id": file, "object": "file", "purpose": "batch"})
            case "GET", ["v1", "files", file, "content"]:
                return Answer(document=RawBody(self._files[file].encode()))
            case "POST", ["v1", "batches"]:
                return self._create_openai(request)
            case "GET", ["v1", "batches"]:
                data = [self._openai(batch) for batch in reversed(self._batches)]
                return Answer(document={"object": "list", "data": data, "has_more": False})
            case "GET", ["v1", "batches", batch]:
                return Answer(document=self._openai(self._looked_at(batch)))
        return None

    def _answer_anthropic(self, request: HttpRequest, path: list[str]) -> Answer | None:
        match request.method, path:
            case "POST", ["v1", "messages", "batches"]:
                lines = [
                    {"custom_id": entry["custom_id"], "url": "/v1/messages", "body": entry["params"]}
                    for entry in request.document["requests"]  # type: ignore[attr-defined]
                ]
                return Answer(document=_anthropic(self._create(lines, {})))
            case "GET", ["v1", "messages", "batches"]:
                data = [_anthropic(batch, is_over=self._is_over(batch)) for batch in reversed(self._batches)]
                return Answer(document={"data": data, "has_more": False, "first_id": None, "last_id": None})
            case "GET", ["v1", "messages", "batches", batch]:
                found = self._looked_at(batch)
                return Answer(document=_anthropic(found, is_over=self._is_over(found)))
            case "GET", ["v1", "messages", "batches", batch, "results"]:
                [found] = [each for each in self._batches if each.id == batch]
                rows = [{"custom_id": row["custom_id"], "result": _anthropic_result(row)} for row in found.results]
                return Answer(document=RawBody(_lines(reversed(rows)).encode()))
        return None

    def _create_openai(self, request: HttpRequest) -> Answer:
        document: Mapping[str, Any] = request.document
        lines = [json.loads(line) for line in self._files[document["input_file_id"]].splitlines()]
        assert {line["url"] for line in lines} == {document["endpoint"]}, "a batch has one endpoint"
        assert len({line["body"]["model"] for line in lines}) == 1, "a batch has one model"
        return Answer(document=self._openai(self._create(lines, document.get("metadata") or {})))

    def _create(self, lines: list[Mapping[str, Any]], metadata: Mapping[str, str]) -> _Batch:
        assert lines
        assert all(_CUSTOM_ID.fullmatch(line["custom_id"]) for line in lines)
        assert len({line["custom_id"] for line in lines}) == len(lines)
        if self._counts("busy"):
            raise WireError(429, "rate_limit", "too many batches")
        batch = _Batch(id=f"batch_{len(self._batches) + 1}", lines=lines, metadata=metadata)
        self._batches.append(batch)
        if not self.settings.failed:
            batch.results = [self._result(line) for line in lines]
        if self._counts("lost"):
            raise LostError
        return batch

    def _counts(self, name: str) -> bool:
        self.calls[name] += 1
        return self.calls[name] <= getattr(self.settings, name)

    def _result(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        body, row = line["body"], {"custom_id": line["custom_id"]}
        assert not body.get("stream"), "a batch has no streams"
        for kind in ("expired", "errored"):
            pattern = getattr(self.settings, kind)
            if pattern and re.search(pattern, json.dumps(body)):
                return row | {"kind": kind}
        request = HttpRequest(method="POST", path=line["url"], query="", headers=_HEADERS, document=body)
        return row | {"kind": "succeeded", "body": self._ask(_DIALECTS[line["url"]], request).document}

    def _looked_at(self, name: str) -> _Batch:
        [batch] = [each for each in self._batches if each.id == name]
        batch.looks += 1
        return batch

    def _is_over(self, batch: _Batch) -> bool:
        is_stuck = batch.id == f"batch_{self.settings.stuck}"
        return batch.looks >= self.settings.looks and not is_stuck

    def _openai(self, batch: _Batch) -> Mapping[str, Any]:
        document = {"id": batch.id, "object": "batch", "metadata": batch.metadata, "created_at": int(batch.created)}
        if self.settings.failed:
            return document | {"status": "failed", "errors": {"data": [{"message": self.settings.failed}]}}
        if not self._is_over(batch):
            return document | {"status": "in_progress", "request_counts": {"completed": 0, "total": len(batch.lines)}}
        good, bad = (
            [_openai_line(row) for row in batch.results if (row["kind"] == "succeeded") is kind]
            for kind in (True, False)
        )
        files = {
            name: self._add(_lines(rows)) for name, rows in (("output_file_id", good), ("error_file_id", bad)) if rows
        }
        counts = {"completed": len(good), "failed": len(bad), "total": len(batch.lines)}
        return (
            document | {"status": "expired" if self.settings.expired else "completed", "request_counts": counts} | files
        )

    def _add(self, content: str) -> str:
        name = f"file-{len(self._files)}"
        self._files[name] = content
        return name


class RawBody(bytes):
    """A body that is not one document of JSON."""

    __slots__ = ()


def _upload(body: str) -> str:
    [part] = [part for part in re.split(r"--[-\w]+(?:--)?\r\n", body) if 'name="file"' in part]
    return part.partition("\r\n\r\n")[2].strip()


def _lines(rows: Any) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _openai_line(row: Mapping[str, Any]) -> Mapping[str, Any]:
    line = {"id": "batch_req_1", "custom_id": row["custom_id"], "response": None, "error": None}
    if row["kind"] == "expired":
        return line | {"error": {"code": "batch_expired", "message": "This request could not be executed in time."}}
    body = row.get("body") or {"error": {"message": "The server had an error", "type": "server_error"}}
    status = 200 if row["kind"] == "succeeded" else 500
    return line | {"response": {"status_code": status, "request_id": "req_1", "body": body}}


def _anthropic(batch: _Batch, *, is_over: bool = False) -> Mapping[str, Any]:
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    for row in batch.results:
        counts[row["kind"] if is_over else "processing"] += 1
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if is_over else "in_progress",
        "request_counts": counts,
        "created_at": datetime.fromtimestamp(batch.created, UTC).isoformat(),
        "expires_at": datetime.fromtimestamp(batch.created + 86400, UTC).isoformat(),
        "results_url": "https://elsewhere.invalid/results",
    }


def _anthropic_result(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if row["kind"] == "succeeded":
        return {"type": "succeeded", "message": row["body"]}
    error = {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}
    return {"type": row["kind"]} | ({"error": error} if row["kind"] == "errored" else {})
