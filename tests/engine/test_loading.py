"""Whether an agent loads the skill is measured in each rollout, said first, and decides whether a run begins at all."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import ONE_STEP, History, ToyBackend, run_to_end, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import EvaluationSummary, LoadCounts, Loading, Scored, Split, load_counts
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.outcomes import outcome_row, read_outcome
from skillgit.engine.evidence_files import rollouts_files
from skillgit.errors import ExitCode, NotLoadedError
from skillgit.plugin.backend import Reply, Usage
from skillgit.store.trailer_table import SUMMARY

NOTE = "the agent did not load the skill, so this says nothing about its rules"
PLAN = ONE_STEP


@dataclass
class AgentBackend(ToyBackend):
    """A target that says of its n-th rollout whether it loaded the skill."""

    says: list[Loading | None] = field(default_factory=list)

    def _target(self, messages):
        number = sum(request.model == "target" for request in self.requests) - 1
        text, loading = super()._target(messages), self.says[number % len(self.says)]
        return Reply(text=text, usage=Usage(tokens_in=10, tokens_out=2), loading=loading)

    def asked(self, model):
        return [request for request in self.requests if request.model == model]


def trained(*says, ledger=None, history=None, **train):
    backend, history = AgentBackend(says=list(says)), history or History()
    made = trainer(backend, history, train=PLAN | train, ledger=ledger, optimizer={"use_slow_update": False})
    asyncio.run(run_to_end(made, history))
    return backend, history


def stopped(*says, **more):
    backend, history = AgentBackend(says=list(says)), History()
    made = trainer(backend, history, train=PLAN, optimizer={"use_slow_update": False}, **more)
    with pytest.raises(NotLoadedError) as error:
        asyncio.run(run_to_end(made, history))
    return backend, history, error.value


def test_a_text_that_is_never_read_is_not_trained():
    backend, history, error = stopped(Loading.NOT_LOADED)
    assert [transition.event.kind for transition in history] == [EventKind.RUN_STARTED]
    assert history[0].event.evaluation.loads == LoadCounts(0, 8, 0)
    assert not backend.asked("optimizer")
    assert len(backend.asked("target")) == 8, "no step runs ahead of it"
    assert error.message == "skill loaded in 0 of 8 rollouts of the baseline, so no change to its text can be measured"
    assert error.exit_code == ExitCode.NOT_LOADED


def test_the_run_goes_on_where_the_user_wants_it():
    ledger = Ledger.in_memory()
    _, history, _ = stopped(Loading.NOT_LOADED, ledger=ledger)
    backend, history = trained(Loading.NOT_LOADED, ledger=ledger, history=history, require_loading=False)
    prompts = [request.messages[1].text for request in backend.asked("optimizer")]
    assert prompts
    assert all(NOTE in prompt for prompt in prompts if "<trajectories" in prompt)
    assert history[-1].event.why.startswith("v")
    assert ": skill loaded in 0 of 8 rollouts, so the score says little about its text. " in history[-1].event.why
    assert backend.requests[0].model == "target", "the baseline is not measured again"
    assert len(history) > 2


@pytest.mark.parametrize("says", [(None,), (Loading.LOADED,), (Loading.UNKNOWN,)])
def test_an_agent_that_loads_it_is_trained_as_any_model(says):
    (backend, history), (plain, _) = trained(*says), trained(None)
    assert [request.messages for request in backend.asked("optimizer")] == [
        request.messages for request in plain.asked("optimizer")
    ]
    loads = history[0].event.evaluation.loads
    expected = {None: None, Loading.LOADED: LoadCounts(8, 0, 0), Loading.UNKNOWN: LoadCounts(0, 0, 8)}
    assert loads == expected[says[0]]
    rows = json.loads(history[0].evidence["selection.json"])
    assert [row.get("skill") for row in rows] == [says[0] and says[0].value] * 8
    assert ("skill" in history[-1].event.why.split(".")[0]) == (loads is not None)


def test_one_rollout_that_loads_it_is_enough_to_begin():
    backend, history = trained(Loading.LOADED, *[Loading.NOT_LOADED] * 7)
    assert history[0].event.evaluation.loads == LoadCounts(1, 7, 0)
    assert backend.asked("optimizer")


def test_what_is_not_known_stops_nothing():
    _, history = trained(Loading.UNKNOWN, *[Loading.NOT_LOADED] * 7)
    assert history[0].event.evaluation.loads == LoadCounts(0, 7, 1)
    assert len(history) > 1


def test_a_rollout_that_is_reused_says_the_same():
    ledger = Ledger.in_memory()
    _, first = trained(Loading.LOADED, Loading.NOT_LOADED, ledger=ledger)
    backend, second = trained(None, ledger=ledger)
    assert not backend.asked("target")
    assert [t.event.evaluation.loads for t in first[:-1]] == [t.event.evaluation.loads for t in second[:-1]]


@pytest.mark.parametrize("loading", [None, *Loading])
def test_a_row_of_the_evidence_keeps_it(loading):
    row = json.loads(json.dumps(outcome_row(Scored(1.0, 0.5, loading=loading))))
    assert read_outcome(row).loading is loading
    assert ("skill" in row) == (loading is not None)
    assert read_outcome({"hard": 1.0, "soft": 1.0, "skill": "a word of later"}).loading is None
    assert rollouts_files("x", []) == {"x.json": b"[]\n"}


@given(st.lists(st.sampled_from([None, *Loading]), max_size=12))
def test_counts_are_those_of_the_outcomes(values):
    counts = load_counts(Scored(1.0, 1.0, loading=value) for value in values)
    known = [value for value in values if value is not None]
    assert (counts is None) == (not known)
    if counts is None:
        return
    assert counts.loaded + counts.ignored + counts.unknown == len(known)
    assert counts.is_never == (set(known) == {Loading.NOT_LOADED})
    assert counts.is_rare == (counts.loaded < counts.ignored)
    assert f"of {len(known)} rollout" in counts.phrase
    assert counts.sentence.startswith(counts.phrase)
    summary = EvaluationSummary(
        split=Split.SELECTION, item_set="s", n=9, scored=9, hard=0.5, soft=0.5, seed=1, loads=counts
    )
    assert SUMMARY.read(SUMMARY.write(summary)) == summary


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        ((), None),
        ((None, None), None),
        ((None, Loading.NOT_LOADED), Loading.NOT_LOADED),
        ((Loading.NOT_LOADED, Loading.UNKNOWN), Loading.UNKNOWN),
        ((Loading.UNKNOWN, Loading.LOADED, Loading.NOT_LOADED), Loading.LOADED),
    ],
)
def test_an_attempt_of_several_calls_has_loaded_what_one_of_them_has(each, expected):
    assert Loading.of_calls(each) is expected
