"""Batches of OpenAI's protocol: a file of requests goes up, and within a day files of answers and errors come down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote, urlencode

from skillgit.errors import BackendError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import BatchState, Reply, Request
from skillgit.wire import CHAT, RESPONSES
from skillgit.wire.json_values import Fields, entries_at, fields_at, text_at, value_at
from skillgit_backends.backend_settings import Endpoint
from skillgit_backends.openai_wire import OpenAIWireBackend
from skillgit_backends.provider_failures import clean

_MARK = "skillgit"
_OVER = frozenset({"completed", "expired", "cancelled", "failed"})
_PAGE = 100
_OK = 200


class BatchingBackend(OpenAIWireBackend):
    """Talks to a server that has OpenAI's batches too."""

    async def send_batch(self, mark: str, requests: Mapping[str, Request]) -> str:
        endpoint = self._endpoint()
        if endpoint.azure:
            hint = "leave out model.target_batch and the like"
            raise FatalBackendError("batches of Azure need deployments of a kind of their own", hint=hint)
        path, lines = self._lines(requests, endpoint)
        files = self._connection.client(endpoint).files.with_raw_response
        upload = files.create(file=("batch.jsonl", "\n".join(lines).encode()), purpose="batch")
        file = text_at(self._document(await self._connection.send(upload, endpoint)), "id")
        body = {"completion_window": "24h", "endpoint": path, "input_file_id": file, "metadata": {_MARK: mark}}
        batch = text_at(self._document(await self._connection.post(endpoint, "/batches", body)), "id")
        if not batch:
            raise CHAT.not_an_answer(self.variant.name, "names no batch")
        return batch

    async def find_batches(self, mark: str, count: int, since: float) -> Sequence[str]:
        del count
        endpoint, after = self._endpoint(), ""
        while True:
            query = urlencode({"limit": _PAGE, **({"after": after} if after else {})})
            document = self._document(await self._connection.get(endpoint, f"/batches?{query}"))
            batches = entries_at(document, "data")
            for batch in batches:
                if text_at(batch, "metadata", _MARK) == mark and batch.get("status") != "failed":
                    return [text_at(batch, "id")]
            last = batches[-1] if batches else {}
            after, moment = text_at(last, "id"), last.get("created_at")
            is_older = isinstance(moment, int | float) and moment < since
            if not document.get("has_more") or not after or is_older:
                return []

    async def batch_state(self, batch: str) -> BatchState:
        endpoint, document = self._endpoint(), await self._batch(batch)
        status, answers = text_at(document, "status"), value_at(document, "request_counts", "completed")
        words = "; ".join(text_at(error, "message") for error in entries_at(document, "errors", "data")) or status
        return BatchState(
            is_over=status in _OVER,
            answers=answers if isinstance(answers, int) else 0,
            fault=clean(words, endpoint) if status == "failed" else "",
        )

    async def batch_results(self, batch: str, requests: Mapping[str, Request]) -> Mapping[str, Reply | BackendError]:
        endpoint, document = self._endpoint(), await self._batch(batch)
        results: dict[str, Reply | BackendError] = {}
        for kind in ("output_file_id", "error_file_id"):
            if file := text_at(document, kind):
                content = await self._connection.get(endpoint, f"/files/{quote(file, safe='')}/content")
                for line in filter(bytes.strip, content.splitlines()):
                    entry = self._document(line)
                    if (key := text_at(entry, "custom_id")) in requests:
                        results[key] = self._result(entry, requests[key], endpoint)
        return results

    async def _batch(self, batch: str) -> Fields:
        return self._document(await self._connection.get(self._endpoint(), f"/batches/{quote(batch, safe='')}"))

    def _document(self, body: bytes) -> Fields:
        return CHAT.read_body(body, self.variant.name)

    def _lines(self, requests: Mapping[str, Request], endpoint: Endpoint) -> tuple[str, list[str]]:
        """Return the one endpoint that all of a batch goes to, and a line for each request."""
        adapted_requests = {
            key: self._adapted(self._refusals.without(endpoint.url, request), endpoint)
            for key, request in requests.items()
        }
        is_responses = any(self._format(request, endpoint) is RESPONSES for request in adapted_requests.values())
        wire = RESPONSES if is_responses else CHAT

        def lines() -> Iterator[str]:
            for key, request in adapted_requests.items():
                body = self._body(wire, request, self._limit_name(request, endpoint))
                line = {"custom_id": key, "method": "POST", "url": wire.path, "body": body}
                yield json.dumps(line, ensure_ascii=False, separators=(",", ":"))

        return wire.path, list(lines())

    def _result(self, entry: Fields, request: Request, endpoint: Endpoint) -> Reply | BackendError:
        document = fields_at(entry, "response", "body")
        if value_at(entry, "response", "status_code") != _OK:
            return RetryableBackendError(f"{self.variant.name}: a batch ended without an answer to this", hint="")
        wire = RESPONSES if "output" in document else CHAT
        try:
            return self._read(wire, document, self._adapted(request, endpoint), endpoint)
        except BackendError as error:
            return error
