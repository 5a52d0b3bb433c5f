"""One matrix: whatever disturbs a run, killed, capped, resumed or hurried, it ends as if nothing had, and pays once.

A row is a way to train. ``make test`` tries each disturbance with the rows that reach most of the method, ``make soak``
with all of them and at many more calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

import pytest
from branching import BranchingBackend, branching
from soaking import soak
from toy import EVERYTHING, REPLIES, History, ToyBackend, analyse, facts, run_to_end, trainer
from update_modes import SCRIPT

from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.event_kinds import EventKind
from skillgit.engine.run_loop import Trainer
from skillgit.errors import BudgetError


def with_reminder(prompt: str) -> str:
    return json.dumps({**json.loads(analyse(prompt)), "notes": ["mind the dune"]})


@dataclass(frozen=True)
class Row:
    """A way to train: what answers, the sections of the configuration, and what makes the trainer."""

    backend: Callable[[], ToyBackend] = ToyBackend
    sections: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    make: Callable[..., Trainer] = trainer


def in_mode(mode: str) -> Row:
    return Row(
        partial(ToyBackend, script=SCRIPT),
        {"gradient": {"minibatch_size": 1}, "optimizer": {"skill_update_mode": mode}},
    )


def in_rounds(strategy: str, **sections: Mapping[str, object]) -> Row:
    return Row(BranchingBackend, sections, partial(branching, strategy=strategy))


MATRIX: dict[str, Row] = {
    "plain": Row(),
    "everything": Row(
        partial(ToyBackend, script=REPLIES | {"Analyse failures": with_reminder}),
        EVERYTHING,
    ),
    "suggestions": in_mode("rewrite_from_suggestions"),
    "whole texts": in_mode("full_rewrite_minibatch"),
    "autonomous": Row(partial(ToyBackend, script=SCRIPT), {"optimizer": {"lr_control_mode": "autonomous"}}),
    "one call": Row(partial(ToyBackend, script=SCRIPT), {"optimizer": {"aggregate": "one_call"}}),
    "paired": Row(sections={"gate": {"policy": "paired", "alpha": 0.3}}),
    "no regression": Row(sections={"gate": {"no_regression": "all"}}),
    "probes": Row(sections={"gradient": {"use_deep_reflect": True, "deep_reflect_successes": 1}}),
    "racing": in_rounds("racing", train={"seed": 9}),
    "pareto": in_rounds("pareto", train={"seed": 2}),
    "compose": in_rounds("compose", train={"seed": 8}),
    "refine": in_rounds(
        "refine",
        train={"seed": 2, "num_epochs": 2},
        gate={"screening": 0},
        gradient={"failure_only": True, "minibatch_size": 2},
        optimizer={"budget_unit": "rules", "use_slow_update": False},
    ),
}


def rows(*everyday: str):
    """Try the rows ``everyday`` always and all others in ``make soak``."""
    return pytest.mark.parametrize("name", [name if name in everyday else soak(name) for name in MATRIX])


@cache
def unbroken(name: str) -> tuple[ToyBackend, History]:
    """Return the run that nothing disturbs; no test may change it."""
    row, history = MATRIX[name], History()
    backend = row.backend()
    return backend, asyncio.run(run_to_end(row.make(backend, history, **row.sections), history))


class KilledError(BaseException):
    pass


def dying(backend: ToyBackend, kill_at: int):
    """Return an answering machine that ends the process, as it were, at its call number ``kill_at``."""
    answer = backend.complete

    async def complete(request):
        if len(backend.requests) == kill_at - 1:
            raise KilledError
        return await answer(request)

    return complete


@pytest.mark.parametrize(
    ("name", "kills"),
    [
        ("everything", 3),
        ("suggestions", 2),
        ("one call", 2),
        ("racing", 2),
        ("refine", 2),
        *(soak(name, 20) for name in MATRIX),
    ],
)
def test_killed_at_a_call_it_goes_on_from_there(name, kills):
    (whole, history), row = unbroken(name), MATRIX[name]
    calls = len(whole.requests)
    for kill_at in range(1, calls + 1, max(1, calls // kills)):
        ledger, resumed, first, second = Ledger.in_memory(), History(), row.backend(), row.backend()
        first.complete = dying(first, kill_at)  # type: ignore[method-assign]
        with pytest.raises(KilledError):
            asyncio.run(run_to_end(row.make(first, resumed, ledger=ledger, **row.sections), resumed))
        asyncio.run(run_to_end(row.make(second, resumed, ledger=ledger, **row.sections), resumed))
        assert facts(resumed) == facts(history)
        assert len(first.requests) + len(second.requests) == calls, "no call is repeated"


@rows("everything", "pareto")
def test_ended_after_each_event_it_goes_on_from_there(name):
    (whole, history), row = unbroken(name), MATRIX[name]
    ledger, resumed, backend = Ledger.in_memory(), History(), row.backend()
    for _ in range(len(history)):
        asyncio.run(run_to_end(row.make(backend, resumed, ledger=ledger, **row.sections), resumed, limit=1))
    assert facts(resumed) == facts(history)
    assert len(backend.requests) == len(whole.requests)


@rows("plain", "compose")
def test_ended_by_a_cap_again_and_again_it_goes_on_and_costs_the_same(name):
    (whole, history), row = unbroken(name), MATRIX[name]
    ledger, resumed, backend, most = Ledger.in_memory(), History(), row.backend(), 0
    while not (resumed and resumed[-1].event.kind is EventKind.RUN_FINISHED):
        most += 61
        made = row.make(backend, resumed, ledger=ledger, caps=Caps(max_calls=most), **row.sections)
        try:
            asyncio.run(run_to_end(made, resumed))
        except BudgetError:
            assert len(backend.requests) == most
    assert facts(resumed) == facts(history)
    assert len(backend.requests) == len(whole.requests)


@rows("suggestions", "racing", "refine")
def test_workers_do_not_change_it(name):
    row, runs = MATRIX[name], []
    for workers in (1, 32):
        history = History()
        sections = row.sections | {"gradient": {**row.sections.get("gradient", {}), "analyst_workers": workers}}
        made = row.make(row.backend(), history, **sections)
        made = replace(made, session=replace(made.session, workers=workers))
        runs.append(facts(asyncio.run(run_to_end(made, history))))
    assert runs[0] == runs[1]


@rows("everything", "suggestions", "racing", "pareto", "compose", "refine")
def test_the_costs_of_all_events_add_up_to_the_calls_that_were_made(name):
    backend, history = unbroken(name)
    cost = history.state().cost
    assert (cost.calls, cost.tokens_in) == (len(backend.requests), 10 * len(backend.requests))
