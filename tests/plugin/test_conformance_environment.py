"""The kit for environments: searchqa keeps every promise, and each broken one is noticed."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import pytest

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.errors import BackendError
from skillgit.plugin.backend import system, user
from skillgit.plugin.conformance import ConformanceError, check_environment
from skillgit.plugin.environment import EnvironmentInfo, Option
from skillgit_envs.searchqa import SearchQA


def test_searchqa_keeps_every_promise():
    check_environment(SearchQA, answers=lambda item: f"<answer>{item.content['answers'][0]}</answer>", rollouts=60)


INFO = EnvironmentInfo(
    name="sums",
    summary="Adds.",
    fields={"a": "a number"},
    scorer="equality",
    source="made here",
    options=(Option(name="strict", type=bool, default=False, help="Whether spaces count."),),
)
SKILL = "---\nname: sums\ndescription: >\n  Adds.\n---\n\nAdd."


class Good:
    """Doubles numbers."""

    info = INFO

    def __init__(self, options, root):
        del root
        self.options = options

    @property
    def digest(self):
        return f"sums {self.options.get('strict', False)}"

    def items(self, split):
        first = 10 * list(Split).index(split)
        return [Item(id=f"{split}-{number}", content={"a": number}) for number in range(first, first + 10)]

    def seed_skill(self):
        return Skill("sums", {"SKILL.md": SKILL.encode()})

    def taxonomy(self):
        return "- wrong"

    def secrets(self, item):
        return Secrets(answers=(str(item.content["a"]),))

    async def rollout(self, item, skill, target):
        reply = await target.chat([system(skill.document), user(str(item.content["a"]))])
        return Trajectory(item_id=item.id, turns=(Turn(role="assistant", content=reply.text),), answer=reply.text)

    async def score(self, item, trajectory, judge):
        del judge
        right = float(trajectory.answer == str(2 * item.content["a"]))
        return Scored(right, right), "double it"


def right(item):
    return str(2 * item.content["a"])


def examined(cls, **more):
    check_environment(cls, {}, Path(), answers=right, scoring_options={"strict": True}, **more)


def test_a_good_one_passes():
    examined(Good)


def broken(**changes):
    return type("Broken", (Good,), changes)


def document(text, name="sums"):
    return broken(seed_skill=lambda _self: Skill(name, {"SKILL.md": text.encode()}))


def changed(**fields):
    values = {name: getattr(INFO, name) for name in ("name", "summary", "fields", "scorer", "source", "options")}
    return broken(info=EnvironmentInfo(**{**values, **fields}))


def option(**fields):
    return changed(options=(Option(**{"name": "x", "type": int, "default": 1, "help": "X.", **fields}),))


def same_item(_self, split):
    return [Item(id=f"{split}", content={"a": 1})]


def same_id(_self, split):
    return [Item(id="x", content={"a": str(split)})]


def scoring(result):
    async def score(_self, item, trajectory, judge):
        del item, trajectory, judge
        return result

    return broken(score=score)


def rolling(make):
    async def rollout(self, item, skill, target):
        try:
            return make(await Good.rollout(self, item, skill, target))
        except BackendError:
            if make is not swallowed:
                raise
            return swallowed(item)

    return broken(rollout=rollout)


def swallowed(what):
    return what if isinstance(what, Trajectory) else Trajectory(item_id=what.id, turns=(), answer="")


async def unasked(_self, item, _skill, _target):
    return Trajectory(item_id=item.id, turns=(Turn(role="user", content="?"),), answer=right(item))


async def breaking_down(self, item, skill, target):
    try:
        return await Good.rollout(self, item, skill, target)
    except BackendError as error:
        raise ValueError("no reply") from error


NUMBERS = count()


async def fickle(_self, item, trajectory, judge):
    del item, trajectory, judge
    return Scored(1.0, 1.0), f"scored {next(NUMBERS)} times"


BROKEN = {
    "has no info": broken(info=None),
    "info.scorer is empty": changed(scorer=""),
    "the default of option 'x' is no int": option(default="one"),
    "option 'x' does not say what it means": option(help=""),
    "cannot be made with its options: ZeroDivisionError": broken(__init__=lambda _self, _options, _root: 1 / 0),
    "lacks a method": type("Broken", (), {"info": INFO, "__init__": Good.__init__}),
    "digest is empty": broken(digest=""),
    "digest is another one each time": broken(digest=property(lambda self: str(id(self)))),
    "digest does not change with option 'strict'": broken(digest="constant"),
    "taxonomy is empty": broken(taxonomy=lambda _self: " "),
    "has no frontmatter": document("# Sums"),
    "the seed skill's name is 'Sums'": document("---\nname: Sums\ndescription: x\n---\n", name="Sums"),
    "its folder is 'sums'": document("---\nname: products\ndescription: x\n---\n"),
    "description is empty or too long": document("---\nname: sums\ndescription:\n---\n"),
    "seed_skill raises": broken(seed_skill=lambda _self: 1 / 0),
    "the test split has no items": broken(
        items=lambda self, split: [] if split is Split.TEST else Good.items(self, split)
    ),
    "an id occurs twice in the train split": broken(items=lambda self, split: Good.items(self, split) * 2),
    "when it is made again": broken(items=lambda _self, split: [Item(id=f"{split}-{next(NUMBERS)}", content={"a": 1})]),
    "share an item by its id": broken(items=same_id),
    "share an item by its digest": broken(items=same_item),
    "items of the train split raises KeyError": broken(items=lambda _self, split: {}[split]),
    "secrets returns dict": broken(secrets=lambda _self, _item: {}),
    "rollout does not return a Trajectory": rolling(lambda trajectory: trajectory.answer),
    "item_id is not that of its item": rolling(
        lambda told: Trajectory(item_id="x", turns=told.turns, answer=told.answer)
    ),
    "a trajectory has no turns": rolling(lambda told: Trajectory(item_id=told.item_id, turns=(), answer=told.answer)),
    "does not ask the target": broken(rollout=unasked),
    "becomes a trajectory, which would be scored": rolling(swallowed),
    "a failed call of the target becomes ValueError": broken(rollout=breaking_down),
    "when it is scored again": broken(score=fickle),
    "the right answer does not pass": scoring((Scored(0.5, 1.0), "")),
    "score does not return a Scored first": scoring((1.0, "")),
    "score does not return the feedback second": scoring((Scored(1.0, 1.0), None)),
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_each_broken_promise_is_told(sentence):
    with pytest.raises(ConformanceError, match=re.escape(sentence)) as caught:
        examined(BROKEN[sentence])
    assert all(told and "\n" not in told for told in caught.value.broken)


def test_all_that_is_broken_is_told_at_once():
    with pytest.raises(ConformanceError, match="breaks 2 promises") as caught:
        examined(broken(taxonomy=lambda _self: "", digest=property(lambda self: f"{self.options} {id(self)}")))
    assert len(caught.value.broken) == 2


def test_without_right_answers_nothing_is_said_of_them():
    check_environment(scoring((Scored(0.0, 0.0), "")))
