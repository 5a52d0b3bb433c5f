"""A toy whose runs branch: an edit may take away what earlier ones brought, so that versions solve different items."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING
from zlib import crc32

from toy import History, ToyBackend, ToyEnvironment, merge, run_to_end, trainer

from skillgit.domain.trajectory import Item
from skillgit.strategies.compose import Compose
from skillgit.strategies.pareto import Pareto
from skillgit.strategies.racing import Racing
from skillgit.strategies.refine import Refine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillgit.domain.evaluation import Split
    from skillgit.engine.run_loop import Trainer
    from skillgit.plugin.backend import Message, Reply
    from skillgit.strategies import Strategy

WORDS = ("amber", "birch", "coral", "dune", "ember", "fern", "grove", "heath")
RIVALS = {"amber": "dune", "birch": "ember", "coral": "fern"}
"""Of these words a skill helps with neither if it has both."""
STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "racing": Racing,
    "pareto": Pareto,
    "compose": Compose,
    "refine": Refine,
}
SETTINGS = {
    "train": {
        "num_epochs": 3,
        "batch_size": 4,
        "round_steps": 2,
        "strategies": ("racing", "pareto"),
        "plateau": 2,
        "seed": 1,
    },
    "gradient": {"minibatch_size": 2},
    "optimizer": {"use_slow_update": False},
    "gate": {"screening": 1},
}


class BranchingEnvironment(ToyEnvironment):
    """Two items for each of eight words."""

    def items(self, split: Split) -> Sequence[Item]:
        return tuple(
            Item(id=f"{split.value}{n}", content={"needs": WORDS[n % len(WORDS)], "n": f"{split.value}{n}"})
            for n in range(2 * len(WORDS))
        )


def exchange(prompt: str) -> str:
    """Propose the words that the trajectories lack, and for them give up the one that the skill has longest."""
    if "<look" in prompt:
        return again(prompt)
    if "<trajectories" not in prompt:
        return json.dumps({"edits": []})  # it is sent back, as an edit does not fit
    trajectories = prompt[prompt.rindex("<trajectories") :]
    missing = sorted(set(re.findall(r"lacks (\w+)", trajectories)))[:2]
    skill = prompt[prompt.index("<skill") : prompt.index("</skill")]
    present = [word for word in WORDS if f"- {word}" in skill]
    edits: list[dict[str, object]] = [
        {
            "op": "append",
            "content": f"- {word}",
            "support": 2,
            "items": re.findall(rf"(\w+) needs {word}", trajectories),
        }
        for word in missing
    ]
    if missing and len(present) > 1:
        edits.append({"op": "delete", "anchor": f"- {present[0]}", "support": 1})
    return json.dumps({"title": f"add {missing}", "reasoning": "They are missing.", "edits": edits, "findings": []})


def again(prompt: str) -> str:
    """Propose a single word that the tried items lack still, without giving up another one."""
    lacking = sorted(set(re.findall(r"lacks (\w+)", prompt[prompt.index("<look") :])))[:1]
    edits = [
        {"op": "append", "content": f"- {word}", "items": re.findall(rf"(\w+) needs {word}", prompt)}
        for word in lacking
    ]
    return json.dumps({"title": "once more", "edits": edits})


def rewrite(prompt: str) -> str:
    """Write all words down that the trajectories lack, in place of the longest of those that the text has."""
    body = prompt[prompt.index(">", prompt.index("<body")) + 1 : prompt.index("</body")].strip()
    lines = [line for line in body.splitlines() if line.startswith("- ")]
    shown = prompt[prompt.rindex("<look" if "<look" in prompt else "<trajectories") :]
    missing = sorted(set(re.findall(r"lacks (\w+)", shown)))[: 1 if "<look" in prompt else 3]
    text = "\n".join(["# Toy", "", *lines[-4:], *(f"- {word}" for word in missing)])
    return json.dumps({"title": f"write {missing}", "reasoning": "They are missing.", "body": text})


def merge_texts(prompt: str) -> str:
    """Return a text with the lines of all texts."""
    [patches] = re.findall(r"<patches[^>]*>\n(.*?)\n</patches[^>]*>", prompt, re.DOTALL)
    bodies = [text["body"] for draft in json.loads(patches) for text in draft["rewrites"]]
    lines = dict.fromkeys(line for body in bodies for line in body.splitlines() if line.startswith("- "))
    return json.dumps({"title": "both", "body": "\n".join(["# Toy", "", *lines])})


SCRIPT: Mapping[str, Callable[[str], str | Reply]] = {
    "Analyse failures": exchange,
    "Merge patches": merge,
    "Rewrite from failures": rewrite,
    "Merge rewrites": merge_texts,
}


@dataclass
class BranchingBackend(ToyBackend):
    script: dict[str, Callable[[str], str | Reply]] = field(default_factory=lambda: dict(SCRIPT))

    def _target(self, messages: Sequence[Message]) -> str:
        text, needed = messages[0].text, messages[1].text.split()[-1]
        rivals = {RIVALS.get(needed, ""), *(word for word, rival in RIVALS.items() if rival == needed)} - {""}
        solves = needed in text and not any(rival in text for rival in rivals)
        luck = crc32(f"{text}{messages[1].text}".encode()) % 6 == 0
        return "yes" if solves or luck else "no"


def branching(backend: ToyBackend, history: History, strategy: str, **options) -> Trainer:
    sections = {
        name: SETTINGS.get(name, {}) | options.pop(name, {}) for name in {*SETTINGS, *options} if name in SETTINGS
    }
    return trainer(
        backend, history, environment=BranchingEnvironment(), strategy=STRATEGIES[strategy](), **(sections | options)
    )


@cache
def branched(strategy: str, seed: int) -> History:
    """Return the run of ``strategy`` with ``seed``, carried out once; no test may change it."""
    return asyncio.run(carried_out(strategy, train={"seed": seed}))[1]


async def carried_out(strategy: str, **options) -> tuple[BranchingBackend, History]:
    backend, history = BranchingBackend(), History()
    await run_to_end(branching(backend, history, strategy, **options), history)
    return backend, history
