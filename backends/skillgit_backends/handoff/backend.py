"""Owns when a call is answered from a file, and when the run stops because answers are missing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import ConfigError, HandoffError
from skillgit.plugin.backend import BackendInfo, Usage, flatten
from skillgit.plugin.exchange import request_digest
from skillgit_backends.free_keys import FreeKey, read_keys
from skillgit_backends.gratis import Gratis
from skillgit_backends.handoff.folder import OVERVIEW, open_folder
from skillgit_backends.handoff.written import read_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Reply, Request

_KEYS = {"dir": FreeKey(default="handoff"), "settle_s": FreeKey(default=0.5)}
_NAME = 16
"""Characters of a digest that name files."""


class HandoffBackend:
    """Writes questions to files and reads answers from them."""

    info = BackendInfo(
        name="handoff",
        summary="Writes prompts to files, stops the run, and picks up the answers when it goes on: no key needed.",
        needs_network=False,
        prices=Gratis(),
        paths={"dir": "handoff"},
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        found = read_keys("handoff", _KEYS, settings)
        self._settle_s = float(found["settle_s"])
        if not found["dir"] or self._settle_s < 0:
            raise ConfigError("handoff needs a folder and a time of 0 or more", hint="unset the model.handoff_* keys")
        self._folder = open_folder(Path(str(found["dir"])).expanduser())

    async def complete(self, request: Request) -> Reply:
        """Answer ``request`` from its file.

        Raises:
            HandoffError: The answer is not there yet; the prompts of all calls that wait are written.
        """
        self._folder.last_call = asyncio.get_running_loop().time()
        name = request_digest(request)[:_NAME]
        text = self._folder.answer(name)
        if text is not None:
            self._folder.pending.pop(name, None)
            said = -(-len(text) // 4)
            usage = Usage(tokens_in=-(-len(flatten(request.messages)) // 4), tokens_out=said)
            return read_answer(text, request, usage, self._folder.answer_path(name))
        self._folder.pending[name] = request
        self._folder.write_prompt(name, request)
        await self._quiet()
        raise self._waiting()

    async def aclose(self) -> None:
        """Say in the folder if nothing is left to answer."""
        if self._folder.in_use and not self._folder.pending:
            self._folder.write_overview()

    async def _quiet(self) -> None:
        """Wait until no call has arrived for a while: answers that are there bring about further questions."""
        loop = asyncio.get_running_loop()
        while (left := self._folder.last_call + self._settle_s - loop.time()) > 0:  # noqa: ASYNC110 - no event: that is the point
            await asyncio.sleep(left)

    def _waiting(self) -> HandoffError:
        self._folder.write_overview()
        count = len(self._folder.pending)
        wait = "1 prompt waits for its answer" if count == 1 else f"{count} prompts wait for their answers"
        # The hint is the caller's: it knows the command that goes on.
        return HandoffError(f"{wait}; {self._folder.path / OVERVIEW} says where", hint="")
