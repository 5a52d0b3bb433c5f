"""How the analyst words what it proposes for household games: rules with several wordings each, causes, idle advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.edit import normalised
from skillgit_backends.offline.household.chores import Chore
from skillgit_backends.offline.proposals import draw

if TYPE_CHECKING:
    from collections.abc import Iterable

RULES: dict[Chore, tuple[str, ...]] = {
    Chore.OPEN: (
        "Open closed receptacles: look inside while you search, and open the target before you put something in.",
        "A closed cabinet, drawer or fridge may hold what you look for, so open it before you go on.",
        "When you stand before a closed receptacle, open it first.",
    ),
    Chore.CLEAN: (
        "If the task asks for a clean object, clean it at the sinkbasin before you bring it to its place.",
        "When something clean is wanted, take the object to the sinkbasin first and clean it there.",
        "Wash an object at the sinkbasin if the task says clean, and only then put it down.",
    ),
    Chore.HEAT: (
        "If the task asks for a hot object, heat it with the microwave before you bring it to its place.",
        "When something hot is wanted, take the object to the microwave first and heat it there.",
        "Warm an object with the microwave if the task says hot or heat, and only then put it down.",
    ),
    Chore.COOL: (
        "If the task asks for a cool object, cool it with the fridge before you bring it to its place.",
        "When something cool is wanted, take the object to the fridge first and cool it there.",
        "Chill an object with the fridge if the task says cool, and only then put it down.",
    ),
    Chore.LAMP: (
        "To look at an object under a lamp, pick it up, carry it to the lamp and use the lamp.",
        "Once you hold the object, find the desklamp and turn it on with the use command.",
        "Examining an object is not enough: go to the lamp with it in hand and use the lamp there.",
    ),
    Chore.BOTH: (
        "If the task asks for two objects, go back for the second one after you have placed the first.",
        "Where two things are wanted, search for another one as soon as the first lies in its place.",
        "In a task with two objects, fetch the second one too before you stop.",
    ),
    Chore.LIKELY: (
        "Search the places first where such an object usually lies.",
        "Begin the search with the receptacles that are the most likely places for the object.",
        "Go to places in order of how typical they are for the object, the most likely first.",
    ),
    Chore.TAKE_ANY: (
        "Take any object that you see.",
        "Pick up every object at once, it may be needed.",
        "Grab whatever object lies in a place that you visit.",
    ),
    Chore.CHECK: (
        "Check your inventory after every command.",
        "Always look at the inventory between two commands.",
        "After each command make sure with inventory what you hold.",
    ),
    Chore.CLOSE: (
        "Close every receptacle again before you leave it.",
        "Shut each cabinet and drawer behind you.",
        "Leave no door open: close the receptacle after you looked into it.",
    ),
    Chore.EXAMINE: (
        "Examine every place that you come to before you go on.",
        "Inspect each receptacle closely, always with the examine command.",
        "Always examine all receptacles before you decide.",
    ),
    Chore.SURFACES: (
        "Search only open surfaces, they are quicker to see.",
        "Leave drawers and cabinets closed and look at surfaces only.",
        "Do not open cabinets or drawers; look only at surfaces.",
    ),
    Chore.CLEAN_ALL: (
        "Always clean an object at the sinkbasin before placing it.",
        "Wash every object at the sinkbasin first.",
        "Clean all objects at the sinkbasin before you put them down.",
    ),
}
"""Wordings of the rule that asks for a chore; ``orders`` recognises each as this chore and no other."""

PATTERNS: dict[Chore, str] = {
    Chore.OPEN: "a closed receptacle is passed by, or something is to go into it, and it is never opened",
    Chore.CLEAN: "the object is put down without having been cleaned",
    Chore.HEAT: "the object is put down without having been heated",
    Chore.COOL: "the object is put down without having been cooled",
    Chore.LAMP: "the object is taken and the lamp is never used",
    Chore.BOTH: "one of two objects is brought and the second is not fetched",
    Chore.LIKELY: "the steps run out during the search",
    Chore.TAKE_ANY: "the hands are full of something that the task does not name",
    Chore.CHECK: "half of the steps go into looking at the inventory",
    Chore.CLOSE: "steps go into closing receptacles",
    Chore.EXAMINE: "steps go into examining places that are in plain sight",
    Chore.SURFACES: "closed receptacles are left out of the search",
    Chore.CLEAN_ALL: "something is carried to a sink though nothing clean is asked for",
}
"""What a failure of each cause looks like."""

LABELS: dict[Chore, str] = {
    Chore.OPEN: "open what is closed",
    Chore.CLEAN: "clean at the sink",
    Chore.HEAT: "heat in the microwave",
    Chore.COOL: "cool with the fridge",
    Chore.LAMP: "use the lamp",
    Chore.BOTH: "fetch the second object",
    Chore.LIKELY: "search likely places first",
    Chore.TAKE_ANY: "take anything",
    Chore.CHECK: "check the inventory",
    Chore.CLOSE: "close receptacles",
    Chore.EXAMINE: "examine every place",
    Chore.SURFACES: "search surfaces only",
    Chore.CLEAN_ALL: "clean every object",
}
"""A few words for a rule, for titles and the memory."""

OVERSHOOT: dict[Chore, Chore] = {
    Chore.OPEN: Chore.CLOSE,
    Chore.CLEAN: Chore.CLEAN_ALL,
    Chore.HEAT: Chore.CHECK,
    Chore.COOL: Chore.CHECK,
    Chore.LAMP: Chore.EXAMINE,
    Chore.BOTH: Chore.TAKE_ANY,
    Chore.LIKELY: Chore.SURFACES,
}
"""What somebody concludes from a single example of a cause who generalises too far."""

REMEDY: dict[Chore, Chore] = {Chore.CLEAN_ALL: Chore.CLEAN, Chore.SURFACES: Chore.OPEN, Chore.TAKE_ANY: Chore.BOTH}
"""The rule that belongs in the place of one that generalises too far."""

IDLE_ADVICE: tuple[str, ...] = (
    "Keep in mind what the task asks for.",
    "Think one step ahead.",
    "Stay calm when a search takes long.",
    "Work with a plan.",
)
"""What sounds sensible and changes nothing."""


def wording(chore: Chore, seed: str, avoid: frozenset[str] = frozenset()) -> str:
    """Return a wording of the rule for ``chore`` whose normalised text is not in ``avoid``; empty if all are."""
    options = RULES[chore]
    first = draw(seed, chore, len(options))
    ordered = (*options[first:], *options[:first])
    return next((text for text in ordered if normalised(text) not in avoid), "")


def in_order(chores: Iterable[Chore]) -> list[Chore]:
    """Return ``chores`` in a fixed order."""
    present = set(chores)
    return [chore for chore in Chore if chore in present]
