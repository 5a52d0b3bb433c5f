"""A server of OpenAI's protocol with a prefix cache in slots, as llama.cpp's server has, and stand-ins for both models.

Each slot keeps the last prompt that it worked on. A question goes to the idle slot whose prompt begins most like it, or
to the one that was idle longest if none does; without an idle slot it waits for its turn. What the slot had already is
``usage.prompt_tokens_details.cached_tokens`` of the reply. Four characters are a token.

The target solves an item by chance or by a line of its skill; the optimizer adds such lines, harmful ones among them.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from served import JsonHandler, listening

LETTERS = 4  # characters of a token
LEAST_ALIKE = 0.1  # share of a prompt that a slot has to have, to be preferred to the one idle longest
TASKS = Path(__file__).parent / "domain" / "archive_sections"
_RULES = 12  # kinds of items that a line of the skill may speak of


def number_of(*parts: str) -> int:
    """Return a number that looks drawn and follows from ``parts``."""
    return int.from_bytes(blake2b("\0".join(parts).encode(), digest_size=4).digest(), "big")


def in_common(one: str, other: str) -> int:
    """Return with how many equal characters both texts begin."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if one[:middle] == other[:middle] else (least, middle - 1)
    return least


@dataclass(slots=True)
class Slot:
    prompt: str = ""
    busy: bool = False
    used: int = 0  # when it was given up last, as a count


@dataclass(slots=True, kw_only=True)
class CachedModel:
    """The target behind its slots; what it was asked is counted in tokens."""

    answers: Mapping[str, str]  # what a question says, to what is right
    slots: Sequence[Slot] = field(default_factory=lambda: [Slot() for _ in range(4)])
    seconds: float = 0.002  # of an answer, so that questions wait for slots
    url: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    calls: int = 0
    texts: list[str] = field(default_factory=list)  # the system prompts in the order in which slots took them
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _line: list[object] = field(default_factory=list)
    _count: int = 0

    @property
    def share(self) -> float:
        return self.cached_tokens / self.prompt_tokens

    @property
    def switches(self) -> int:
        """How often a slot took another text than the one before."""
        return sum(before != after for before, after in zip(self.texts, self.texts[1:], strict=False))

    def answer(self, messages: Sequence[Mapping[str, object]]) -> tuple[str, int, int]:
        """Return a reply, the tokens of the prompt and those that the slot had."""
        prompt = "\n".join(str(message["content"]) for message in messages)
        slot = self._taken(prompt)
        try:
            common = in_common(slot.prompt, prompt) // LETTERS
            time.sleep(self.seconds)
            slot.prompt = prompt
        finally:
            self._given_up(slot)
        size = max(-(-len(prompt) // LETTERS), 1)
        cached = min(common, size - 1)  # the last token is always worked on
        with self._turn:
            self.calls += 1
            self.prompt_tokens += size
            self.cached_tokens += cached
            self.texts.append(str(messages[0]["content"]))
        return self._said(prompt), size, cached

    def _taken(self, prompt: str) -> Slot:
        """Wait for an idle slot, first come, first served, and return the one that has most of ``prompt``."""
        place = object()
        with self._turn:
            self._line.append(place)
            self._turn.wait_for(lambda: self._line[0] is place and any(not slot.busy for slot in self.slots))
            del self._line[0]
            idle = [slot for slot in self.slots if not slot.busy]
            alike = {id(slot): in_common(slot.prompt, prompt) / len(prompt) for slot in idle}
            best = max(idle, key=lambda slot: alike[id(slot)])
            slot = best if alike[id(best)] > LEAST_ALIKE else min(idle, key=lambda slot: slot.used)
            slot.busy = True
            self._turn.notify_all()
            return slot

    def _given_up(self, slot: Slot) -> None:
        with self._turn:
            self._count += 1
            slot.busy, slot.used = False, self._count
            self._turn.notify_all()

    def said(self, prompt: str, question: str) -> str:
        """Return the answer to ``question``, right or not."""
        return self.answers[question] if solves(prompt, question) else "nothing"

    def _said(self, prompt: str) -> str:
        question = next((question for question in self.answers if question in prompt), "")
        return f"<answer>{self.said(prompt, question) if question else 'nothing'}</answer>"


def solves(prompt: str, question: str) -> bool:
    """Say whether luck or a line of the skill answers ``question``; a harmful line takes what luck gave."""
    lines = set(re.findall(r"^[-*+] (Rule|Habit) (\d+) ", prompt, re.MULTILINE))
    kind = str(number_of("kind", question) % _RULES)
    has_luck = number_of("luck", question) % 10 < 4
    return ("Rule", kind) in lines or (has_luck and ("Habit", kind) not in lines)


def optimizer_reply(prompt: str) -> str:
    """Return what answers every question of the method: an edit below some line of the skill, guidance and memory."""
    number = number_of("edit", prompt)
    bullets = sorted(set(re.findall(r"^- (?!Rule|Habit)[^\n]{20,}$", skill_in(prompt), re.MULTILINE)))
    word = "Habit" if number % 3 == 0 else "Rule"
    line = f"- {word} {number // 7 % _RULES} holds for its kind of package ({number % 1000})."
    place = {"op": "insert_after", "anchor": bullets[number % len(bullets)]} if bullets else {"op": "append"}
    return json.dumps(
        {
            "findings": [{"pattern": "answers are wrong", "count": 2, "items": []}],
            "title": line[2:30],
            "reasoning": "The items of this kind fail.",
            "edits": [place | {"content": line, "items": []}],
            "selected": [0],
            "guidance": f"Remember what held so far ({number % 1000}).",
            "memory": f"Lines work ({number % 1000}).",
        }
    )


def skill_in(prompt: str) -> str:
    """Return the text of the last skill that ``prompt`` shows."""
    return prompt.rpartition("# Archive section")[2]


def _handler(model: CachedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(JsonHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_json({"object": "list", "data": [{"id": "target", "object": "model", "created": 1}]})

        def do_POST(self) -> None:
            body = self.read_json()
            messages, cached = body["messages"], 0
            if messages[-1]["content"] == "Reply with OK.":
                text, size = "OK", 4
            elif body["model"] == "target":
                text, size, cached = model.answer(messages)
            else:
                prompt = "\n".join(str(message["content"]) for message in messages)
                text, size = optimizer_reply(prompt), len(prompt) // LETTERS
            usage = {"prompt_tokens": size, "completion_tokens": len(text) // LETTERS}
            usage |= {"total_tokens": sum(usage.values()), "prompt_tokens_details": {"cached_tokens": cached}}
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            reply = {"id": "x", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
            self.send_json(reply | {"usage": usage})

    return Handler


@contextmanager
def served(model: CachedModel) -> Iterator[str]:
    """Serve ``model``, and the optimizer under any other name, while the block lasts; yield the address."""
    with listening(_handler(model)) as model.url:
        yield model.url
