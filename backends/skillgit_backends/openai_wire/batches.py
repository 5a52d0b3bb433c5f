"""Batches of OpenAI's protocol: a file of requests goes up, and within a day files of answers and errors come down."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, cast

from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import BackendError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import BatchState, Reply, Request
from skillgit_backends.openai_wire import OpenAIWireBackend, dialects
from skillgit_backends.openai_wire.dialects import mappings, not_an_answer, text_of
from skillgit_backends.openai_wire.endpoint import Endpoint, clean
from skillgit_backends.provider_messages import mapping

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
        client = self._connection.client(endpoint)
        path, lines = self._lines(requests, endpoint)
        upload = client.files.with_raw_response.create(file=("batch.jsonl", "\n".join(lines).encode()), purpose="batch")
        file = text_of((await self._read(upload, endpoint)).get("id"))
        creation = client.batches.with_raw_response.create(
            completion_window="24h", endpoint=cast("Any", path), input_file_id=file, metadata={_MARK: mark}
        )
        batch = text_of((await self._read(creation, endpoint)).get("id"))
        if not batch:
            raise not_an_answer(self.variant.name, "names no batch")
        return batch

    async def find_batches(self, mark: str, count: int, since: float) -> Sequence[str]:
        del count
        endpoint, after = self._endpoint(), ""
        while True:
            client = self._connection.client(endpoint)
            query = {"after": after} if after else {}
            page = client.batches.with_raw_response.list(limit=_PAGE, extra_query=query)
            document = await self._read(page, endpoint)
            batches = mappings(document.get("data"))
            for batch in batches:
                if mapping(batch.get("metadata")).get(_MARK) == mark and batch.get("status") != "failed":
                    return [text_of(batch.get("id"))]
            last = batches[-1] if batches else {}
            after, moment = text_of(last.get("id")), last.get("created_at")
            is_older = isinstance(moment, int | float) and moment < since
            if not document.get("has_more") or not after or is_older:
                return []

    async def batch_state(self, batch: str) -> BatchState:
        document, status = await self._batch(batch)
        answers = mapping(document.get("request_counts")).get("completed")
        errors = mappings(mapping(document.get("errors")).get("data"))
        words = "; ".join(text_of(error.get("message")) for error in errors) or status
        return BatchState(
            is_over=status in _OVER,
            answers=answers if isinstance(answers, int) else 0,
            fault=clean(words, self._endpoint()) if status == "failed" else "",
        )

    async def batch_results(self, batch: str, requests: Mapping[str, Request]) -> Mapping[str, Reply | BackendError]:
        endpoint, (document, _) = self._endpoint(), await self._batch(batch)
        results: dict[str, Reply | BackendError] = {}
        for name in ("output_file_id", "error_file_id"):
            if not (file := text_of(document.get(name))):
                continue
            content = self._connection.client(endpoint).files.with_raw_response.content(file)
            for line in (await self._sent(content, endpoint)).splitlines():
                entry = self._entry(line)
                if (key := text_of(entry.get("custom_id"))) in requests:
                    results[key] = self._result(entry, requests[key], endpoint)
        return results

    async def _batch(self, batch: str) -> tuple[Mapping[str, object], str]:
        endpoint = self._endpoint()
        call = self._connection.client(endpoint).batches.with_raw_response.retrieve(batch)
        document = await self._read(call, endpoint)
        return document, text_of(document.get("status"))

    async def _read(self, call: Awaitable[Any], endpoint: Endpoint) -> Mapping[str, object]:
        try:
            document = read_document(await self._sent(call, endpoint))
        except DocumentError as error:
            raise not_an_answer(self.variant.name, str(error)) from None
        return mapping(document)

    def _lines(self, requests: Mapping[str, Request], endpoint: Endpoint) -> tuple[str, list[str]]:
        """Return the one endpoint that all of a batch goes to, and a line for each request."""
        adapted_requests = {
            key: self._adapted(self._refusals.without(endpoint.url, request), endpoint)
            for key, request in requests.items()
        }
        is_responses = any(self._wants_responses(request, endpoint) for request in adapted_requests.values())
        path = "/v1/responses" if is_responses else "/v1/chat/completions"

        def lines() -> Iterator[str]:
            for key, request in adapted_requests.items():
                limit_name = self._limit_name(request, endpoint)
                body = self._responses_body(request) if is_responses else self._chat_body(request, limit_name)
                line = {"custom_id": key, "method": "POST", "url": path, "body": body}
                yield json.dumps(line, ensure_ascii=False, separators=(",", ":"))

        return path, list(lines())

    def _entry(self, line: bytes) -> Mapping[str, object]:
        try:
            return mapping(read_document(line)) if line.strip() else {}
        except DocumentError as error:
            raise not_an_answer(self.variant.name, f"in a batch {error}") from None

    def _result(self, entry: Mapping[str, object], request: Request, endpoint: Endpoint) -> Reply | BackendError:
        response = mapping(entry.get("response"))
        document = mapping(response.get("body"))
        if response.get("status_code") != _OK:
            return RetryableBackendError(f"{self.variant.name}: a batch ended without an answer to this", hint="")
        read = dialects.read_responses if "output" in document else dialects.read_chat
        try:
            return read(self._without_fault(document, endpoint), self._adapted(request, endpoint), self.variant.name)
        except BackendError as error:
            return error
