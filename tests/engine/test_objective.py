"""``gate.objective``: what a run makes of texts that score the same with fewer tokens of the target."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from toy import SEED, WORDS, History, ToyBackend, ToyEnvironment, run_to_end, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.event import CANDIDATES, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Objective
from skillgit.domain.run_state import fold
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import ConfigError, RetryableBackendError
from skillgit.plugin.backend import Reply, estimated_usage
from skillgit.strategies.refine import Refine

RULE = "- Say whether the skill has the word, and be sure that you looked at each line of it before you answer"
SOLVED = SEED.with_text("SKILL.md", SEED.document + "".join(f"- {word}\n" for word in WORDS) + RULE + "\n")
DELETE = json.dumps({"title": "say less", "edits": [{"op": "delete", "anchor": RULE, "items": ["train0", "train1"]}]})
GATE = {"objective": "score-then-tokens"}
ONE_EPOCH = {"num_epochs": 1, "batch_size": 8, "seed": 1, "stop_at_ceiling": True}


class CountingBackend(ToyBackend):
    """The toy, which counts the tokens of each call by its texts; ``outage`` calls fail first, and are billed."""

    outage = 0

    async def complete(self, request) -> Reply:
        if request.model == "target" and self.outage:
            self.outage -= 1
            raise RetryableBackendError("overloaded", usage=estimated_usage(request.messages, "no"))
        reply = await super().complete(request)
        return replace(reply, usage=estimated_usage(request.messages, reply.text))


class Uncounted(ToyEnvironment):
    """It has the target's answers from elsewhere."""

    async def rollout(self, item, skill, _):
        trajectory = await super().rollout(item, skill, _Silent())
        return replace(trajectory, answer="yes")


class _Silent:
    async def chat(self, messages):
        return Reply(text="yes", usage=estimated_usage(messages, "yes"))


def run(*, gate=None, skill: Skill = SOLVED, backend=None, ledger=None, environment=None, **sections) -> History:
    history = History()
    backend = backend or CountingBackend(script={"Analyse successes": lambda _: DELETE})
    options = {"train": ONE_EPOCH, "gate": GATE if gate is None else gate} | sections
    made = trainer(backend, history, ledger=ledger, environment=environment, **options)
    made = replace(made, start=replace(made.start, skill=skill))
    return asyncio.run(run_to_end(made, history))


def test_a_rule_that_nobody_needs_is_pruned_though_every_item_is_solved():
    history = run()
    (step,) = (one for one in history if one.event.kind is EventKind.ACCEPTED)
    verdict = step.event.verdict
    assert RULE not in step.skill.document
    assert (verdict.score, verdict.current, verdict.objective) == (1.0, 1.0, Objective.TOKENS)
    assert verdict.tokens < 0.95 * verdict.tokens_before
    assert step.event.why.endswith("it is accepted for fewer tokens.")
    assert f"{verdict.tokens:,.1f} tokens an item, {verdict.tokens_before:,.1f} before" in step.event.why
    assert step.event.evaluation.tokens == verdict.tokens
    assert {type(row["tokens"]) for row in loads(step.evidence["selection.json"])} == {int}
    state, end = history.state(), history[-1].event
    assert state.best == state.version == 1
    assert (end.outcome, state.evaluation(0).tokens) == (RunOutcome.IMPROVED, verdict.tokens_before)
    assert f"({verdict.tokens:,.1f} tokens an item, {verdict.tokens_before:,.1f} with the seed)" in end.why
    assert fold(one.event for one in history) == state


def test_a_gate_of_scores_alone_ends_at_the_full_score_and_refuses_the_tie():
    assert run(gate={})[-1].event.outcome is RunOutcome.CEILING
    history = run(gate={}, train=ONE_EPOCH | {"stop_at_ceiling": False})
    (step,) = (one for one in history if one.event.kind is EventKind.REJECTED)
    assert step.event.verdict.tokens is None
    assert not step.event.why
    assert not any("tokens" in row for row in loads(step.evidence["selection.json"]))


