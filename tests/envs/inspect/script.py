"""Models that say what a script says: the same for skillgit, as a backend, and for Inspect, as a provider."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from skillgit.plugin.backend import BackendInfo, Price, Reply, ToolCall, Usage

_LONG = 420  # characters of a skill that was added to
_TALK = 4  # messages after which a simulated user leaves
_VALUES = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


class Said(NamedTuple):
    text: str
    tool: str = ""
    arguments: str = ""


def said(conversation: list[tuple[str, str]], tools: dict[str, dict]) -> Said:
    """Return what the model says next; a conversation is roles and texts, tools are names and schemas."""
    question = next((text for role, text in conversation if role == "user"), "")
    results = [text for role, text in conversation if role == "tool"]
    system = "".join(text for role, text in conversation if role == "system")
    if "GRADE:" in question:
        criterion = re.search(r"\[Criterion\]: (.*)", question)
        submission = question.rpartition("[Submission]")[2].partition("[Criterion]")[0]
        return Said("GRADE: C" if criterion and criterion[1] in submission else "GRADE: I")
    if question.startswith("The other side said"):
        return Said(f"Are you sure? {len(question)}")
    if re.match(r"What|Which|Answer the following", question) and re.search(r"\d", question):
        return _summed(question, results, set(tools), len(system.partition("<skill")[2]) > _LONG)
    return _played(conversation, tools, system, results)


def _summed(question: str, results: list[str], tools: set[str], is_taught: bool) -> Said:  # noqa: FBT001
    numbers = [int(number) for number in re.findall(r"\d+", question)]
    wrong = numbers[0] % 3 == 0 and not is_taught
    if "ANSWER: $LETTER" in question:
        return Said(f"ANSWER: {'A' if wrong else 'B'}")
    if not tools:
        answer = str(sum(numbers) - wrong)
        return Said(f"The sum is {answer}." if numbers[0] % 4 else f"After long thought I say: {answer}.")
    if not results:
        arguments = {"file": "note.txt"} if "look" in tools else {"a": numbers[0], "b": numbers[1]}
        return Said("Let me see.", "look" if "look" in tools else "add", json.dumps(arguments))
    number = "".join(re.findall(r"\d+", results[0]))
    return Said("", "submit", json.dumps({"answer": f"It is {number}{'1' if wrong else ''}"}))


def _played(conversation: list[tuple[str, str]], tools: dict[str, dict], system: str, results: list[str]) -> Said:
    """Do something that any agent, user or judge of a published task could do."""
    if "###STOP###" in system:
        return Said("###STOP###" if len(conversation) > _TALK else "I need help with my order.")
    if "reasoning" in system and "json" in system.lower():
        number = 1 + len(conversation[-1][1]) % 3
        names = re.findall(r'"(\w+)"\s*:', system)
        return Said(json.dumps({**dict.fromkeys(names, number), "reasoning": "as it seems"}))
    if len(results) < 2 and tools:
        name = sorted(tools)[(len(system) + len(results)) % len(tools)]
        schema = tools[name]
        values = {
            key: _VALUES.get(schema["properties"][key].get("type", ""), "1") for key in schema.get("required", ())
        }
        return Said("", name, json.dumps(values))
    return Said(f"I have done what I could: {len(results)}.")


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


class Beside(Door):
    """A target with a judge beside it, as those of a run are."""

    def __init__(self):
        super().__init__()
        self.judge = Door()


def reply_to(messages, tools) -> Reply:
    words = said([(message.role, message.text) for message in messages], {tool.name: tool.parameters for tool in tools})
    calls = (ToolCall(id=f"call-{len(messages)}", name=words.tool, arguments=words.arguments),) if words.tool else ()
    finish = "tool_calls" if calls else "stop"
    return Reply(text=words.text, usage=Usage(tokens_in=1, tokens_out=1), tool_calls=calls, finish_reason=finish)
