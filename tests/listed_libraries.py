"""Libraries of skills that the listings of real agents were recorded for, made anew from a seed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from skillgit.domain.skill_listing import LibrarySkill, ListingAgent

if TYPE_CHECKING:
    from collections.abc import Iterable

WORDS = ("the", "quick", "brown", "fox", "when", "you", "naïve", "漢字", "—", "use", "this", "skill", "for", "PDF")
LENGTHS = (3, 20, 60, 200, 400)  # words of a description


class Recorded(NamedTuple):
    """A library, a window, and how many characters of each description an agent listed, in its order."""

    agent: ListingAgent
    project: int
    users: int
    window: int
    roots: tuple[str, ...]  # folders whose paths are as long as those of the recording
    shown: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.agent}-{self.project}-{self.users}-{self.window}"


def library(project: int, users: int) -> list[LibrarySkill]:
    """Return a library; if there are users' skills, the first has the name of the project's first."""
    chance = Random(1000 * project + users)  # noqa: S311 - a library, not a secret
    skills = []
    for number in range(project + users):
        text = " ".join(chance.choice(WORDS) for _ in range(chance.choice(LENGTHS)))
        name = f"s{chance.randrange(10**6):06d}-{number}"
        name = skills[0].name if number == project else name
        skills.append(LibrarySkill(name=name, description=text, is_users=number >= project))
    return skills


def recorded() -> list[Recorded]:
    rows = json.loads((Path(__file__).parent / "domain" / "listings.json").read_text(encoding="utf-8"))
    return [
        Recorded(ListingAgent(agent), *numbers, tuple("x" * root for root in roots), tuple(shown))
        for agent, *numbers, roots, shown in rows
    ]


def place(folder: Path, skills: Iterable[LibrarySkill]) -> None:
    for skill in skills:
        path = folder / skill.name / "SKILL.md"
        path.parent.mkdir(parents=True)
        description = json.dumps(skill.description, ensure_ascii=False)
        path.write_text(f"---\nname: {skill.name}\ndescription: {description}\n---\n\nDo it.\n", encoding="utf-8")