def test_a_rule_that_an_item_needs_stays():
    needed = json.dumps({"edits": [{"op": "delete", "anchor": "- amber"}, {"op": "delete", "anchor": RULE}]})
    history = run(backend=CountingBackend(script={"Analyse successes": lambda _: needed}))
    (step,) = (one for one in history if one.event.kind is EventKind.REJECTED)
    assert step.event.verdict.score < 1.0


@pytest.mark.parametrize("repeats", [0, 2])
def test_what_is_reused_has_the_tokens_that_it_had_and_retries_do_not_count(repeats):
    ledger, backend = Ledger.in_memory(), CountingBackend(script={"Analyse successes": lambda _: DELETE})
    gate = GATE | {"repeats": repeats}
    first = run(gate=gate, ledger=ledger, backend=backend)
    calls = len(backend.requests)
    again = run(gate=gate, ledger=ledger, backend=backend)
    backend.outage = 0
    failing = CountingBackend(script=backend.script)
    failing.outage = 3
    rough = run(gate=gate, backend=failing)
    assert calls == len(backend.requests)
    verdicts = [
        [one.event.verdict for one in history if one.event.kind is EventKind.ACCEPTED] for history in (first, again)
    ]
    assert verdicts[0] == verdicts[1] == [one.event.verdict for one in rough if one.event.kind is EventKind.ACCEPTED]
    assert rough.state().cost.tokens_in > first.state().cost.tokens_in


def test_a_candidate_that_scores_more_with_too_many_tokens_is_refused():
    tokens = run(skill=SEED, backend=CountingBackend()).state().evaluation(0).tokens
    for limit, kind in ((int(tokens), EventKind.REJECTED), (10 * int(tokens), EventKind.ACCEPTED)):
        gate = GATE | {"max_tokens_per_item": limit}
        events = [one.event for one in run(skill=SEED, backend=CountingBackend(), gate=gate)]
        (step,) = (event for event in events if event.kind in CANDIDATES)
        assert step.kind is kind
        assert step.verdict.score > step.verdict.current
        assert ("gate.max_tokens_per_item" in step.why) == (kind is EventKind.REJECTED)


def test_where_no_tokens_are_known_the_run_does_not_begin():
    with pytest.raises(ConfigError, match="tokens are not known of all of the 8 selection items"):
        run(environment=Uncounted())
    assert run(environment=Uncounted(), gate={})[-1].event.outcome is RunOutcome.CEILING


@pytest.mark.parametrize("screening", [0, 2])
@pytest.mark.parametrize("gate", [GATE, {}])
def test_refine_keeps_a_removal_that_breaks_nothing_only_where_tokens_count(gate, screening):
    history = History()
    backend = CountingBackend(script={"Analyse successes": lambda _: DELETE})
    options = {"train": ONE_EPOCH | {"stop_at_ceiling": False}, "gate": gate | {"screening": screening}}
    made = trainer(backend, history, strategy=Refine(), **options)
    made = replace(made, start=replace(made.start, skill=SOLVED))
    asyncio.run(run_to_end(made, history))
    step = history[1]
    assert step.event.kind is (EventKind.ACCEPTED if gate else EventKind.SKIPPED)
    assert history[-1].event.kind is EventKind.RUN_FINISHED


def test_screening_lets_a_shorter_text_pass_that_breaks_nothing_where_tokens_count():
    words = [word for word in WORDS if word != "dune"]
    partly = SEED.with_text("SKILL.md", SEED.document + "".join(f"- {word}\n" for word in words) + RULE + "\n")
    script = {"Analyse failures": lambda _: json.dumps({"edits": []}), "Analyse successes": lambda _: DELETE}
    for gate, kind in ((GATE, EventKind.ACCEPTED), ({}, EventKind.SKIPPED)):
        backend = CountingBackend(script=script)
        history = run(skill=partly, backend=backend, gate=gate | {"screening": 4})
        assert history[1].event.kind is kind
