"""Models in a file: a clerk who writes slips as the skill says, and an analyst who reads what the slips lack.

``KILL_RUNNER`` names a question of the clerk's, by its number, at which the process that runs Harbor is killed.
"""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

from skillgit.plugin.backend import BackendInfo, Price, Reply, Usage

RULE = "- Write counted twice as the last line of a slip."


class DeskModels:
    info = BackendInfo(
        name="desk_models", summary="Plays the roles.", needs_network=False, prices={"*": Price(usd_in=1, usd_out=1)}
    )
    questions = 0

    def __init__(self, settings):
        del settings

    async def complete(self, request):
        text = {"clerk": self.clerk, "analyst": analyst}[request.model](request)
        return Reply(text=text, usage=Usage(tokens_in=10, tokens_out=2))

    def clerk(self, request):
        DeskModels.questions += 1
        if DeskModels.questions == int(os.environ.get("KILL_RUNNER", "0")):
            os.kill(runner(), signal.SIGKILL)
        if request.messages[-1].text.startswith("output: "):
            return "The slip is written."
        last = "echo counted twice >>/app/slip.txt\n" if RULE in request.messages[0].text else ""
        return f"I write it.\n```sh\ngrep quantity /app/order.txt >/app/slip.txt\n{last}```"

    async def aclose(self): ...


def runner() -> int:
    """Return the process that runs Harbor's trials for this one."""
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                words = (path / "cmdline").read_bytes()
                parent = int((path / "stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            if b"trial_runner.py" in words and parent == os.getpid():
                return int(path.name)
    raise AssertionError


def analyst(request):
    shown = request.messages[-1].text
    if "`edits`" not in request.messages[0].text:
        return json.dumps({"title": "t", "reasoning": "r", "guidance": "", "memory": ""})
    items = sorted(set(re.findall(r'<trajectory(?:-\d+)? id="([^"]*)"', shown)))
    lacks = "the slip lacks the words counted twice" in shown and RULE not in shown
    edit = {"op": "append", "file": "SKILL.md", "anchor": "", "content": RULE, "items": items}
    return json.dumps({"findings": [], "title": "end", "reasoning": "r", "edits": [edit] if lacks else []})
