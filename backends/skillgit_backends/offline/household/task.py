"""The task of a household game, read from the sentence that states it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillgit_backends.offline.household.chores import Chore

_TASK = re.compile(r"your task is to:\s*(?P<task>[^\n]+)", re.IGNORECASE)
_LOOK = re.compile(
    r"(?:look at|examine)(?: an?| the| some)? (?P<thing>\w+) (?:under|with|by|using)(?: the| an?)? (?P<lamp>\w+)"
)
_PUT = re.compile(
    r"(?:put|find|place|move|take)(?: an?| the| some)?(?P<two> two)?"
    r"(?: (?P<state>clean|hot|cool|cold|warm|heated|cooled))? (?P<thing>\w+)"
    r"(?: and (?:put|place|move) (?:it|them))? (?:in/on|in|on|into|onto|to)(?: an?| the)? (?P<target>\w+)"
)
_TREAT = re.compile(
    r"(?P<state>clean|wash|heat|warm|cool|chill)(?: an?| the| some)? (?P<thing>\w+) and (?:put|place|move) it"
    r" (?:in/on|in|on|into|onto)(?: an?| the)? (?P<target>\w+)"
)
_STATES = {
    **dict.fromkeys(("clean", "wash"), Chore.CLEAN),
    **dict.fromkeys(("hot", "warm", "heated", "heat"), Chore.HEAT),
    **dict.fromkeys(("cool", "cold", "cooled", "chill"), Chore.COOL),
}
APPLIANCES = {Chore.CLEAN: "sinkbasin", Chore.HEAT: "microwave", Chore.COOL: "fridge"}
"""Where an object is treated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task.

    Attributes:
        thing: The kind of object that it is about; empty if the sentence is not understood.
        target: The kind of receptacle where it shall go, or the kind of lamp.
        chore: What has to be done besides bringing it; None if nothing.
    """

    thing: str
    target: str
    chore: Chore | None = None


def task_in(text: str) -> Task | None:
    """Return the task that ``text`` states; None if it states none."""
    match = _TASK.search(text)
    if match is None:
        return None
    sentence = match.group("task").strip().rstrip(".").lower()
    look = _LOOK.match(sentence)
    if look:
        return Task(thing=look["thing"], target=look["lamp"], chore=Chore.LAMP)
    treat = _TREAT.match(sentence)
    if treat:
        return Task(thing=treat["thing"], target=treat["target"], chore=_STATES[treat["state"]])
    put = _PUT.match(sentence)
    if put:
        chore = Chore.BOTH if put["two"] else _STATES.get(put["state"] or "")
        return Task(thing=put["thing"], target=put["target"], chore=chore)
    return Task(thing="", target="")
