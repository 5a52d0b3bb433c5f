"""Which skill of a repository a word means: a name, or the path of its folder. Every ``--skill`` is read here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from posixpath import normpath
from shlex import quote

from skillgit.domain.did_you_mean import nearest
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import NotFoundError, SkillError, UsageError

SKILLS = "skills"
"""The folder of a repository that skills without another place are in."""
_SHOWN = 12


def name_of(path: str) -> str:
    """Return the name of the skill in the folder ``path``."""
    return path.rpartition("/")[2]


def labels(paths: Collection[str]) -> dict[str, str]:
    """Return each path with the shortest word that means it: its name, or the path where another skill has the name."""
    return {path: name_of(path) if _named(name_of(path), paths) == [path] else path for path in paths}


def choose_skill(word: str, paths: Collection[str], *, here: str = "", where: str = "here") -> str:
    """Return the one of the skill folders ``paths`` that ``word`` names, by its name or its path.

    ``here`` is the folder of the repository that relative paths start from. Of several skills of one name, the one in
    ``skills/`` is meant. A NotFoundError if there is no such skill, a UsageError if there are several.
    """
    folder = word.removesuffix(f"/{DOCUMENT}").rstrip("/")
    for path in (normpath(f"{here}/{folder}").lstrip("/"), normpath(folder)):
        if path in paths:
            return path
    matches = _named(folder, paths)
    if len(matches) > 1:
        raise UsageError(
            f"'{word}' is the name of {len(matches)} skills: {', '.join(matches)}", hint=f"--skill {matches[0]}"
        )
    if not matches:
        raise unknown_skill(word, paths, where=where)
    return matches[0]


def unknown_skill(word: str, paths: Collection[str], *, where: str = "here") -> NotFoundError:
    """Return the error for a word that names none of the skills ``paths``."""
    words = sorted(labels(paths).values())
    near = nearest(word.rstrip("/"), [*words, *paths])
    listing = f"skills {where}: {', '.join(words[:_SHOWN])}{' …' if len(words) > _SHOWN else ''}"
    if not words:
        return NotFoundError(f"there is no skill '{word}'", hint="skillgit init --skill PATH adds one")
    return NotFoundError(f"there is no skill '{word}'", hint=f"did you mean '{near}'? {listing}" if near else listing)


def only_skill(paths: Sequence[str]) -> str:
    """Return the skill that is meant where none is named: the only one; empty if there are none or several.

    Copies of one name count as one skill, the one in ``skills/``.
    """
    names = {name_of(path) for path in paths}
    matches = _named(names.pop(), paths) if len(names) == 1 else []
    return matches[0] if len(matches) == 1 else ""


def meant_of(paths: Sequence[str], environment: str) -> str:
    """Return the skill that is meant where none is named: the only one, or the one that bears the environment's name.

    Empty if there are none; a SkillError if it is not clear which of several is meant.
    """
    matching = [path for path in paths if name_of(path) == environment]
    choice = next(iter(matching), "") or only_skill(paths)
    if not choice and paths:
        raise several_skills(paths)
    return choice


def several_skills(paths: Sequence[str], where: str = "the repository has") -> SkillError:
    """Return the error of a command about one skill where there are several and none is named."""
    words = [*labels(paths).values()]
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return SkillError(
        f"{where} {len(paths)} skills: {', '.join(words[:_SHOWN])}{more}", hint=f"--skill {quote(words[0])}"
    )


def _named(name: str, paths: Collection[str]) -> list[str]:
    matches = sorted(path for path in paths if name_of(path) == name)
    usual = f"{SKILLS}/{name}"
    return [usual] if usual in matches else matches
