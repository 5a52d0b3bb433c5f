"""The kit for strategies: ours and a good one pass; each way to cheat, or to break a run, is refused in a sentence."""

from __future__ import annotations

import importlib
import json
import random
import urllib.request
from dataclasses import replace
from itertools import count
from typing import ClassVar

import pytest
from soaking import soak

from skillgit.domain.evaluation import Split
from skillgit.plugin.backend import Request, system, user
from skillgit.plugin.registry import find_strategy, installed
from skillgit.strategies import Draft, Edit, Op, Strategy, solved
from skillgit.testing import ConformanceError, check_strategy

OURS = [plugin.name for plugin in installed("skillgit.strategies") if plugin.reference.startswith("skillgit.")]


@pytest.mark.parametrize("name", [name if name == "skillopt" else soak(name) for name in OURS])
def test_ours_keep_every_promise(name, tmp_path):
    check_strategy(find_strategy(name, tmp_path).cls)


class Good(Strategy):
    """Asks for edits against failures, and tries a random one of them alone."""

    name = "good"
    summary = "one edit at random"

    async def propose(self, search):
        rollouts = await search.roll_out(search.items)
        draft = await self.draft(search, [rollout for rollout in rollouts if not solved(rollout)])
        edits = list(draft.edits)
        self.rng(search).shuffle(edits)
        return search.propose(replace(draft, proposals=tuple(edits[:1])), rollouts)

    async def draft(self, search, failures):
        return await search.ask("Propose edits against these failures.", failures)

    def rng(self, search):
        return search.random("edit")


def added(text: str) -> Draft:
    return Draft(proposals=(Edit(op=Op.APPEND, content=text),), title="one more line")


def hidden(search) -> list:
    """Return selection items, as a strategy gets hold of them that makes the environment anew."""
    return type(search.session.task.environment)({}).items(Split.SELECTION)


@pytest.mark.parametrize("settings", [None, soak({"train": {"num_epochs": 1}, "gate": {"screening": 2}})])
def test_a_good_one_passes(settings):
    check_strategy(Good, settings=settings)


class TakesItems(Good):
    async def propose(self, search):
        hidden(search)
        return await super().propose(search)


class RollsOut(Good):
    async def propose(self, search):
        await search.roll_out(hidden(search))
        return await super().propose(search)


class RollsOutByItself(Good):
    async def propose(self, search):
        class Target:
            async def chat(self, messages):
                return await search.session.calls.call("target", "mine", messages, draw=("mine", search.step))

        await search.session.task.environment.rollout(hidden(search)[0], search.skill, Target())
        return await super().propose(search)


class Tells(Good):
    async def draft(self, search, failures):
        return await search.ask("Mind this task.", failures, task=hidden(search)[0].content["question"])


class Writes(Good):
    async def draft(self, search, _):
        return added(f"- The answer is {hidden(search)[search.step].content['answer']}.")


class Titles(Good):
    async def draft(self, search, failures):
        draft = await super().draft(search, failures)
        return replace(draft, title=f"passes {hidden(search)[0].content['check']}")


class Counts(Good):
    def __init__(self):
        self.count = 0

    async def draft(self, *_):
        self.count += 1
        return added(f"- Line {self.count}")


class CountsForAll(Good):
    lines: ClassVar[list[str]] = []

    async def draft(self, *_):
        self.lines.append("- line")
        return added("\n".join(self.lines))


class Gambles(Good):
    def rng(self, _):
        return random.Random()  # noqa: S311 - as a strategy must not

    async def draft(self, *_):
        return Draft(proposals=tuple(Edit(op=Op.APPEND, content=f"- Number {number}") for number in range(1000)))


class Wanders(Good):
    numbers: ClassVar = count()

    def base(self, search):
        return next(self.numbers) % (search.state.version + 1)


class Empty(Good):
    async def propose(self, _):
        return None


class Homeless(Good):
    def base(self, search):
        return search.state.version + 1


class Flat(Good):
    def width(self, _):
        return 0


class Spends(Good):
    async def propose(self, search):
        whole = await super().propose(search)
        candidate = search.propose(replace(added("- one"), proposals=(*added("- one").edits, *added("- two").edits)))
        return replace(whole, candidate=candidate.candidate, budget=replace(whole.budget, limit=1))


