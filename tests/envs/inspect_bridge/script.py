"""Models that say what a script says: the same for skillgit, as a backend, and for Inspect, as a provider."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from skillgit.plugin.backend import BackendInfo, Price, Reply, ToolCall, Usage

_LONG = 420  # characters of a skill that was added to


class Said(NamedTuple):
    text: str
    tool: str = ""
    arguments: str = ""


def said(question: str, results: list[str], tools: set[str], *, skill: str = "") -> Said:
    """Return what the model says to the first ``question``, after the ``results`` of its tools so far."""
    if "GRADE:" in question:
        criterion = re.search(r"\[Criterion\]: (.*)", question)
        submission = question.rpartition("[Submission]")[2]
        return Said("GRADE: C" if criterion and criterion[1] in submission.split("[Criterion]")[0] else "GRADE: I")
    if question.startswith("The other side said"):
        return Said(f"Are you sure? {len(question)}")
    numbers = [int(number) for number in re.findall(r"\d+", question)]
    wrong = numbers[0] % 3 == 0 and len(skill) < _LONG
    if "ANSWER: $LETTER" in question:
        return Said(f"ANSWER: {'A' if wrong else 'B'}")
    answer = str(sum(numbers) - wrong)
    if "look" in tools or "add" in tools:
        tool, arguments = (
            ("look", {"file": "note.txt"}) if "look" in tools else ("add", dict(zip("ab", numbers, strict=True)))
        )
        if not results:
            return Said("Let me see.", tool, json.dumps(arguments))
        found = "".join(re.findall(r"\d+", results[0]))
        return Said("", "submit", json.dumps({"answer": f"It is {found}{'1' if wrong else ''}"}))
    return Said(f"The sum is {answer}." if numbers[0] % 4 else f"After long thought I say: {answer}.")


class Scripted:
    """The script as a backend."""

    info = BackendInfo(
        name="scripted",
        summary="Says what a script says.",
        needs_network=False,
        prices={"script": Price(usd_in=0, usd_out=0)},
    )

    def __init__(self, settings):
        del settings

    async def complete(self, request):
        return reply_to(request.messages, request.tools)

    async def aclose(self):
        pass


class Door:
    """The script as a target or a judge, that keeps what it was asked."""

    def __init__(self):
        self.heard = []

    async def chat(self, messages, tools=(), form=None):
        self.heard.append((tuple(messages), tuple(tool.name for tool in tools), form))
        return reply_to(messages, tools)


def reply_to(messages, tools) -> Reply:
    system = "".join(message.text for message in messages if message.role == "system")
    question = next(message.text for message in messages if message.role == "user")
    results = [message.text for message in messages if message.role == "tool"]
    words = said(question, results, {tool.name for tool in tools}, skill=system.partition("<skill")[2])
    calls = (ToolCall(id=f"call-{len(messages)}", name=words.tool, arguments=words.arguments),) if words.tool else ()
    return Reply(
        text=words.text,
        usage=Usage(tokens_in=1, tokens_out=1),
        tool_calls=calls,
        finish_reason="tool_calls" if calls else "stop",
    )
