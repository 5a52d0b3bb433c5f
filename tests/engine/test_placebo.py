from __future__ import annotations

import asyncio
import json
from random import Random

from toy import ONE_STEP, History, ToyBackend, run_to_end, trainer

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.placebo import Placebo


class NoisyBackend(ToyBackend):
    """A target that flips a coin where it lacks the word; each draw is one of its own."""

    def _target(self, messages):
        self.coin = getattr(self, "coin", Random(7))  # noqa: S311 - noise
        return super()._target(messages) if self.coin.random() < 0.5 else "yes"


def run(backend, *, ledger=None, history=None, **train):
    history = History() if history is None else history
    made = trainer(backend, history, ledger=ledger, train=ONE_STEP | train)
    return asyncio.run(run_to_end(made, history))


def test_a_target_without_noise_never_lets_a_placebo_pass_and_says_that_it_has_no_noise():
    backend = ToyBackend()
    history = run(backend, placebo=3)
    finished = history[-1].event
    assert finished.kind is EventKind.RUN_FINISHED
    assert finished.placebo == Placebo(n=3, accepted=0)
    assert "Placebo: 0 of 3 candidates that change nothing passed the gate (rate 0.00)." in finished.why
    assert "this target answers alike every time" in finished.why
    rows = json.loads(history[-1].evidence["placebo.json"])
    assert [row["decision"] for row in rows] == ["reject"] * 3
    assert len({row["change"] for row in rows}) == 3


def test_a_noisy_target_lets_placebos_pass():
    history = run(NoisyBackend(script={"Analyse failures": lambda _: '{"edits": []}'}), placebo=20)
    finished = history[-1].event
    assert 0 < finished.placebo.accepted < 20
    rows = json.loads(history[-1].evidence["placebo.json"])
    assert finished.placebo.accepted == sum(row["score"] > row["current"] for row in rows)
    assert "answers alike" not in finished.why


def test_placebos_are_fresh_draws_and_never_replayed():
    backend = ToyBackend()
    history = run(backend, placebo=6)
    before = len([r for r in backend.requests if r.model == "target"])
    bare = ToyBackend()
    run(bare)
    assert before - len([r for r in bare.requests if r.model == "target"]) == 6 * 8
    assert history.state().version == 1, "no placebo becomes a version"


def test_without_placebos_nothing_is_said_of_them():
    finished = run(ToyBackend())[-1]
    assert finished.event.placebo is None
    assert "lacebo" not in finished.event.why
    assert "placebo.json" not in finished.evidence