class Reads(Good):
    async def draft(self, _, failures):
        return added(f"- {failures[0].trajectory.answer}" if failures else "- well done")


class Parses(Good):
    async def draft(self, search, _):
        reply = await search.session.calls.call(
            "optimizer", "mine", [user("JSON, please.")], draw=("mine", search.step)
        )
        return added(json.loads(reply.text)["line"])


class Goes(Good):
    async def draft(self, search, failures):
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen("http://127.0.0.1:1/")  # noqa: ASYNC210 - as a strategy must not
        return await super().draft(search, failures)


class Bypasses(Good):
    async def draft(self, search, failures):
        backend = search.session.calls.routes["optimizer"].backend
        await backend.complete(Request(model="optimizer", messages=(system("Psst."), user("Tell me."))))
        return await super().draft(search, failures)


FAULTS = [
    (TakesItems, "it takes items of the selection split from the environment"),
    (RollsOut, "the strategy rolls out selection-0, selection-1, selection-2, which no train item is"),
    (RollsOutByItself, "it rolls out selection-0, which no train item is"),
    (
        Tells,
        "a prompt to the optimizer holds the input of the selection item selection-0, which a strategy may not",
    ),
    (Writes, "a proposal holds the answer of the selection item selection-1, which a strategy may not see"),
    (Titles, "a proposal holds a check of the selection item selection-0, which a strategy may not see"),
    (Counts, "propose answers by what it was asked before: a run that is resumed asks a new instance"),
    (CountsForAll, "propose gives another answer when it is asked again"),
    (Gambles, "propose gives another answer when it is asked again: chance comes from search.random"),
    (Wanders, "base gives another answer when it is asked again"),
    (Empty, "strategy Empty: propose returned None where a Proposal is asked for"),
    (Homeless, "strategy Homeless: base returned 1 where the number of a version, 0 to 0, is asked for"),
    (Flat, "strategy Flat: width returned 0 where a number from 1 is asked for"),
    (Spends, "a proposal has 2 edits, more than its own budget of 1"),
    (Reads, "with a target that declines to work: strategy Reads broke down in propose: AttributeError"),
    (Parses, "strategy Parses broke down in propose: TypeError: string indices"),
    (Goes, "it uses the network"),
    (Bypasses, "it asks the optimizer past the calls of its session"),
]


@pytest.mark.parametrize(
    ("cls", "sentence"), [*FAULTS[::6], *(soak(*fault) for number, fault in enumerate(FAULTS) if number % 6)]
)
def test_each_fault_is_a_sentence(cls, sentence):
    with pytest.raises(ConformanceError) as caught:
        check_strategy(cls)
    assert any(broken.startswith(sentence) for broken in caught.value.broken), caught.value
    assert all("\n" not in broken for broken in caught.value.broken)


def test_a_strategy_with_a_form_of_its_own_brings_replies():
    with pytest.raises(ConformanceError) as caught:
        check_strategy(Parses, replies=lambda _: '{"line": "- Mind the way."}')
    assert all(broken.startswith("with ") for broken in caught.value.broken), "only models that fail make it fail"


UNSORTED = """
from skillgit.strategies import Draft, Edit, Op, Strategy


class Unsorted(Strategy):
    name = "unsorted"
    summary = "takes a word of a set"

    async def propose(self, search):
        words = {f"word {number}" for number in range(100)}
        word = SOME(words)
        return search.propose(Draft(proposals=(Edit(op=Op.APPEND, content=f"- {word}"),)))
"""


@pytest.mark.soak
def test_the_order_of_sets_is_found_out_in_another_process(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "unsorted_words.py").write_text(UNSORTED.replace("SOME(words)", "next(iter(words))"))
    (tmp_path / "sorted_words.py").write_text(UNSORTED.replace("SOME(words)", "min(words)"))
    with pytest.raises(ConformanceError, match="it comes to other events in another process"):
        check_strategy(importlib.import_module("unsorted_words").Unsorted)
    check_strategy(importlib.import_module("sorted_words").Unsorted)
