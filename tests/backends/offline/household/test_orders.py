from __future__ import annotations

import pytest

from skillgit_backends.offline import proposals
from skillgit_backends.offline.household.chores import HARMFUL, Chore
from skillgit_backends.offline.household.orders import chores_in, read_orders
from skillgit_backends.offline.household.wording import IDLE_ADVICE, LABELS, OVERSHOOT, PATTERNS, REMEDY, RULES


@pytest.mark.parametrize("chore", list(Chore))
def test_each_wording_asks_for_its_chore_and_no_other(chore):
    assert {text: chores_in(text) for text in RULES[chore]} == {text: {chore} for text in RULES[chore]}


@pytest.mark.parametrize(
    ("text", "chore"),
    [
        ("Look inside cabinets and drawers that are closed by opening them.", Chore.OPEN),
        ("Rinse the object at a sink when the task wants it clean.", Chore.CLEAN),
        ("Use the microwave to warm food objects that should be hot.", Chore.HEAT),
        ("A cold object is one that was chilled by the fridge.", Chore.COOL),
        ("Switch on the lamp while you hold the object.", Chore.LAMP),
        ("After the first of two objects, return for another.", Chore.BOTH),
        ("Start your search in places where the object normally lies.", Chore.LIKELY),
        ("Go for whatever: pick up every object.", Chore.TAKE_ANY),
    ],
)
def test_other_words_for_it_are_understood(text, chore):
    assert chore in chores_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Do not clean objects at the sink first.",
        "Never heat an object in the microwave first.",
        "Never take every object.",
        "Do not check the inventory after every command.",
        "# Open closed receptacles",
        "<!-- Open closed receptacles. -->",
        "",
        *IDLE_ADVICE,
    ],
)
def test_what_is_denied_or_not_said_is_not_done(text):
    assert chores_in(text) == frozenset()


def test_rules_of_the_reader_are_no_chores():
    texts = [text for wordings in proposals.RULES.values() for text in wordings]
    assert {text: chores_in(text) for text in texts if chores_in(text)} == {}


def test_a_place_may_be_named_for_a_thing():
    orders = read_orders(
        "Look for mugs first in the coffeemachine and in cabinets.\nSearch for a book on the bed first."
    )
    assert orders.first == {"mug": ("cabinet", "coffeemachine"), "book": ("bed",)}


def test_the_tables_tell_of_every_chore():
    assert set(RULES) == set(PATTERNS) == set(LABELS) == set(Chore)
    assert set(OVERSHOOT) | HARMFUL == set(Chore)
    assert set(OVERSHOOT.values()) <= HARMFUL
    assert set(REMEDY) <= HARMFUL
    assert not set(REMEDY.values()) & HARMFUL
