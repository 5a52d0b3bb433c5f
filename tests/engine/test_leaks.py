from __future__ import annotations

import asyncio
import json

import pytest
from toy import ONE_STEP, History, ToyBackend, ToyEnvironment, run_to_end, trainer

from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.leaks import Secrets
from skillgit.plugin.environment import secrets_of

CHECK = "assert answer.lower() == 'a secret word that nobody is told about' and len(answer) > 3"


class SecretiveEnvironment(ToyEnvironment):
    """Every item has a gold answer and a check that the toy's scorer does not even use."""

    def secrets(self, item):
        return Secrets(
            answers=(f"Gold Of {item.id.capitalize()}",),
            inputs=(f"What did {item.id}town find by the {item.id}river?",),
            checks=(CHECK,),
        )


def run(edits, *, title="add", reasoning="It is missing.", findings=(), **options):
    reply = json.dumps({"title": title, "reasoning": reasoning, "edits": edits, "findings": findings})
    backend, history = ToyBackend(script={"Analyse failures": lambda _: reply}), History()
    options = {"environment": SecretiveEnvironment(), "train": ONE_STEP} | options
    return backend, asyncio.run(run_to_end(trainer(backend, history, **options), history))


HONEST = {"op": "append", "content": "- amber"}
SHOWN, HIDDEN = "train3", ("selection3", "test3")
EVERY_SPLIT = pytest.mark.parametrize("item", [SHOWN, *HIDDEN])


def tied(item: str) -> str:
    return f"What {item}town found by the {item}river is Gold Of {item.capitalize()}."


def leaking(item: str) -> dict[str, str]:
    return {"op": "append", "content": f"- {tied(item)}"}


def refusal(item: str) -> str:
    """Return what is said of a leak: of an item that steps show, what is tied to what."""
    if item in HIDDEN:
        return "leak: ties words of a selection or test item to its answer"
    return f'leak: ties "{item}town {item}river" of item {item} to its answer "gold of {item}"'


@EVERY_SPLIT
def test_an_edit_that_quotes_an_answer_is_quarantined_and_the_rest_goes_on(item):
    _, history = run([leaking(item), HONEST])
    event, evidence = history[1].event, json.loads(history[1].evidence["patch.json"])
    assert event.kind is EventKind.ACCEPTED
    assert (event.patch.applied, event.patch.skipped) == (1, 1)
    assert [(row["status"], row["detail"]) for row in evidence["edits"]] == [
        ("applied", ""),
        ("invalid", refusal(item)),
    ]
    assert "Gold" not in history[1].skill.document


@EVERY_SPLIT
def test_if_nothing_is_left_the_step_is_skipped_for_free(item):
    backend, history = run([leaking(item)])
    assert history[1].event.kind is EventKind.SKIPPED
    assert refusal(item) in history[1].event.why
    assert len([r for r in backend.requests if r.model == "target"]) == 3 * 8, "baseline, batch and test only"


@EVERY_SPLIT
def test_a_commit_names_the_words_that_were_refused_and_repeats_nothing_around_them(item):
    findings = [{"pattern": tied(item)}, {"pattern": "The word is missing."}]
    _, history = run([leaking(item), HONEST], title=tied(item), reasoning=tied(item), findings=findings)
    event = history[1].event
    assert "Gold" not in event.title + event.why
    assert f"left out: {refusal(item)}" in event.why
    subject = "a selection or test item" if item in HIDDEN else f"item {item}"
    assert f"(left out: it gives {subject} away)" in event.why
    assert "The word is missing." in event.why


@EVERY_SPLIT
def test_only_of_items_that_steps_show_the_optimizer_learns_that_words_and_answer_belong_together(item):
    backend, _ = run([leaking(item), HONEST], train=ONE_STEP | {"num_epochs": 2})
    asked = [message.text for r in backend.requests if r.model == "optimizer" for message in r.messages]
    own = {leaking(item)["content"], json.dumps(leaking(item))}
    complaints = [text for text in asked if "leak:" in text]
    assert any("say it without them" in text for text in complaints), "who proposes it may mend it"
    for text in complaints:
        rest = text
        for words in own:
            rest = rest.replace(words, "")
        assert (item in rest or "gold of" in rest) is (item == SHOWN), rest


def test_a_rule_that_repeats_a_cue_of_the_data_is_refused_with_its_words(monkeypatch):
    cue = "A stronger result than the others can be proven."
    monkeypatch.setattr("skillgit.engine.search.cue_texts", lambda *_: (cue,))
    rule = "Where a choice says that a stronger result than the others can be proven, take it."
    stated = "a stronger result than the others can be proven"
    leak = f'leak: states "{stated}", words of a choice that is right wherever it is listed'
    _, history = run([{"op": "append", "content": f"- {rule}"}, HONEST], title=rule, findings=[{"pattern": rule}])
    event, evidence = history[1].event, json.loads(history[1].evidence["patch.json"])
    assert [(row["status"], row["detail"]) for row in evidence["edits"]] == [("applied", ""), ("invalid", leak)]
    assert "stronger" not in history[1].skill.document
    assert f"left out: {leak}" in event.why
    assert "(left out: it gives a cue of the data away)" in event.why


def test_the_lint_can_be_turned_off():
    _, history = run([leaking("test3"), HONEST], evaluation={"leak_lint": False})
    assert history[1].event.patch.applied == 2


def test_an_environment_that_keeps_no_secrets_has_none():
    environment = ToyEnvironment()
    _, history = run([leaking("test3"), HONEST], environment=environment)
    assert secrets_of(environment, environment.items(Split.TRAIN)[0]) == Secrets()
    assert history[1].event.patch.applied == 2


@pytest.mark.parametrize("mode", ["patch"])
def test_no_prompt_ever_contains_the_text_of_a_check(mode):
    class Checked(SecretiveEnvironment):
        def items(self, split):
            return tuple(
                type(item)(id=item.id, content={**item.content, "check": CHECK}) for item in super().items(split)
            )

    backend, history = ToyBackend(), History()
    made = trainer(backend, history, environment=Checked(), optimizer={"skill_update_mode": mode})
    asyncio.run(run_to_end(made, history))
    assert {request.model for request in backend.requests} == {"target", "optimizer"}
    for request in backend.requests:
        assert not any("nobody is told" in message.text for message in request.messages)


def test_optimizer_prompts_show_no_item_of_selection_or_test():
    backend, history = ToyBackend(), History()
    asyncio.run(run_to_end(trainer(backend, history), history))
    prompts = [message.text for r in backend.requests if r.model == "optimizer" for message in r.messages]
    assert prompts
    assert not any('<trajectory id="selection' in text or '<trajectory id="test' in text for text in prompts)
    assert not any("selection0 needs" in text or "test0 needs" in text for text in prompts)
