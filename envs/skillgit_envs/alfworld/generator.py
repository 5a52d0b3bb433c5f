"""From a recipe to a game: what is where is drawn, written as a PDDL problem and joined with ALFWorld's grammar.

Domain, grammar, goals and what may be where are those of the installed alfworld package, which this module loads;
rooms and placement are ours.
"""

# mypy: disable-error-code="import-untyped"

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import alfworld
from alfworld.gen import constants, goal_library

from skillgit_envs.alfworld.games import GENERATOR, Recipe

_ABILITIES = {"Cleanable": "cleanable", "Heatable": "heatable", "Coolable": "coolable"}
_NEEDED = {
    "pick_clean_then_place_in_recep": "Cleanable",
    "pick_heat_then_place_in_recep": "Heatable",
    "pick_cool_then_place_in_recep": "Coolable",
}
_COUNTS = {"pick_two_obj_and_place": 2}
_TYPES = ("KnifeType", "ButterKnifeType")
_RECEPTACLE_TYPES = ("SinkBasinType", "MicrowaveType", "FridgeType")
"""Types that actions of the domain name, whether the room has such things or not."""
_SPARE = 2  # one more than the objects of the task's kind that there may be beyond those that it needs


class RecipeError(Exception):
    """A recipe that no game can be made of."""


def build(recipe: Recipe) -> dict[str, object]:
    """Return the content of a ``game.tw-pddl`` for ``recipe``; the same recipe always makes the same."""
    _check(recipe)
    key = (GENERATOR, recipe.task, recipe.room, recipe.thing, recipe.target, recipe.seed)
    random = Random("/".join(map(str, key)))  # noqa: S311 - a game, not a secret
    counts = ROOMS[recipe.room].receptacles.items()
    receptacles = [(kind, _id(kind, number)) for kind, count in counts for number in range(1, count + 1)]
    things = _placed(recipe, receptacles, random)
    templates = goal_library.gdict[recipe.task]["templates"]
    slots = {"recep": recipe.target.lower(), "toggle": recipe.target.lower()}
    sentence = _pick(random, templates).format(obj=recipe.thing.lower(), **slots)
    data = Path(alfworld.BUILTIN_DATA_PATH)
    return {
        "pddl_domain": (data / "alfred.pddl").read_text(encoding="utf-8"),
        "grammar": (data / "alfred.twl2").read_text(encoding="utf-8").replace("UNKNOWN GOAL", sentence),
        "pddl_problem": _problem(recipe, receptacles, things),
        "solvable": True,
    }


def _check(recipe: Recipe) -> None:
    room = ROOMS[recipe.room]
    if recipe.task == "look_at_obj_in_light":
        if not room.lamps or recipe.target not in constants.VAL_ACTION_OBJECTS["Toggleable"]:
            raise RecipeError(f"nothing can be looked at under a {recipe.target} in a {recipe.room}")
        return
    if recipe.target not in room.receptacles:
        raise RecipeError(f"a {recipe.room} has no {recipe.target}")
    if recipe.thing not in constants.VAL_RECEPTACLE_OBJECTS[recipe.target]:
        raise RecipeError(f"a {recipe.thing} cannot be in a {recipe.target}")
    ability = _NEEDED.get(recipe.task)
    if ability and recipe.thing not in constants.VAL_ACTION_OBJECTS[ability]:
        raise RecipeError(f"a {recipe.thing} is not {ability.lower()}")


def _id(kind: str, number: int) -> str:
    """Return an id as ALFRED's scenes have them, with signs spelled out, so that ALFWorld shows it as "mug 1"."""
    if kind.endswith("Basin"):
        return f"{kind.removesuffix('Basin')}_bar__plus_{number:02d}_dot_00_bar_{kind}"
    return f"{kind}_bar__plus_{number:02d}_dot_00"


def _placed(recipe: Recipe, receptacles: Sequence[tuple[str, str]], random: Random) -> list[tuple[str, str, str]]:
    """Return kind and id of every object and the id of the receptacle that it is in."""
    room, things = ROOMS[recipe.room], list[tuple[str, str, str]]()
    count = _COUNTS.get(recipe.task, 1) + int(random.random() * _SPARE)
    kinds = [recipe.thing] * count + [kind for kind in room.clutter if kind != recipe.thing]
    if recipe.task == "look_at_obj_in_light":
        lamp = _pick(random, [id_ for kind, id_ in receptacles if kind in room.lamps])
        things.append((recipe.target, _id(recipe.target, 1), lamp))
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
        homes = [id_ for home, id_ in receptacles if kind in constants.VAL_RECEPTACLE_OBJECTS.get(home, ())]
        away = [id_ for id_ in homes if not id_.startswith(f"{recipe.target}_bar")] if kind == recipe.thing else homes
        if away:
            things.append((kind, _id(kind, counts[kind]), _pick(random, away)))
    return things


