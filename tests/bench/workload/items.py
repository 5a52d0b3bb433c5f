"""Owns the items of the measured training: 120, 60 and 120 invented trivia questions with about 1,450 characters each.

They are drawn from a fixed random stream. Each has one weakness that a rule of the skill mends: a rank before a name,
a parenthesis behind it, a day where a year is asked, a unit, a rumour, a surname alone, the nearest name that is wrong.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

from bench import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SIZES = measure.sized({"train": 120, "val": 60, "test": 120}, {"train": 12, "val": 6, "test": 4})
ENOUGH = 1200
"""Characters of a context after which no further document is added."""

_FIRST = "Alma Bruno Clara Dario Edith Felix Greta Hugo Irma Jonas Karin Leon Maud Nestor Olive Petra Rufus Selma Tilda"
_LAST = (
    "Aldern Brask Corvane Dunmore Elsner Farrow Gildas Hartwen Isberg Jorvik Kestrel Lomond Marlick Norvin Ostrander"
)
_TOWNS = (
    "Ashbourne Brinmouth Calderby Dunhaven Eastmere Fernhall Glimmerton Hollowick Ivesham Kirkdale Larkspur Millbrook"
)
_BUILT = "bridge canal lighthouse observatory tower mill theatre library"
_RANKS = "Captain Sir Doctor Professor General Lady"
_MONTHS = "January March April May July August October November"
_FILLER = (
    "Rain filled the ditches that winter and the carts stood idle for weeks.",
    "A market was held below the walls whenever the roads were dry.",
    "Travellers praised the bread there and complained about the beds.",
    "The archives burned twice, so that much of this is known from letters only.",
    "Schoolchildren still paint the scene on paper lanterns every autumn.",
    "Nobody kept count of the visitors before the gates were mended.",
    "The old road ran further to the west, through fields that are under water now.",
    "Stone came by barge and timber on sledges when the river was frozen.",
    "A small museum shows the tools, some coins and a broken bell.",
    "The council argued about the cost for years and then paid for half of it.",
)


def write(folder: Path) -> None:
    """Write the splits as ``searchqa`` reads them: a folder for each with one file."""
    made = _items(Random("items of the measured training"))  # noqa: S311 - the same items every time
    for split, size in SIZES.items():
        rows = [next(made) | {"id": f"{split}-{number:03}"} for number in range(size)]
        path = folder / split / "items.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(rows), encoding="utf-8")


def _items(random: Random) -> Iterator[dict[str, object]]:
    while True:
        for kind in (_founder, _plain, _opening, _arches, _plain, _rumour, _surname, _plain, _keeper, _plain):
            yield _item(random, kind)


Kind = tuple[str, str, list[tuple[str, str]], list[str]]
"""Type, question, telling documents and accepted answers."""


def _item(random: Random, kind: Callable[[Random, str], Kind]) -> dict[str, object]:
    thing = f"{random.choice(_TOWNS.split())} {random.choice(_BUILT.split())}"
    task_type, question, documents, answers = kind(random, thing)
    sizes = sum(len(title) + len(text) for title, text in documents)
    while sizes < ENOUGH:
        other = f"{random.choice(_TOWNS.split())} in {random.randint(1500, 1950)}"
        text = f"{' '.join(random.sample(_FILLER, 2))} {_name(random)} left {random.choice(_TOWNS.split())} soon after."
        documents.append((other, text))
        sizes += len(other) + len(text)
    random.shuffle(documents)
    context = " ".join(f"[DOC] [TLE] {title} [PAR] {text}" for title, text in documents)
    return {"question": question, "context": context, "answers": answers, "task_type": task_type}


def _name(random: Random) -> str:
    return f"{random.choice(_FIRST.split())} {random.choice(_LAST.split())}"


def _rank(random: Random) -> str:
    return random.choice(_RANKS.split())


def _date(random: Random) -> tuple[str, int]:
    year = random.randint(1640, 1930)
    return f"{random.randint(1, 28)} {random.choice(_MONTHS.split())} {year}", year


def _founder(random: Random, thing: str) -> Kind:
    who, (_, born) = _name(random), _date(random)
    told = f"The {thing} was designed by {_rank(random)} {who} ({born}-{born + 61}), who never saw it finished."
    return "person", f"Who designed the {thing}?", [(f"The {thing}", told)], [who]


def _opening(random: Random, thing: str) -> Kind:
    day, year = _date(random)
    told = f"The {thing} was opened on {day} with a dance. The first stone had been laid by {_name(random)}."
    return "date", f"In what year was the {thing} opened?", [(f"The {thing}", told)], [str(year)]


def _arches(random: Random, thing: str) -> Kind:
    count, unit = random.randint(12, 95), random.choice(("metres", "feet"))
    told = f"The height of the {thing} is about {count} {unit}. {_name(random)} measured it with a rope."
    return "number", f"How high is the {thing}?", [(f"The {thing}", told)], [str(count)]


def _rumour(random: Random, thing: str) -> Kind:
    who, other = _name(random), _name(random)
    told = f"Against what is often told, the {thing} was paid for by {who}."
    rumour = f"According to a legend, the owner who paid for the {thing} was {other}."
    question = f"Which owner paid for the {thing}?"
    return "person", question, [(f"The {thing}", told), (f"Legends of the {thing}", rumour)], [who]


def _surname(random: Random, thing: str) -> Kind:
    who = _name(random)
    told = f"{who.split()[1]} painted the {thing} in the last year of the war."
    again = f"{who} lived near {random.choice(_TOWNS.split())} and sold pictures to sailors."
    return "person", f"Which painter painted the {thing}?", [(f"The {thing}", told), (who, again)], [who]


def _keeper(random: Random, thing: str) -> Kind:
    who, town = _name(random), random.choice(_TOWNS.split())
    told = (
        f"In {town} the {thing} is remembered. Its last keeper of the {thing} was {who}, a baker from {town}, Norland."
    )
    again = f"{who} kept the {thing} for thirty years."
    return "person", f"Who was the last keeper of the {thing}?", [(f"The {thing}", told), (town, again)], [who]


def _plain(random: Random, thing: str) -> Kind:
    who = _name(random)
    return "person", f"Who sold the {thing}?", [(f"The {thing}", f"{who} sold the {thing} for a horse.")], [who]
