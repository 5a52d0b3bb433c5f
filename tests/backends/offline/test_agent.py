"""The agent, move by move, in a house of three places that is made of text alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.plugin.backend import assistant, system, user
from skillgit_backends.offline import agent
from skillgit_backends.offline.agent import Errand, task_in
from skillgit_backends.offline.rules import RULES, Chore

ROOM = "You are in the middle of a room. Looking quickly around you, you see a {places}.\n\nYour task is to: {task}."
PLACES = "drawer 1, a desk 1, a sinkbasin 1, and a cabinet 1"


def asked(
    task: str, *steps: tuple[str, str], told: tuple[Chore, ...] = (), possible: str = "", places: str = PLACES
) -> str:
    rules = "\n".join(f"- {RULES[chore].wordings[0]}" for chore in told)
    messages = [system(f'You play.\n<skill name="home">\n{rules}\n</skill>')]
    seen = [ROOM.format(places=places, task=task), *(observation for _, observation in steps)]
    for number, observation in enumerate(seen):
        if number:
            messages.append(assistant(f"<action>{steps[number - 1][0]}</action>"))
        shown = f"\n\n<commands>\n{possible}\n</commands>" if possible and number == len(seen) - 1 else ""
        messages.append(user(f"<observation>\n{observation}\n</observation>{shown}"))
    reply = agent.complete(messages)
    assert reply.startswith("<action>")
    return reply.removeprefix("<action>").removesuffix("</action>")


CLOSED = ("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed.")
DESK = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 2, and a pen 1.")
TAKEN = ("take mug 2 from desk 1", "You pick up the mug 2 from the desk 1.")
SINK = ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.")
CABINET = ("go to cabinet 1", "You arrive at cabinet 1. The cabinet 1 is closed.")


def test_it_searches_in_the_order_of_the_room_and_opens_nothing():
    assert asked("put a mug in cabinet") == "go to drawer 1"
    assert asked("put a mug in cabinet", CLOSED) == "go to desk 1"


def test_told_so_it_opens_what_is_closed():
    assert asked("put a mug in cabinet", CLOSED, told=(Chore.OPEN,)) == "open drawer 1"
    opened = ("open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see a mug 1.")
    assert asked("put a mug in cabinet", CLOSED, opened, told=(Chore.OPEN,)) == "take mug 1 from drawer 1"
    assert asked("put a mug in cabinet", CLOSED, told=(Chore.OPEN, Chore.SURFACES)) == "go to desk 1"


def test_told_so_it_searches_where_such_things_lie():
    assert asked("put a pen in cabinet", told=(Chore.LIKELY,)) == "go to desk 1"


def test_it_takes_only_what_the_task_names():
    assert asked("put a pen in cabinet", DESK) == "take pen 1 from desk 1"


def test_it_brings_a_thing_to_its_place_in_the_words_of_the_game():
    steps = (DESK, TAKEN)
    assert asked("put a mug in sinkbasin", *steps) == "go to sinkbasin 1"
    assert asked("put a mug in sinkbasin", *steps, SINK, possible="look\nmove mug 2 to sinkbasin 1").startswith("move ")
    assert asked("put a mug in sinkbasin", *steps, SINK, possible="put mug 2 in/on sinkbasin 1").startswith("put ")
    assert asked("put a mug in cabinet", *steps, CABINET) == "put mug 2 in/on cabinet 1", "it does not notice the door"
    assert asked("put a mug in cabinet", *steps, CABINET, told=(Chore.OPEN,)) == "open cabinet 1"


def test_it_cleans_only_if_told_so():
    steps = (DESK, TAKEN)
    assert asked("put a clean mug in cabinet", *steps) == "go to cabinet 1"
    assert asked("put a clean mug in cabinet", *steps, told=(Chore.CLEAN,)) == "go to sinkbasin 1"
    assert (
        asked("clean some mug and put it in cabinet", *steps, SINK, told=(Chore.CLEAN,))
        == "clean mug 2 with sinkbasin 1"
    )
    done = ("clean mug 2 with sinkbasin 1", "You clean the mug 2 using the sinkbasin 1.")
    assert asked("put a clean mug in cabinet", *steps, SINK, done, told=(Chore.CLEAN,)) == "go to cabinet 1"
    assert asked("put a mug in cabinet", *steps, told=(Chore.CLEAN_ALL,)) == "go to sinkbasin 1"


def test_it_fetches_the_second_thing_only_if_told_so():
    first = ("move mug 2 to sinkbasin 1", "You move the mug 2 to the sinkbasin 1.")
    steps = (DESK, TAKEN, SINK, first)
    assert asked("put two mug in sinkbasin", *steps) == "look"
    assert asked("find two mug and put them in sinkbasin", *steps, told=(Chore.BOTH,)) == "go to drawer 1"


def test_it_uses_the_lamp_only_if_told_so():
    desk = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a desklamp 1, and a mug 2.")
    steps = (desk, TAKEN)
    assert asked("look at mug under the desklamp", *steps) == "examine mug 2"
    assert asked("examine the mug with the desklamp", *steps, told=(Chore.LAMP,)) == "use desklamp 1"


@pytest.mark.parametrize(
    ("chore", "command"),
    [(Chore.CHECK, "inventory"), (Chore.CLEAN_ALL, "go to drawer 1")],
)
def test_harmful_rules_are_obeyed_too(chore, command):
    assert asked("put a plate in cabinet", DESK, told=(chore,)) == command


def test_places_of_older_games_are_understood():
    older = ("go to desk 1", "You arrive at loc 5. On the desk 1, you see a mug 2, and a pen 1.")
    assert asked("put a mug in cabinet", older) == "take mug 2 from desk 1"


def test_it_goes_round_again_when_all_was_seen():
    empty = [
        (f"go to {place}", f"You arrive at {place}. On the {place}, you see nothing.") for place in ("desk 1", "bed 1")
    ]
    assert asked("put a mug in safe", *empty, places="desk 1, and a bed 1") == "go to desk 1"


@pytest.mark.parametrize(
    ("sentence", "task"),
    [
        ("put some vase in safe", Errand(thing="vase", target="safe")),
        ("put a hot egg in garbagecan", Errand(thing="egg", target="garbagecan", chore=Chore.HEAT)),
        ("cool some bread and put it in countertop", Errand(thing="bread", target="countertop", chore=Chore.COOL)),
        ("put two book in desk", Errand(thing="book", target="desk", chore=Chore.BOTH)),
        ("examine the book with the desklamp", Errand(thing="book", target="desklamp", chore=Chore.LAMP)),
        ("sing", Errand(thing="", target="")),
    ],
)
def test_tasks_are_understood(sentence, task):
    assert task_in(f"A room.\n\nYour task is to: {sentence}.") == task


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_any_conversation_gets_a_command(texts):
    messages = [system("x"), *((assistant if number % 2 else user)(text) for number, text in enumerate(texts))]
    assert agent.complete(messages).startswith("<action>")
