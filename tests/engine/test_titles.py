"""The title and the reasons of a candidate name what was applied, and nothing that was only proposed."""

from __future__ import annotations

import asyncio
import json
from itertools import product

import pytest
from soaking import soak
from test_leaks import SecretiveEnvironment
from toy import ONE_STEP, SEED, History, ToyBackend, run_to_end, trainer

from skillgit.domain.edit import Edit, Op, title_of
from skillgit.domain.event import CANDIDATES, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Origin

KINDS = ("Analyse failures", "Reflect on an epoch")
SECRET = "sk-" + "a1B2c3D4" * 5
WORDS = ("quokka", "walrus", "heron")
SKIPPED = {
    "anchor-missing": lambda word: {"op": "replace", "anchor": f"nothing like {word}", "content": f"- {word}"},
    "ambiguous": lambda word: {"op": "insert_after", "anchor": "e", "content": f"- {word}"},
    "leak": lambda word: {
        "op": "append",
        "content": f"- {word}: what selection3town found by the selection3river is Gold Of Selection3.",
    },
    "secret": lambda word: {"op": "append", "content": f"- {word} {SECRET}"},
    "no such file": lambda word: {"op": "delete", "file": "notes.md", "anchor": word},
}
TITLE = "teach " + ", ".join(WORDS)
REASONING = f"Nobody knows {', '.join(WORDS)}."


def edits_of(applied: tuple[bool, ...], way: str) -> list[dict[str, object]]:
    return [
        {"op": "append", "content": f"- {word}", "support": 9 - place} if applies else SKIPPED[way](word)
        for place, (word, applies) in enumerate(zip(WORDS, applied, strict=True))
    ]


def events(kind: str, edits: list[dict[str, object]], **options: object) -> list[Event]:
    reply = json.dumps({"title": TITLE, "reasoning": REASONING, "edits": edits})
    settings = {"environment": SecretiveEnvironment(), "train": ONE_STEP} | options
    made = trainer(ToyBackend(script={kind: lambda _: reply}), history := History(), **settings)
    asyncio.run(run_to_end(made, history))
    origin = Origin.META if kind == "Reflect on an epoch" else Origin.STEP
    judged = [transition.event for transition in history if transition.event.kind in CANDIDATES]
    return [event for event in judged if event.origin is origin]


def assert_named(event: Event, applied: list[str]) -> None:
    reasons = [paragraph for paragraph in event.why.split("\n\n") if not paragraph.startswith("left out: ")]
    said = "\n".join((event.title, *reasons))
    assert {word for word in WORDS if word in event.title} == set(applied)
    assert {word for word in WORDS if word in said} <= set(applied)
    assert event.patch.applied == len(applied)


@pytest.mark.parametrize(
    ("kind", "way"), [soak(*pair) if number % 2 else pair for number, pair in enumerate(product(KINDS, SKIPPED))]
)
def test_for_any_subset_of_edits_the_words_name_what_was_applied(kind, way):
    optimizer = {"use_slow_update": False, "use_meta_reflect": kind == "Reflect on an epoch", "meta_learning_rate": 3}
    for applied in product((True, False), repeat=len(WORDS)):
        if not any(applied):
            continue
        (event,) = events(kind, edits_of(applied, way), optimizer=optimizer)
        assert_named(event, [word for word, applies in zip(WORDS, applied, strict=True) if applies])
        assert event.patch.skipped == applied.count(False)
        assert (event.title == TITLE) == all(applied)
        assert (REASONING in event.why) == all(applied)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_budget_left_out_is_not_named(kind):
    reflects = kind == "Reflect on an epoch"
    optimizer = {"use_slow_update": False, "use_meta_reflect": reflects, "meta_learning_rate": 2, "learning_rate": 2}
    (event,) = events(kind, edits_of((True, True, True), "leak"), optimizer=optimizer)
    assert_named(event, list(WORDS[:2]))


def test_a_part_of_a_patch_bears_its_own_name_and_tells_of_all_that_was_left_out():
    seed = SEED.with_text("SKILL.md", SEED.document + "- coral\n")
    edits = [
        {"op": "replace", "anchor": "- begin well", "content": "- walrus, spoil everything", "support": 5},
        {"op": "append", "content": "- quokka amber birch", "support": 1},
        {"op": "delete", "anchor": "- heron"},
    ]

    class SpoiltBackend(ToyBackend):
        def _target(self, messages):
            return "no" if "spoil everything" in messages[0].text else super()._target(messages)

    reply = json.dumps({"title": TITLE, "reasoning": REASONING, "edits": edits})
    history = History()
    made = trainer(
        SpoiltBackend(script={"Analyse failures": lambda _: reply}),
        history,
        train=ONE_STEP,
        optimizer={"use_slow_update": False, "salvage": True},
        gate={"early_stop": False},
    )
    object.__setattr__(made.start, "skill", seed)
    asyncio.run(run_to_end(made, history))
    event = history[1].event
    assert event.kind is EventKind.ACCEPTED
    assert event.patch.salvaged
    assert event.title == "quokka amber birch"
    assert REASONING not in event.why
    rows = json.loads(history[1].evidence["patch.json"])["edits"]
    assert [row["status"] for row in rows] == ["set-aside", "applied", "anchor-missing"]
    assert all(row["detail"] for row in rows if row["status"] != "applied")
    assert event.patch.skipped == 2


@pytest.mark.parametrize(
    ("edits", "title"),
    [
        ([Edit(op=Op.APPEND, content="## Units\n\n- Give no unit.")], "Units"),
        ([Edit(op=Op.APPEND, content="\n- Give no unit.\n")], "Give no unit"),
        ([Edit(op=Op.DELETE, anchor="- Give a unit.")], "delete Give a unit"),
        ([Edit(op=Op.APPEND, content="1. One."), Edit(op=Op.APPEND, content="- Two")], "One, Two"),
        ([Edit(op=Op.APPEND, content="One"), Edit(op=Op.APPEND, content="One")], "One"),
        ([], ""),
    ],
)
def test_a_title_is_made_of_the_first_lines(edits, title):
    assert title_of(edits) == title
