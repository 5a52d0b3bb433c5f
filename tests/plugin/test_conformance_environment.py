"""The kit for environments: a good one passes, each broken promise is noticed, and each cheat is refused."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest
from soaking import sampled, soak

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.errors import BackendError
from skillgit.plugin.backend import Tool, system, user
from skillgit.plugin.environment import CallBounds, EnvironmentInfo, Option
from skillgit.testing import ConformanceError, check_environment
from skillgit.testing.case import THREAD
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
        return Secrets(answers=(str(2 * item.content["a"]),))

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


async def shown_gold(_self, item, skill, target):
    reply = await target.chat([system(skill.document), user(f"{item.content['a']} (it is {right(item)})")])
    return Trajectory(item_id=item.id, turns=(Turn(role="user", content="?"),), answer=reply.text)


async def scored_empty(self, item, trajectory, judge):
    scored, feedback = await Good.score(self, item, trajectory, judge)
    return (scored, feedback) if trajectory.answer else (Scored(0.0, 0.5), feedback)


async def impatient(self, item, skill, target):
    trajectory = await Good.rollout(self, item, skill, target)
    try:
        await target.chat([user("sure?")])
    except BackendError:
        return trajectory
    return trajectory


async def lenient(_self, item, trajectory, judge):
    try:
        reply = await judge.chat([user(trajectory.answer)])
    except BackendError:
        return Scored(0.0, 0.0), ""
    passed = float(reply.text == "yes" or trajectory.answer == right(item))
    return Scored(passed, passed), ""


async def quoting(self, item, trajectory, judge):
    return (await Good.score(self, item, trajectory, judge))[0], f"failed: {CHECK}"


CHECK = "assert answer == 2 * number and not answer.startswith('the number is')"
NAMED = {"values": {"a": "the first", "b": "the second"}, "type": str, "default": "a"}


class Picky(Good):
    info = EnvironmentInfo(
        **{name: getattr(INFO, name) for name in ("name", "summary", "fields", "scorer", "source")},
        options=(Option(name="x", help="X.", **NAMED),),
    )

    def __init__(self, options, root):
        super().__init__(options, root)
        if options.get("x", "a") not in NAMED["values"]:
            raise KeyError(options["x"])


BROKEN = {
    "is shown an answer that secrets names": broken(rollout=shown_gold),
    "an empty reply gets a score above 0": broken(score=scored_empty),
    "an answer that secrets names does not get the full score": broken(
        secrets=lambda _self, _item: Secrets(answers=("no",))
    ),
    "asks the target 1 times, call_bounds says 2 to 3": broken(
        call_bounds=lambda _self, _item: CallBounds(target=(2, 3))
    ),
    "call_bounds has a least number": broken(call_bounds=lambda _self, _item: CallBounds(target=(1, 0))),
    "call_bounds returns tuple": broken(call_bounds=lambda _self, _item: (1, 1)),
    "a failed call of the judge becomes a score": broken(score=lenient, asks_judge=True),
    "feedback quotes the source of a check": broken(
        score=quoting, secrets=lambda _self, item: Secrets(answers=(right(item),), checks=(CHECK,))
    ),
    "option 'x' takes a value that is none of those": option(**NAMED),
    "a wrong value of option 'x' becomes KeyError": Picky,
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
    "a failed call of the target becomes a trajectory": broken(rollout=impatient),
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
    check_environment(cheat(scoring((Scored(0.0, 0.0), "")), secrets=lambda _self, _item: Secrets()))


class Careless(Good):
    """Marks capitals down, or not, and asks in capitals, or not."""

    info = EnvironmentInfo(
        **{name: getattr(INFO, name) for name in ("name", "summary", "fields", "scorer", "source")},
        options=(
            Option(name="shout", type=bool, default=False, help="Whether the question is in capitals."),
            Option(name="points", type=int, default=0, help="What is taken off a soft score, in percent."),
        ),
    )

    @property
    def digest(self):
        return f"careless {self.options}"

    async def rollout(self, item, skill, target):
        text = f"what is twice {item.content['a']}"
        reply = await target.chat([system(skill.document), user(text.upper() if self.options.get("shout") else text)])
        return Trajectory(item_id=item.id, turns=(Turn(role="assistant", content=reply.text),), answer=reply.text)

    async def score(self, item, trajectory, judge):
        scored, feedback = await Good.score(self, item, trajectory, judge)
        return Scored(scored.hard, max(0.0, scored.soft - self.options.get("points", 0) / 100)), feedback


def cheat(base=Good, **changes):
    return type("Cheat", (base,), changes)


async def unread(self, item, skill, target):
    del skill
    return await Good.rollout(self, item, self.seed_skill(), target)


class ReadsOnce(Good):
    """Keeps the first skill that it is given."""

    async def rollout(self, item, skill, target):
        self.first = getattr(self, "first", skill)
        return await Good.rollout(self, item, self.first, target)


async def golden(self, item, skill, target):
    told = await Good.rollout(self, item, skill, target)
    return replace(told, answer=right(item))


async def generous(_self, item, trajectory, judge):
    del item, trajectory, judge
    return Scored(1.0, 1.0), "well done"


def block():
    """Keep the event loop waiting until that is noticed."""
    for _ in range(3000):
        if not any(thread.name == THREAD for thread in threading.enumerate()):
            return
        time.sleep(0.01)


def standing(method):
    """Return a cheat that keeps the event loop waiting for one item, in ``method``."""

    async def blocking(self, item, *more):
        if item.id == "train-0":
            block()
        return await getattr(Good, method)(self, item, *more)

    return cheat(**{method: blocking})


BLOCKS = "blocks the event loop for 0.5 s or longer at test_conformance_environment.py:"
CHEATS = {
    "never reads the skill": (cheat(rollout=unread), "the target never sees the skill"),
    "reads the first skill only": (ReadsOnce, "the target sees the skill of an earlier rollout"),
    "returns the gold answer": (cheat(rollout=golden), "a rollout returns the gold answer"),
    "scores everything 1.0": (cheat(score=generous), "a wrong answer passes"),
    "blocks the event loop in a rollout": (standing("rollout"), BLOCKS),
    "blocks the event loop in a score": (standing("score"), BLOCKS),
    "has a constant digest over prompts": (cheat(Careless, digest="1"), "option 'shout' changes what is asked"),
    "has a constant digest over scores": (cheat(Careless, digest="1"), "option 'points' changes what is asked"),
}


@pytest.mark.parametrize("name", sampled(CHEATS, 3))
def test_each_cheat_is_refused_in_one_sentence(name):
    cls, sentence = CHEATS[name]
    with pytest.raises(ConformanceError, match=re.escape(sentence)) as caught:
        check_environment(cls, answers=right)
    assert len(caught.value.broken) == (2 if "constant" in name else 1)


@pytest.mark.parametrize("name", ["never reads the skill", "scores everything 1.0", "returns the gold answer"])
def test_a_cheat_needs_no_right_answers_to_be_found(name):
    with pytest.raises(ConformanceError, match=r"never sees|gold|a wrong answer passes") as caught:
        check_environment(CHEATS[name][0])
    assert len(caught.value.broken) == 1


def test_options_that_change_nothing_or_the_digest_are_left_alone():
    check_environment(Careless, answers=right)
    check_environment(cheat(digest="constant"), answers=right)


def test_a_load_at_first_use_is_no_blocked_loop():
    loaded = []

    class Loads(Good):
        async def rollout(self, item, skill, target):
            if not loaded:
                loaded.append(block())
            return await Good.rollout(self, item, skill, target)

    check_environment(Loads, answers=right)
    assert loaded


def test_an_answer_that_is_right_for_one_item_by_chance_is_no_cheat():
    class Chance(Good):
        async def score(self, item, trajectory, judge):
            score = generous if item.id == "train-1" else Good.score
            return await score(self, item, trajectory, judge)

    check_environment(Chance, answers=right)
    with pytest.raises(ConformanceError, match="a wrong answer passes"):
        check_environment(Chance, answers=right, wrong=lambda _item: "no idea")


def test_what_a_judge_was_told_to_say_is_no_generous_scorer():
    class Judged(Good):
        asks_judge = True

        async def score(self, item, trajectory, judge):
            del item
            reply = await judge.chat([user(trajectory.answer)])
            return Scored(float(reply.text == "yes"), 1.0), ""

    check_environment(Judged, verdict="yes")


def test_a_skill_may_be_read_through_a_tool():
    look = Tool(name="read", description="Reads the skill.", parameters={"type": "object"})

    class Tooled(Good):
        async def rollout(self, item, skill, target):
            self.shown = skill.files
            reply = await target.chat([user(str(item.content["a"]))], tools=(look,))
            return Trajectory(item_id=item.id, turns=(Turn(role="assistant", content=reply.text),), answer=reply.text)

    check_environment(Tooled, answers=right)


ELSEWHERE = {
    "digest is another one in another process or folder": "digest = __file__",
    "items are others, or in another order, in another process": """digest = "1"

    def items(self, split):
        return [Item(id=f"{split}-{hash('a')}", content={"a": 3, "split": split})]""",
}


@pytest.mark.parametrize("sentence", sampled(ELSEWHERE, 2))
def test_what_depends_on_the_process_or_on_where_the_file_is_is_refused(sentence, tmp_path, monkeypatch):
    name = f"placed_sums_{len(sentence)}"
    source = Path(__file__).read_text(encoding="utf-8")
    (tmp_path / f"{name}.py").write_text(f"{source}\n\nclass Placed(Good):\n    {ELSEWHERE[sentence]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    placed = importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, name, placed)
    with pytest.raises(ConformanceError, match=sentence):
        check_environment(placed.Placed, answers=right)


def test_items_that_change_with_the_folder_of_their_data_are_refused(tmp_path):
    class Reads(Good):
        path = ""

        def __init__(self, options, root):
            super().__init__(options, root)
            self.file = root / options["data_path"]

        def items(self, split):
            number = int(self.file.read_text()) + list(Split).index(split)
            return [Item(id=f"{split}", content={"a": number, "file": str(self.file) if self.path else ""})]

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_text("4")
    check_environment(Reads, {"data_path": "data/numbers.txt"}, tmp_path, answers=right)
    with pytest.raises(ConformanceError, match="items are others where the data are in another folder"):
        check_environment(cheat(Reads, path="yes"), {"data_path": "data/numbers.txt"}, tmp_path, answers=right)


def sleeping():
    return subprocess.Popen(["sleep", "1000"])


class Lasting(Good):
    """Holds a child process, a thread and a task while it is open, and ends all but what ``keeps`` names."""

    keeps = ""

    async def open(self):
        self.over = threading.Event()
        self.child = sleeping()
        self.thread = threading.Thread(target=self.over.wait, name="holder", daemon=True)
        self.thread.start()
        self.task = asyncio.create_task(asyncio.Event().wait(), name="pending")

    async def close(self):
        if self.keeps != "process":
            self.child.kill()
        if self.keeps != "thread":
            self.over.set()
        if self.keeps != "task":
            self.task.cancel()


class Working(Lasting):
    """Starts a program for each rollout, and leaves it to ``close`` to end it where the rollout is cancelled."""

    started: ClassVar[list[subprocess.Popen[bytes]]] = []

    async def rollout(self, item, skill, target):
        program = sleeping()
        self.started.append(program)
        trajectory = await super().rollout(item, skill, target)
        program.kill()
        program.wait()
        return trajectory


@pytest.mark.parametrize("keeps", ["", "process", soak("thread"), soak("task"), "program of a cancelled rollout"])
def test_nothing_survives_the_end_of_a_long_lived_environment(keeps):
    made = []

    class Noted(Working if "program" in keeps else Lasting):
        def __init__(self, options, root):
            super().__init__(options, root)
            made.append(self)

    Noted.keeps = keeps
    try:
        if keeps:
            with pytest.raises(ConformanceError, match=r"close leaves the (process|thread|task) .* behind"):
                check_environment(Noted, answers=lambda item: str(2 * item.content["a"]))
        else:
            check_environment(Noted, answers=lambda item: str(2 * item.content["a"]))
    finally:
        for child in [*(each.child for each in made if hasattr(each, "child")), *Working.started]:
            child.kill()
            child.wait()
        for each in made:
            getattr(each, "over", threading.Event()).set()
        Working.started.clear()


class Bound(Good):
    processor_bound = True


class Differing(Bound):
    digest = f"sums {os.getpid()}"


@pytest.mark.soak
def test_a_processor_bound_environment_can_be_made_in_another_process():
    class Inside(Bound):
        pass

    check_environment(Bound, answers=lambda item: str(2 * item.content["a"]))
    for cls, sentence in ((Inside, "not at the top of a module"), (Differing, "another digest in another process")):
        with pytest.raises(ConformanceError, match=sentence):
            check_environment(cls, answers=lambda item: str(2 * item.content["a"]))
