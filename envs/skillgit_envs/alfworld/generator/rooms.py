"""The rooms of generated games: which furniture is in them, and what lies about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room.

    Attributes:
        receptacles: Kind of receptacle to how many there are.
        clutter: Kinds of objects that lie about besides those that the task is about.
        lamps: Where a lamp may stand.
    """

    receptacles: dict[str, int]
    clutter: tuple[str, ...]
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
