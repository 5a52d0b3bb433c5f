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


ROOMS = {
    "kitchen": Room(
        receptacles={
            "Cabinet": 5,
            "CounterTop": 2,
            "Drawer": 3,
            "DiningTable": 1,
            "Fridge": 1,
            "GarbageCan": 1,
            "Microwave": 1,
            "Shelf": 1,
            "SinkBasin": 1,
            "StoveBurner": 2,
        },
        clutter=("Fork", "Kettle", "Pan", "PepperShaker", "Spatula", "SoapBottle"),
    ),
    "bathroom": Room(
        receptacles={
            "Cabinet": 4,
            "CounterTop": 1,
            "Drawer": 3,
            "GarbageCan": 1,
            "HandTowelHolder": 1,
            "Shelf": 1,
            "SinkBasin": 1,
            "Toilet": 1,
            "ToiletPaperHanger": 1,
        },
        clutter=("Candle", "HandTowel", "SprayBottle", "ToiletPaper"),
    ),
    "bedroom": Room(
        receptacles={
            "Bed": 1,
            "Desk": 1,
            "Drawer": 6,
            "Dresser": 1,
            "GarbageCan": 1,
            "Safe": 1,
            "Shelf": 3,
            "SideTable": 2,
        },
        clutter=("CD", "KeyChain", "Pencil", "Pillow", "Statue"),
        lamps=("Desk", "SideTable", "Dresser"),
    ),
    "livingroom": Room(
        receptacles={
            "ArmChair": 2,
            "Cabinet": 3,
            "CoffeeTable": 1,
            "Drawer": 3,
            "GarbageCan": 1,
            "Shelf": 2,
            "SideTable": 2,
            "Sofa": 1,
        },
        clutter=("CreditCard", "Newspaper", "RemoteControl", "TissueBox", "Vase"),
        lamps=("SideTable", "CoffeeTable"),
    ),
}
