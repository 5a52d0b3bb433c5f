from __future__ import annotations

import asyncio
import json

import pytest
from paced import Held, target_on
from toy import ONE_STEP, SEED, WORDS, History, ToyBackend, ToyEnvironment, run_to_end, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.trajectory import Item
from skillgit.errors import BudgetError, ConfigError, StoppedError
from skillgit.strategies.skillopt import step_batches

HALF = SEED.with_text("SKILL.md", SEED.document + "\n- amber birch\n")
FULL = SEED.with_text("SKILL.md", SEED.document + f"\n- {' '.join(WORDS)}\n")


def prepared(backend, history=None, *, seed=SEED, environment=None, workers=64, **options):
    made = trainer(backend, History() if history is None else history, environment=environment, **options)
    object.__setattr__(made.start, "skill", seed)
    object.__setattr__(made.session, "workers", workers)
    return made


def finish(made, history):
    async def guarded():
        return await asyncio.wait_for(run_to_end(made, history), 60)

    return asyncio.run(guarded())


class Straggler(Held):
    """The last baseline item ends only once a train item has been asked for."""

    def __init__(self, **options) -> None:
        super().__init__(target_on("selection7 "), target_on("train"), **options)


def test_the_first_step_begins_while_the_last_baseline_item_runs_and_pays_for_itself():
    backend, history = Straggler(), History()
    finish(prepared(backend, history, train=ONE_STEP), history)
    assert backend.overlapped
    assert history[0].event.cost.calls == 8, "the baseline pays for its items alone"
    assert history.state().cost.calls == len(backend.requests)
    plain, alone = ToyBackend(), History()
    finish(prepared(plain, alone, workers=1, train=ONE_STEP), alone)
    assert [t.event for t in history] == [t.event for t in alone]


@pytest.mark.parametrize("seed", [SEED, FULL])
def test_nothing_is_asked_ahead_that_might_not_be_needed(seed):
    """A seed that solves everything ends the run at once, so that train items wait until one selection item fails."""
    backend, history = ToyBackend(), History()
    finish(prepared(backend, history, seed=seed, train=ONE_STEP | {"stop_at_ceiling": True}), history)
    trained = sum(map(target_on("train"), backend.requests))
    assert (trained > 0) is (seed is SEED)
    assert history[-1].event.kind is EventKind.RUN_FINISHED


def test_under_a_cap_nothing_runs_ahead():
    backend, history = ToyBackend(), History()
    made = prepared(backend, history, train=ONE_STEP, caps=Caps(max_calls=8))
    history.append(asyncio.run(made.next(None)))
    assert history[0].event.kind is EventKind.RUN_STARTED
    assert len(backend.requests) == 8
    with pytest.raises(BudgetError):
        asyncio.run(made.next(history.state()))


def test_what_fails_ahead_fails_nothing_and_is_asked_again_by_the_step():
    class Stumbling(ToyEnvironment):
        stumbled = False

        async def rollout(self, item, skill, target):
            if item.id.startswith("train") and not self.stumbled:
                self.stumbled = True
                raise ZeroDivisionError
            return await super().rollout(item, skill, target)

    history, environment = History(), Stumbling()
    finish(prepared(Straggler(), history, environment=environment, train=ONE_STEP), history)
    assert environment.stumbled
    assert history[1].event.kind is EventKind.ACCEPTED


class Stuck(Straggler):
    async def complete(self, request):
        reply = await super().complete(request)
        if target_on("train")(request):
            await asyncio.Event().wait()
        return reply


def test_a_baseline_that_fails_takes_what_runs_ahead_along():
    class Failing(ToyEnvironment):
        async def rollout(self, item, skill, target):
            made = await super().rollout(item, skill, target)
            if item.id == "selection7":
                raise ConfigError("no such item", hint="")
            return made

    made = prepared(Stuck(), environment=Failing(), train=ONE_STEP)

    async def main() -> int:
        with pytest.raises(ConfigError):
            await made.next(None)
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1


def test_closing_ends_what_runs_ahead_of_a_step_that_nobody_asks_for():
    made = prepared(Stuck(), train=ONE_STEP)

    async def main() -> tuple[int, int]:
        await made.next(None)
        before = len(asyncio.all_tasks())
        await made.close()
        return before, len(asyncio.all_tasks())

    before, after = asyncio.run(main())
    assert before > after == 1


def test_a_stop_lets_what_runs_ahead_end_and_be_recorded():
    class Stopping(Straggler):
        async def complete(self, request):
            reply = await super().complete(request)
            if target_on("selection7 ")(request):
                made.session.calls.stop()
            return reply

    backend, history, ledger = Stopping(), History(), Ledger.in_memory()
    made = prepared(backend, history, train=ONE_STEP, ledger=ledger)
    with pytest.raises(StoppedError):
        finish(made, history)
    first = len(backend.requests)
    second = ToyBackend()
    finish(prepared(second, history, train=ONE_STEP, ledger=ledger), history)
    whole, unbroken = ToyBackend(), History()
    finish(prepared(whole, unbroken, train=ONE_STEP), unbroken)
    assert [t.event for t in history] == [t.event for t in unbroken]
    assert first + len(second.requests) == len(whole.requests)


class Stretched(ToyEnvironment):
    """Has forty selection items: twenty that ``HALF`` fails, then such as need amber and birch in turn."""

    needs = ("dune",) * 17 + ("coral",) * 3 + ("amber", "birch") * 10

    def items(self, split):
        if split is not Split.SELECTION:
            return super().items(split)
        return tuple(
            Item(id=f"selection{n}", content={"needs": word, "n": f"selection{n}"}) for n, word in enumerate(self.needs)
        )


def test_a_step_begins_while_the_last_items_of_a_refused_candidate_run():
    """It fixes three and breaks every second one: that is settled two items before its second wave ends."""
    edit = {"op": "replace", "anchor": "- amber birch", "content": "- amber coral"}
    script = {"Analyse failures": lambda _: json.dumps({"title": "t", "reasoning": "r", "edits": [edit]})}
    options = {"train": {"num_epochs": 1, "batch_size": 4, "seed": 1}, "environment": Stretched(), "seed": HALF}
    plain, alone = ToyBackend(script=script), History()
    finish(prepared(plain, alone, workers=1, **options), alone)
    assert alone[1].event.kind is EventKind.REJECTED
    assert (alone[1].event.evaluation.scored, alone[1].event.evaluation.spare) == (26, 2)

    [batch] = step_batches(prepared(ToyBackend(), **options).session, 2)
    straggler, later = target_on("selection27 "), target_on(f"{batch[0].id} ")
    backend = Held(lambda r: straggler(r) and "coral" in r.messages[0].text, later, script=script)
    history = History()
    finish(prepared(backend, history, **options), history)
    assert backend.overlapped
    assert [t.event for t in history] == [t.event for t in alone]
    assert len(backend.requests) == len(plain.requests)
