"""Owns which recorded reply answers a request."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, cast

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import BackendInfo
from skillgit.plugin.exchange import request_digest
from skillgit_backends.free_keys import FreeKey, read_keys
from skillgit_backends.gratis import Gratis
from skillgit_backends.replay.record import open_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Reply, Request
    from skillgit_backends.replay.record import Record

_SHOWN = 60


class ReplayBackend:
    """Answers with what was recorded; knows nothing else."""

    info = BackendInfo(
        name="replay",
        summary="Answers from a ledger or a file of recorded replies; what was not recorded is an error.",
        needs_network=False,
        prices=Gratis(),
        paths={"path": ""},
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        found = cast("dict[str, str]", read_keys("replay", {"path": FreeKey(default="")}, settings))
        if not found["path"]:
            raise ConfigError("replay has nothing to answer from", hint="set model.replay_path to a ledger.db or JSONL")
        self._path = Path(found["path"]).expanduser()
        if not self._path.is_file():
            raise ConfigError(
                f"there is no file {self._path} to replay", hint="model.replay_path names a ledger.db or a JSONL file"
            )
        self._record: Record | None = None
        self._asked: Counter[str] = Counter()

    async def complete(self, request: Request) -> Reply:
        """Answer ``request``.

        Raises:
            ConfigError: The record cannot be read.
            FatalBackendError: The request was not recorded.
        """
        if self._record is None:
            self._record = open_record(self._path)
        digest = request_digest(request)
        count = self._record.count(digest)
        if count == 0:
            raise self._unknown(request, digest, self._record)
        number = self._asked[digest]
        self._asked[digest] += 1
        return self._record.reply(digest, number % count)

    async def aclose(self) -> None:
        """Close the record."""
        if self._record is not None:
            self._record.close()
            self._record = None

    def _unknown(self, request: Request, digest: str, record: Record) -> FatalBackendError:
        text = " ".join(request.messages[-1].text.split()) if request.messages else ""
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        without = f"; {record.undated} of its replies were recorded without their requests" if record.undated else ""
        return FatalBackendError(
            f"{self._path} has no reply of {request.model} to request {digest[:12]}, which ends with a message of"
            f" {request.messages[-1].role if request.messages else 'nobody'}: '{shown}'{without}",
            hint="a replay needs the same model, parameters, skill, items and prompts as the recording",
        )
