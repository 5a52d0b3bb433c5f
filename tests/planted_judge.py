"""A judge whose flips are known: chat completions over real HTTP, with verdicts that are wrong at a given rate."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from served import JsonHandler, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD, BAD = "good", "rude"
"""What a result that meets every criterion contains, and one that meets none."""
_RESULT = re.compile(r"begin result\]\n(.*)\n\[[0-9a-f]+ end result", re.DOTALL)
_SIDES = re.compile(r"begin (?:A|B)\]\n(.*?)\n\[[0-9a-f]+ end (?:A|B)", re.DOTALL)


class PlantedJudge:
    """What the judge does: ``rate`` of the scores are wrong, and of comparisons ``first`` prefer the first place."""

    def __init__(self, rate: float = 0.0, seed: int = 0, first: float = 0.0) -> None:
        self.rate, self.seed, self.first = rate, seed, first
        self.refused = 0  # of every so many questions one is refused with an error of the server; 0 for none
        self.useless = 0  # how many of the next replies are no JSON
        self.url = ""
        self.asked = 0
        self.answered = 0
        self.hang_after = -1  # after so many answers none comes until ``released``; negative for never
        self.hanging, self.released = threading.Event(), threading.Event()
        self._times = Counter[str]()
        self._lock = threading.Lock()

    def reply(self, question: str) -> str:
        """Return the verdict on what is asked; the same question gets another one each time."""
        with self._lock:
            self._times[question] += 1
            chance = random.Random(f"{self.seed} {question} {self._times[question]}")  # noqa: S311 - a test
            if self.useless:
                self.useless -= 1
                return "I like it."
        sides = _SIDES.findall(question)
        if sides:
            winner = "B" if BAD in sides[0] or GOOD in sides[1] else "A"
            return json.dumps({"winner": "A" if chance.random() < self.first else winner, "reason": "so it is"})
        result = _RESULT.search(question)
        truth = float(GOOD in (result[1] if result else ""))
        count = len(re.findall(r"^\d+\. ", question.split("\n\n", maxsplit=1)[0], re.MULTILINE)) or 1
        scores = [1 - truth if chance.random() < self.rate else truth for _ in range(count)]
        return json.dumps({"scores": scores, "reason": "so it is"})


@contextmanager
def planted_judge(rate: float = 0.0, seed: int = 0, first: float = 0.0) -> Iterator[PlantedJudge]:
    """Serve a judge on the loopback during a block."""
    judge = PlantedJudge(rate, seed, first)

    class Handler(JsonHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_json({"error": {"message": "there is nothing here"}}, 404)

        def do_POST(self) -> None:
            body = self.read_json()
            messages = body["messages"]
            question = str(messages[-1]["content"])
            if question != "Reply with OK.":
                judge.asked += 1
                if judge.answered == judge.hang_after and not judge.released.is_set():
                    judge.hanging.set()
                    judge.released.wait()
                    self.close_connection = True
                    return
                if judge.refused and judge.asked % judge.refused == 0:
                    self.send_json({"error": {"message": "out of memory"}}, 500)
                    return
            text = "OK" if question == "Reply with OK." else judge.reply(str(messages[1]["content"]))
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
            document = {"id": "x", "object": "chat.completion", "created": 1, "model": body["model"]}
            judge.answered += question != "Reply with OK."
            self.send_json({**document, "choices": [choice], "usage": usage})

    with listening(Handler) as judge.url:
        try:
            yield judge
        finally:
            judge.released.set()
