"""A plug-in that breaks down ends the run with one sentence, and the run goes on once it is mended."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from program import git, new_repository, skillgit
from toy import History, ToyBackend, run_to_end, trainer

from skillgit.domain.cost import Caps
from skillgit.domain.trajectory import Item
from skillgit.engine.strategy import Guarded, strategy_of
from skillgit.errors import BudgetError, ExitCode, StrategyError
from skillgit.strategies import Draft, Edit, Op, Strategy
from skillgit.strategies.racing import Racing


class Plain(Strategy):
    name = "plain"
    summary = "adds a word"

    async def propose(self, search):
        await search.roll_out(search.items)
        return search.propose(Draft(proposals=(Edit(op=Op.APPEND, content=f"- word {search.step}"),)))


class Raises(Plain):
    async def propose(self, _):
        return {}["edits"]


class Leaves(Plain):
    async def propose(self, _):
        raise SystemExit(0)


class Nothing(Plain):
    async def propose(self, _):
        return None


class HalfMade(Plain):
    async def propose(self, search):
        return replace(await super().propose(search), candidate="a text")


class Papers(Plain):
    async def propose(self, search):
        return replace(await super().propose(search), evidence={"notes.txt": "a text"})


class Homeless(Plain):
    def base(self, _):
        return 7


class Narrow(Plain):
    def width(self, _):
        return 0


class Wide(Plain):
    def width(self, _):
        return 2

    async def unite(self, _, proposals):
        return proposals


class Peeks(Plain):
    def certain(self, *_):
        return [Item(id="selection0", content={"needs": "amber", "n": "selection0"})]


def run(cls, **options):
    history = History()
    made = trainer(ToyBackend(), history, strategy=strategy_of(cls, "mine.py:Mine"), **options)
    return asyncio.run(run_to_end(made, history))


@pytest.mark.parametrize(
    ("cls", "sentence"),
    [
        (Raises, "strategy mine.py:Mine broke down in propose: KeyError: 'edits' (test_guard.py, line "),
        (Leaves, "broke down in propose: SystemExit: 0 (test_guard.py, line "),
        (Nothing, "propose returned None where a Proposal is asked for"),
        (HalfMade, "broke down in propose: AttributeError"),
        (Papers, "where evidence of bytes is asked for"),
        (Homeless, "base returned 7 where the number of a version, 0 to 0, is asked for"),
        (Narrow, "width returned 0 where a number from 1 is asked for"),
        (Wide, "unite returned "),
        (Peeks, "where a sequence of train items is asked for"),
    ],
)
def test_what_breaks_the_port_is_one_sentence_with_a_hint(cls, sentence):
    with pytest.raises(StrategyError) as caught:
        run(cls)
    assert sentence in caught.value.message
    assert "\n" not in caught.value.message
    assert "give the same command again" in caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE


def test_one_that_cannot_be_made_or_is_none_is_refused():
    class Unmade(Plain):
        def __init__(self):
            raise ValueError("no key")

    with pytest.raises(StrategyError, match="broke down in __init__: ValueError: no key"):
        strategy_of(Unmade, "mine.py:Unmade")
    with pytest.raises(StrategyError, match="has to be a class that inherits"):
        strategy_of(dict, "mine.py:dict")


def test_a_cap_ends_the_run_also_out_of_a_group_of_tasks():
    class Grouped(Plain):
        async def propose(self, search):
            async with asyncio.TaskGroup() as group:
                for item in search.items:
                    group.create_task(search.roll_out([item]))
            return search.propose(Draft())

    with pytest.raises(BudgetError):
        run(Grouped, caps=Caps(max_calls=10))


def test_ours_are_not_guarded():
    assert isinstance(strategy_of(Plain, "mine"), Guarded)
    assert type(strategy_of(Racing, "racing")) is Racing


MINE = """
from skillgit.strategies import Draft, Edit, Op, Strategy


class Mine(Strategy):
    name = "mine"
    summary = "adds a sentence"

    async def propose(self, search):
        await search.roll_out(search.items[:4])
        assert search.step < 2
        return search.propose(Draft(proposals=(Edit(op=Op.APPEND, content=f"Sentence {search.step}."),)))
"""
TRAIN = (
    *("train", "searchqa/default", "--run", "one", "-o", "train.strategy=mine.py:Mine", "-o", "train.num_epochs=1"),
    *("-o", "evaluation.sel_env_num=8", "-o", "evaluation.eval_test=false"),
)


def test_a_run_goes_on_once_its_strategy_is_mended(tmp_path):
    repository = new_repository(tmp_path / "mine")
    (repository / "mine.py").write_text(MINE)
    refused = skillgit(*TRAIN, cwd=repository, code=2)
    assert "broke down in propose: AssertionError (mine.py, line 11)\nhint: fix the strategy" in refused.err
    assert "Traceback" not in refused.err
    steps = git("log", "--all", "--format=%H", cwd=repository).out.split()
    (repository / "mine.py").write_text(MINE.replace("        assert search.step < 2\n", ""))
    mended = skillgit(*TRAIN, cwd=repository)
    assert "the strategy was edited since the run began" in mended.err
    assert {*steps} <= {*git("log", "--all", "--format=%H", cwd=repository).out.split()}, "nothing is lost"
    again = skillgit(*TRAIN, cwd=repository)
    assert "had finished before" in again.out + again.err
    skillgit("fsck", "--deep", cwd=repository)
