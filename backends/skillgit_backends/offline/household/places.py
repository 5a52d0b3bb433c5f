"""Where things usually lie, as anybody knows who has lived in a house; the agent uses it only if it is told to."""

from __future__ import annotations

KINDS = (
    "armchair", "bathtubbasin", "bed", "cabinet", "cart", "coffeemachine", "coffeetable", "countertop", "desk",
    "diningtable", "drawer", "dresser", "fridge", "garbagecan", "handtowelholder", "laundryhamper", "microwave",
    "ottoman", "safe", "shelf", "sidetable", "sinkbasin", "sofa", "stoveburner", "toaster", "toilet",
    "toiletpaperhanger", "towelholder", "tvstand",
)  # fmt: skip
"""The kinds of places that games have."""

_FOOD = ("fridge", "countertop", "diningtable", "sinkbasin", "garbagecan", "microwave")
_CROCKERY = ("countertop", "diningtable", "cabinet", "shelf", "sinkbasin", "fridge", "microwave", "coffeemachine")
_CUTLERY = ("countertop", "diningtable", "drawer", "sinkbasin")
_POTS = ("stoveburner", "countertop", "cabinet", "sinkbasin", "diningtable", "fridge", "shelf")
_SPICES = ("countertop", "diningtable", "cabinet", "shelf", "drawer")
_WASHING = (
    "toilet",
    "sinkbasin",
    "countertop",
    "cabinet",
    "handtowelholder",
    "shelf",
    "drawer",
    "garbagecan",
    "bathtubbasin",
)
_VALUABLES = ("desk", "sidetable", "dresser", "coffeetable", "shelf", "sofa", "armchair", "safe", "drawer")
_READING = ("desk", "bed", "sofa", "coffeetable", "armchair", "sidetable", "shelf", "dresser", "cabinet", "drawer")
_PAPERWORK = ("desk", "shelf", "sidetable", "dresser", "coffeetable", "drawer", "garbagecan", "safe")
_BEDDING = ("bed", "sofa", "armchair", "ottoman")

HOMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("apple", "bread", "egg", "lettuce", "potato", "tomato"), _FOOD),
    **dict.fromkeys(("bowl", "cup", "mug", "plate", "glassbottle", "winebottle"), _CROCKERY),
    **dict.fromkeys(("butterknife", "fork", "knife", "ladle", "spatula", "spoon"), _CUTLERY),
    **dict.fromkeys(("kettle", "pan", "pot"), _POTS),
    **dict.fromkeys(("peppershaker", "saltshaker"), _SPICES),
    **dict.fromkeys(
        ("cloth", "handtowel", "soapbar", "soapbottle", "spraybottle", "toiletpaper", "tissuebox", "dishsponge"),
        _WASHING,
    ),
    **dict.fromkeys(("cellphone", "creditcard", "keychain", "remotecontrol", "watch"), _VALUABLES),
    **dict.fromkeys(("book", "laptop", "newspaper"), _READING),
    **dict.fromkeys(("alarmclock", "cd", "pen", "pencil", "statue", "vase", "candle"), _PAPERWORK),
    **dict.fromkeys(("pillow",), _BEDDING),
    **dict.fromkeys(("desklamp",), ("desk", "sidetable", "dresser", "coffeetable", "shelf")),
}


def rank(thing: str, place: str) -> int:
    """Return how early ``place`` is to be searched for ``thing``; unlikely places come after all likely ones."""
    homes = HOMES.get(thing, ())
    return homes.index(place) if place in homes else len(KINDS)
