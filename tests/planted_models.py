"""Models that read the year in a task, with the skill's rule, without it, or never; most of them err on some tasks."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from skillgit.plugin.backend import BackendInfo, Price, Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Request

RULE = "If the passage mentions a year, answer with this year."


class Models:
    """Adds a line to the file PLANTED_LOG for each question, and dies at the question PLANTED_DEATH."""

    info = BackendInfo(name="planted", summary="Reads years.", needs_network=False,
                       prices={"*": Price(usd_in=0, usd_out=0)})  # fmt: skip

    def __init__(self, settings: Mapping[str, object]) -> None:
        del settings

    async def complete(self, request: Request) -> Reply:
        if log := os.environ.get("PLANTED_LOG"):
            questions = Path(log).read_text().count("\n") if Path(log).exists() else 0  # noqa: ASYNC240
            if questions == int(os.environ.get("PLANTED_DEATH", "-1")):
                os.kill(os.getpid(), signal.SIGKILL)
            with Path(log).open("a") as lines:  # noqa: ASYNC230 - it must be on disk before the answer
                lines.write(f"{request.model}\n")
        task, has_rule = request.messages[-1].text, RULE in request.messages[0].text
        slips = crc32(f"{task} {has_rule}".encode()) % 20 == 0
        knows = {"obeys": has_rule, "misled": not has_rule, "knows": True}.get(request.model, False) and not slips
        year = re.search(r"\d{4}", task)
        text = year[0] if year and knows else "I cannot say"
        return Reply(text=f"<answer>{text}</answer>", usage=Usage(tokens_in=1, tokens_out=1))

    async def aclose(self) -> None: ...