def _pick(random: Random, options: Sequence[str]) -> str:
    return options[int(random.random() * len(options))]


def _problem(recipe: Recipe, receptacles: Sequence[tuple[str, str]], things: Sequence[tuple[str, str, str]]) -> str:
    locations = {id_: f"loc_bar_{number}_bar_0_bar_0_bar_60" for number, (_, id_) in enumerate(receptacles, start=1)}
    kinds = sorted({f"{kind}Type" for kind, _, _ in things} | set(_TYPES))
    receptacle_kinds = sorted({f"{kind}Type" for kind, _ in receptacles} | set(_RECEPTACLE_TYPES))
    objects = [
        "agent1 - agent",
        *(f"{id_} - object" for _, id_, _ in things),
        *(f"{id_} - receptacle" for _, id_ in receptacles),
        *(f"{location} - location" for location in ("loc_bar_0_bar_0_bar_0_bar_60", *locations.values())),
        *(f"{kind} - otype" for kind in kinds),
        *(f"{kind} - rtype" for kind in receptacle_kinds),
    ]
    facts = ["(= (total-cost) 0)", "(atLocation agent1 loc_bar_0_bar_0_bar_0_bar_60)"]
    facts += _furniture(receptacles, locations, {kind for kind, _, _ in things})
    facts += [fact for thing in things for fact in _thing(*thing, locations)]
    goal = goal_library.gdict[recipe.task]["pddl"].format(
        obj=recipe.thing, recep=recipe.target, toggle=recipe.target, mrecep=""
    )
    declarations, init = "\n  ".join(objects), "\n  ".join(facts)
    return (
        f"(define (problem skillgit)\n(:domain alfred)\n(:objects\n  {declarations}\n)\n(:init\n  {init}\n)\n"
        # The goal of the library closes the problem's own bracket.
        f"{goal.replace('#', '-')}"
    )


def _furniture(receptacles: Sequence[tuple[str, str]], locations: dict[str, str], kinds: set[str]) -> Iterator[str]:
    for kind, id_ in receptacles:
        yield f"(receptacleType {id_} {kind}Type)"
        yield f"(receptacleAtLocation {id_} {locations[id_]})"
        if kind in constants.OPENABLE_CLASS_SET:
            yield f"(openable {id_})"
    for kind in sorted({kind for kind, _ in receptacles}):
        for thing in sorted(kinds & set(constants.VAL_RECEPTACLE_OBJECTS.get(kind, ()))):
            yield f"(canContain {kind}Type {thing}Type)"


def _thing(kind: str, id_: str, receptacle: str, locations: dict[str, str]) -> Iterator[str]:
    yield f"(objectType {id_} {kind}Type)"
    yield f"(inReceptacle {id_} {receptacle})"
    yield f"(objectAtLocation {id_} {locations[receptacle]})"
    yield f"({'toggleable' if kind in constants.VAL_ACTION_OBJECTS['Toggleable'] else 'pickupable'} {id_})"
    for name, ability in _ABILITIES.items():
        if kind in constants.VAL_ACTION_OBJECTS[name]:
            yield f"({ability} {id_})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    receptacles: dict[str, int]  # kind of receptacle to how many there are
    clutter: tuple[str, ...]  # kinds of objects that are around besides those that the task is about
    lamps: tuple[str, ...] = ()


def _room(receptacles: str, clutter: str, lamps: str = "") -> Room:
    kinds = receptacles.split()
    counts = {kind: int(count) for kind, count in zip(kinds[::2], kinds[1::2], strict=True)}
    return Room(receptacles=counts, clutter=tuple(clutter.split()), lamps=tuple(lamps.split()))


ROOMS = {
    "kitchen": _room(
        "Cabinet 5 CounterTop 2 Drawer 3 DiningTable 1 Fridge 1 GarbageCan 1 Microwave 1 Shelf 1 SinkBasin 1 "
        "StoveBurner 2",
        "Fork Kettle Pan PepperShaker Spatula SoapBottle",
    ),
    "bathroom": _room(
        "Cabinet 4 CounterTop 1 Drawer 3 GarbageCan 1 HandTowelHolder 1 Shelf 1 SinkBasin 1 Toilet 1 "
        "ToiletPaperHanger 1",
        "Candle HandTowel SprayBottle ToiletPaper",
    ),
    "bedroom": _room(
        "Bed 1 Desk 1 Drawer 6 Dresser 1 GarbageCan 1 Safe 1 Shelf 3 SideTable 2",
        "CD KeyChain Pencil Pillow Statue",
        "Desk SideTable Dresser",
    ),
    "livingroom": _room(
        "ArmChair 2 Cabinet 3 CoffeeTable 1 Drawer 3 GarbageCan 1 Shelf 2 SideTable 2 Sofa 1",
        "CreditCard Newspaper RemoteControl TissueBox Vase",
        "SideTable CoffeeTable",
    ),
}
