"""Optimizer calls that are never answered: their part is left out, the run goes on, and nobody asks them again."""

from __future__ import annotations

import asyncio
import json

import pytest
from toy import History, ToyBackend, analyse, run_to_end, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import RefusalError, RetryableBackendError, ServiceError

EVERYTHING = {
    "train": {"num_epochs": 3, "batch_size": 4, "seed": 1},
    "gradient": {"minibatch_size": 1, "use_deep_reflect": True},
    "optimizer": {"learning_rate": 1, "min_learning_rate": 1, "use_meta_reflect": True},
}
STAGES = {
    "Analyse failures": "analyst",
    "Merge patches": "merge",
    "Rank edits": "rank",
    "Slow update": "slow_update",
    "Optimizer memory": "meta_skill",
    "Reflect on an epoch": "meta_reflect",
    "Write a probe": "probe",
}


def refusing(prompt: str, error: Exception) -> ToyBackend:
    def refuse(_: str) -> str:
        raise error

    # Merged proposals would be one where the optimizer is asked to rank, so that it has to leave two.
    two = [{"op": "append", "content": f"- {word}"} for word in ("amber", "birch")]
    # And only what has words in common is merged by a model.
    related = {"Analyse failures": lambda text: analyse(text).replace('"- ', '"- word ')}
    script = related | {"Merge patches": lambda _: json.dumps({"edits": two})}
    return ToyBackend(script=script | {prompt: refuse})


@pytest.mark.parametrize("prompt", STAGES)
def test_a_run_goes_on_without_what_one_kind_of_call_would_have_said(prompt):
    ledger, first = Ledger.in_memory(), refusing(prompt, RefusalError("the model refuses by policy"))
    history = asyncio.run(run_to_end(trainer(first, made := History(), ledger=ledger, **EVERYTHING), made))
    assert history[-1].event.kind is EventKind.RUN_FINISHED
    told = [json.loads(t.evidence["unanswered.json"]) for t in history if "unanswered.json" in t.evidence]
    assert told
    assert {(row["stage"], row["kind"], row["reason"]) for rows in told for row in rows} == {
        (STAGES[prompt], "refusal", "the model refuses by policy")
    }
    asked = [str(request.messages) for request in first.requests if request.messages[0].text.startswith(f"# {prompt}")]
    assert len(asked) == sum(map(len, told))
    again = refusing(prompt, AssertionError("nobody is asked again"))
    resumed = asyncio.run(run_to_end(trainer(again, anew := History(), ledger=ledger, **EVERYTHING), anew))
    assert [(t.event, t.skill, t.evidence) for t in resumed] == [(t.event, t.skill, t.evidence) for t in history]
    assert again.requests == []


def test_a_step_without_an_analyst_that_is_answered_is_skipped_and_says_why():
    backend = refusing("Analyse failures", RefusalError("the model refuses by policy"))
    history = asyncio.run(
        run_to_end(trainer(backend, made := History(), train={"num_epochs": 1, "batch_size": 4}), made)
    )
    skipped = history[1].event
    assert skipped.kind is EventKind.SKIPPED
    assert skipped.title == "no analyst is answered"
    assert "will never be answered: the model refuses by policy." in skipped.why


def test_an_optimizer_whose_provider_is_down_still_ends_the_process():
    backend = refusing("Analyse failures", RetryableBackendError("503"))
    with pytest.raises(ServiceError, match="503"):
        asyncio.run(run_to_end(trainer(backend, made := History()), made))
