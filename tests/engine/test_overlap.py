from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paced import Held, Shuffled, optimizer_for, target_on
from toy import EVERYTHING, ONE_STEP, History, ToyBackend, facts, run_to_end, trainer

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.placebo import SENTENCES
from skillgit.engine.search import Monitor, Overlap, Stage
from skillgit.errors import HandoffError
from skillgit.strategies.skillopt import step_batches

SMALL = {"minibatch_size": 2}
PLAIN = {"train": {"num_epochs": 2, "batch_size": 3, "seed": 2}, "gradient": {"minibatch_size": 1}}


MOST_STRETCHES = 6
"""Stages of a short run that one text may come back in."""


def run(backend: ToyBackend, *, workers: int = 64, **options) -> History:
    history = History()
    made = trainer(backend, history, **options)
    object.__setattr__(made.session, "workers", workers)

    async def guarded() -> History:
        # What is held for ever fails the test instead of hanging it; no run comes near it.
        return await asyncio.wait_for(run_to_end(made, history), 60)

    return asyncio.run(guarded())


def asked(backend: ToyBackend) -> list[tuple[str, ...]]:
    return sorted((request.model, *(message.text for message in request.messages)) for request in backend.requests)


@cache
def alone(name: str) -> tuple[object, object]:
    backend = ToyBackend()
    history = run(backend, workers=1, **{"plain": PLAIN, "everything": EVERYTHING}[name])
    return facts(history), asked(backend)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(["plain", "everything"]), st.integers(0, 10**6), st.sampled_from([1, 2, 5, 64]))
def test_neither_pace_nor_workers_change_an_event_a_cost_or_a_prompt(name, chance, workers):
    backend = Shuffled(chance)
    history = run(backend, workers=workers, **{"plain": PLAIN, "everything": EVERYTHING}[name])
    assert (facts(history), asked(backend)) == alone(name)


def test_an_analyst_begins_before_the_slowest_rollout_has_ended():
    [batch] = step_batches(trainer(ToyBackend(), History(), train=ONE_STEP).session, 1)
    backend = Held(target_on(f"{batch[-1].id} "), optimizer_for("Analyse failures"))
    run(backend, train=ONE_STEP, gradient=SMALL)
    assert backend.overlapped


def test_the_last_minibatch_waits_for_all_rollouts():
    backend = ToyBackend()
    run(backend, train=ONE_STEP, gradient={"minibatch_size": 8})
    kinds = [target_on("train")(r) or optimizer_for("Analyse")(r) * 2 for r in backend.requests]
    assert kinds.index(2) > max(place for place, kind in enumerate(kinds) if kind is True)


def test_the_experiment_is_carried_out_beside_the_analysts():
    backend = Held(optimizer_for("Analyse failures"), optimizer_for("Write a probe"))
    run(backend, train=ONE_STEP, gradient=SMALL | {"use_deep_reflect": True})
    assert backend.overlapped


def test_guidance_is_measured_while_the_memory_is_written():
    def guided(request) -> bool:
        return target_on("selection")(request) and "- amber birch coral dune" in request.messages[0].text

    backend = Held(optimizer_for("Optimizer memory"), guided, script={"Analyse failures": lambda _: '{"edits": []}'})
    history = run(backend, train=ONE_STEP | {"num_epochs": 3})
    assert backend.overlapped
    proposed = next(t.event for t in history if t.event.kind is EventKind.SLOW_PROPOSED)
    assert (proposed.memory, proposed.verdict.decision.accepted) == ("- words help", True)


def test_placebos_and_tests_do_not_wait_for_each_other():
    def placebo(request) -> bool:
        return target_on("selection")(request) and SENTENCES[0] in request.messages[0].text

    backend = Held(placebo, target_on("test7 "))
    run(backend, train=ONE_STEP | {"placebo": 1})
    assert backend.overlapped


@given(st.sampled_from([1, 2, 5, 64]), st.sampled_from(["mixed", "changed", "unchanged"]))
@settings(max_examples=8, deadline=None)
def test_all_items_of_a_text_are_asked_before_those_of_the_next(workers, policy):
    backend = ToyBackend()
    run(
        backend,
        workers=workers,
        train={"num_epochs": 2, "batch_size": 4, "seed": 2, "placebo": 2},
        optimizer={"slow_update_samples": 8, "longitudinal_pair_policy": policy},
        gate={"repeats": 2},
    )
    texts = [request.messages[0].text for request in backend.requests if request.model == "target"]
    stretches = Counter(text for text, _ in groupby(texts))
    # A text comes back in another stage, such as the next step or the test, and never by turns with another one.
    assert max(stretches.values()) <= MOST_STRETCHES


def test_an_analyst_that_fails_stops_no_rollout():
    class Away(Held):
        async def complete(self, request):
            if optimizer_for("Analyse")(request):
                self.requests.append(request)
                self.arrived.set()
                raise HandoffError("nobody is there", hint="answer")
            return await super().complete(request)

    backend = Away(target_on("train0 "), lambda _: False)
    with pytest.raises(HandoffError):
        run(backend, train=ONE_STEP, gradient=SMALL)
    assert sum(map(target_on("train"), backend.requests)) == 8
    assert sum(map(optimizer_for("Analyse"), backend.requests)) == 4


def test_stages_that_overlap_are_shown_one_after_the_other():
    shown: list[tuple[Stage, int, int]] = []
    overlap = Overlap(Monitor(report=lambda seen: shown.append((seen.stage, seen.done, seen.total))))
    rolling, reading, probing = overlap.branch(), overlap.branch(), overlap.branch()
    rolling.stage(Stage.ROLLOUT, 2)
    rolling.tick()
    probing.stage(Stage.PROBE, 2)
    reading.stage(Stage.REFLECT, 2)
    reading.tick()
    rolling.tick()
    probing.tick()
    reading.tick()
    probing.tick()
    last = {stage: (done, total) for stage, done, total in shown}
    assert list(dict.fromkeys(stage for stage, _, _ in shown)) == [Stage.ROLLOUT, Stage.REFLECT, Stage.PROBE]
    assert last == {Stage.ROLLOUT: (1, 2), Stage.REFLECT: (1, 2), Stage.PROBE: (2, 2)}
    assert all(done <= total for _, done, total in shown)


def test_what_is_shown_of_a_run_never_exceeds_its_totals():
    looks = []
    history = History()
    made = trainer(Shuffled(4), history, **EVERYTHING)
    object.__setattr__(made.session.monitor, "report", looks.append)
    asyncio.run(run_to_end(made, history))
    overlapping = {Stage.ROLLOUT, Stage.REFLECT, Stage.PROBE, Stage.TEST}
    assert {look.stage for look in looks} >= overlapping | {Stage.BASELINE, Stage.EVALUATE}
    assert [look for look in looks if look.stage in overlapping and look.done > look.total] == []
