"""An edit that has no place, or a reply that was cut, is asked about once; what stays lost is told with its reason."""

from __future__ import annotations

import asyncio
import json

import pytest
from toy import ONE_STEP, History, ToyBackend, run_to_end, trainer

from skillgit.domain.event_kinds import EventKind
from skillgit.plugin.backend import Reply, Usage

WRONG = {"op": "replace", "anchor": "- begin wel, always", "content": "- begin well: amber"}
RIGHT = {"op": "replace", "anchor": "- begin well", "content": "- begin well: amber"}
RULE = {"op": "append", "content": "- quokka"}


def run(script, **options) -> tuple[ToyBackend, History]:
    backend, history = ToyBackend(script={"Analyse failures": script}), History()
    asyncio.run(run_to_end(trainer(backend, history, train=ONE_STEP, **options), history))
    return backend, history


def questions(backend: ToyBackend) -> list[str]:
    return [request.messages[-1].text for request in backend.requests if "have no place" in request.messages[-1].text]


def test_the_analyst_is_asked_once_with_the_reason_and_the_nearest_lines():
    backend, history = run(lambda prompt: json.dumps({"edits": [RIGHT if "have no place" in prompt else WRONG, RULE]}))
    (question,) = questions(backend)
    assert "edits[0]: the anchor does not occur in the file" in question
    assert "\n  - begin well\n" in question
    assert "edits[1]" not in question
    event = history[1].event
    assert event.kind is EventKind.ACCEPTED
    assert (event.patch.applied, event.patch.skipped) == (2, 0)
    assert "- begin well: amber" in history[1].skill.document


@pytest.mark.parametrize("second", ["no JSON at all", json.dumps({"edits": [WRONG, RULE]})])
def test_what_stays_lost_is_left_out_and_told_and_the_rest_goes_on(second):
    backend, history = run(lambda prompt: second if "have no place" in prompt else json.dumps({"edits": [WRONG, RULE]}))
    event = history[1].event
    assert len(questions(backend)) == 1
    assert (event.patch.applied, event.patch.skipped) == (1, 1)
    assert "left out: replace: - begin well: amber (anchor-missing): the anchor does not occur in the file" in event.why
    rows = json.loads(history[1].evidence["patch.json"])["edits"]
    assert [(row["status"], row["anchor"]) for row in rows] == [("applied", ""), ("anchor-missing", WRONG["anchor"])]


def test_a_lost_edit_takes_no_place_in_the_budget():
    lost = [WRONG | {"support": 9, "content": f"- x {number}"} for number in range(3)]
    _, history = run(
        lambda _: json.dumps({"edits": [*lost, RULE]}),
        optimizer={"learning_rate": 1, "min_learning_rate": 1, "lr_scheduler": "constant"},
    )
    event = history[1].event
    assert (event.patch.ranked, event.patch.applied, event.patch.skipped) == (1, 1, 3)


def test_where_nothing_is_left_the_history_says_what_was_lost():
    backend, history = run(lambda _: json.dumps({"edits": [WRONG]}))
    assert history[1].event.kind is EventKind.SKIPPED
    assert history[1].event.title == "no edit applies"
    assert "the anchor does not occur" in history[1].event.why
    assert not [request for request in backend.requests if "Merge" in request.messages[0].text[:40]]


def test_a_reply_that_was_cut_is_not_mended_but_asked_for_again_in_fewer_words():
    whole = json.dumps({"edits": [{"op": "append", "content": "- amber"}, {"op": "append", "content": "- birch"}]})
    cut = whole[: whole.index("birch") - 3]
    prompts: list[str] = []

    def reply(prompt: str) -> Reply | str:
        prompts.append(prompt)
        return (
            whole
            if "was cut" in prompt
            else Reply(text=cut, usage=Usage(tokens_in=10, tokens_out=9), finish_reason="length")
        )

    _, history = run(reply)
    assert sum("was cut" in prompt for prompt in prompts) == 1
    assert history[1].event.patch.applied == 2


def test_a_reply_that_is_whole_at_its_limit_counts():
    whole = json.dumps({"edits": [{"op": "append", "content": "- amber"}]})
    usage = Usage(tokens_in=10, tokens_out=9)
    backend, history = run(lambda _: Reply(text=whole, usage=usage, finish_reason="length"))
    assert history[1].event.patch.applied == 1
    assert not any("was cut" in request.messages[-1].text for request in backend.requests)
