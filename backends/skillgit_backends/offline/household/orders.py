"""Which chores a skill asks for. Each is recognised from what a sentence says, not from a fixed wording.

A sentence that denies an instruction does not ask for it. A sentence that speaks of no household is none of ours.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from skillgit_backends.offline.household.chores import Chore, Orders
from skillgit_backends.offline.household.places import KINDS
from skillgit_backends.offline.phrasing import asks, has, near, plain_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

_PLACES = (
    r"receptacles?|containers?|cabinets?|cupboards?|drawers?|fridges?|refrigerators?|microwaves?|safes?|shel(?:f|ves)|"
    r"sinks?|sinkbasins?|furniture|countertops?|doors?"
)
_HOUSEHOLD = "|".join(
    (_PLACES, *KINDS, r"objects?|things?|lamps?|desklamps?|inventory|commands?|surfaces?|places?|target|destination")
)
_ALL = r"every|each|all|any|always|whatever"
_CONDITION = r"if|when|whenever|asked|asks|ask|wants?|task|tasks|called|requires?|needs?|required"
_FIRST = re.compile(
    r"\b(?:look|search|hunt) for (?:an? |the |some )?(?P<thing>[a-z]+)(?: first)? "
    r"(?:in|on|at|inside) (?P<places>[a-z ,]+)"
)
_NOT_THINGS = frozenset(
    {"it", "them", "what", "everything", "object", "objects", "thing", "things", "second", "target"}
)


@lru_cache(maxsize=64)
def read_orders(text: str) -> Orders:
    """Return what the skill ``text`` asks for."""
    chores: set[Chore] = set()
    first: dict[str, tuple[str, ...]] = {}
    for sentence in plain_sentences(text):
        if not has(sentence, _HOUSEHOLD):
            continue
        chores |= {chore for chore, rule in _RULES.items() if rule(sentence)}
        for match in _FIRST.finditer(sentence) if has(sentence, "first|start|begin") else ():
            places = tuple(kind for kind in KINDS if has(match.group("places"), rf"{kind}(?:s|es)?"))
            if places and match.group("thing") not in _NOT_THINGS:
                thing = match.group("thing").removesuffix("s")
                first[thing] = (*first.get(thing, ()), *places)
    return Orders(chores=frozenset(chores), first=first)


def chores_in(text: str) -> frozenset[Chore]:
    """Return the chores that ``text`` asks for."""
    return read_orders(text).chores


def _open(text: str) -> bool:
    return near(
        text,
        r"open\w*|look inside",
        rf"closed|shut|{_PLACES}|inside|places?|anything|target|destination",
        gap=12,
    ) and not (_surfaces(text) or has(text, r"open (?:surfaces?|places?)"))


def _surfaces(text: str) -> bool:
    only = near(text, r"only|just|solely", r"surfaces?|open places?|plain sight", gap=4)
    unopened = has(
        text, rf"(?:never|not|without) (?:bother )?(?:to )?open\w*(?: [\w'-]+){{0,4}} (?:{_PLACES}|anything|closed)"
    )
    left = has(
        text, rf"(?:leave|left)(?: [\w'-]+){{0,4}} (?:{_PLACES}|closed)(?: [\w'-]+){{0,2}} (?:closed|shut|alone)"
    )
    return only or unopened or left


def _cleaning(text: str) -> bool:
    return asks(text, r"clean\w*|wash\w*|rins\w+") and has(text, r"sinks?|sinkbasins?|before|first|wash\w*|rins\w+")


def _clean(text: str) -> bool:
    return _cleaning(text) and not _clean_all(text)


def _clean_all(text: str) -> bool:
    return _cleaning(text) and has(text, _ALL) and not has(text, _CONDITION)


def _heat(text: str) -> bool:
    return asks(text, r"heat\w*|warm\w*|hot") and has(text, r"microwaves?|before|first")


def _cool(text: str) -> bool:
    return asks(text, r"cool\w*|chill\w*|cold|refrigerat\w*") and has(text, r"fridges?|refrigerators?|before|first")


def _lamp(text: str) -> bool:
    return has(text, r"(?:desk)?lamps?|lights?") and asks(
        text, r"use|using|turn\w* on|switch\w* on|turn it on|light it"
    )


def _both(text: str) -> bool:
    return has(text, r"two|both|second|pair") and asks(
        text, r"second|another|other|again|both|repeat\w*|twice|once more|next one"
    )


def _likely(text: str) -> bool:
    usual = r"likel\w+|usual\w*|typical\w*|normal\w*|probabl\w+|belongs?|commonly|most often"
    return (
        asks(text, usual)
        and has(text, r"first|start|begin|before|priorit\w+|order")
        and has(text, r"search\w*|look\w*|go|visit\w*|places?|where")
    )


def _take_any(text: str) -> bool:
    return near(
        text, r"take|taking|pick up|picking up|grab|collect", r"every|any|all|whatever|each|first object", gap=3
    )


def _check(text: str) -> bool:
    return asks(text, r"inventory") and has(text, rf"{_ALL}|after|between|often|regularly")


def _close(text: str) -> bool:
    return near(
        text, r"close|closing|shut", rf"{_PLACES}|again|behind|afterwards|after|doors?|each|every|them|it", gap=6
    )


def _examine(text: str) -> bool:
    return asks(text, r"examin\w+|inspect\w*") and has(text, _ALL) and not has(text, r"lamps?|desklamps?|lights?")


_RULES: dict[Chore, Callable[[str], bool]] = {
    Chore.OPEN: _open,
    Chore.CLEAN: _clean,
    Chore.HEAT: _heat,
    Chore.COOL: _cool,
    Chore.LAMP: _lamp,
    Chore.BOTH: _both,
    Chore.LIKELY: _likely,
    Chore.TAKE_ANY: _take_any,
    Chore.CHECK: _check,
    Chore.CLOSE: _close,
    Chore.EXAMINE: _examine,
    Chore.SURFACES: _surfaces,
    Chore.CLEAN_ALL: _clean_all,
}
