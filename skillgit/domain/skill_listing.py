"""What of a library of skills an agent shows to its model: a listing of names and descriptions within a budget.

Claude Code and Codex have rules of their own, measured with Claude Code 2.1.332 and Codex 0.171.0: docs/tasks.md
says how. Claude Code keeps descriptions whole or drops them, Codex shortens all of them alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from math import log
from typing import assert_never

CLAUDE_DESCRIPTION, CODEX_DESCRIPTION = 1536, 1024  # characters of one description at most
CLAUDE_SHARE, CODEX_SHARE = 0.01, 0.02  # of the context window
CHARACTERS_OF_A_TOKEN, BYTES_OF_A_TOKEN = 4, 4  # as Claude Code and Codex count
CODEX_CHARACTERS = 8_000  # the budget of Codex where it does not know the window
_BUNDLED_COLUMNS = 6_050  # of the lines of Claude Code's own skills, their ends counted, which it never shortens
_BUILT_IN = (("init", 59), ("security-review", 71))  # those that it lists last and shortens, with columns
_SYSTEM = (("imagegen", 570), ("openai-docs", 624), ("skill-creator", 106), ("skill-installer", 225))
"""Codex's own skills, with the characters of their descriptions."""
_ROOT_TABLE = 142
"""Bytes of Codex's table of folders that cost nothing: its introduction without a table is longer by them."""
_SPACE = re.compile(r"\s*[\t\r\n]+\s*")
_WORD = re.compile(r"\w{2,}")
ALIKE = 0.7
"""Share of common words, rare ones counting more, from which two descriptions do not tell their skills apart."""


class ListingAgent(StrEnum):
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"

    @property
    def label(self) -> str:
        return "Claude Code" if self is ListingAgent.CLAUDE_CODE else "Codex"

    @property
    def window(self) -> int:
        """Tokens of the context window unless the configuration says otherwise."""
        return 200_000 if self is ListingAgent.CLAUDE_CODE else 272_000


class ListingState(StrEnum):
    """What the model sees of a skill."""

    WHOLE = "whole"
    CUT = "cut"
    NAME = "name only"
    ABSENT = "not listed"


class ListingReason(StrEnum):
    """Why the model sees no word of a skill's description, other than for its size and that of the library."""

    NONE = ""
    SILENT = "disable-model-invocation"
    NAMESAKE = "the user's skill of the same name wins"
    UNDESCRIBED = "it has no description"
    FULL = "the names alone are over the budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySkill:
    """An installed skill, as far as it can be listed."""

    name: str
    description: str
    folder: str = ""  # the name of its folder, where it is another one
    when: str = ""  # a ``when_to_use`` of its own, which Claude Code adds to the description
    is_users: bool = False  # whether it is the user's, and not the project's
    is_silent: bool = False  # whether the model is not to load it by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingEntry:
    skill: LibrarySkill
    state: ListingState
    text: str = ""  # the description as the model reads it
    reason: ListingReason = ListingReason.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillListing:
    agent: ListingAgent
    entries: tuple[ListingEntry, ...]  # in the order of the listing; those that are not listed come last
    size: int  # of the whole listing if nothing were shortened, the agent's own skills included
    budget: int
    unit: str  # of both: characters or tokens

    @property
    def text(self) -> str:
        """The lines of the listing as the model reads them, the agent's own skills left out."""
        return "\n".join(_line(self.agent, entry) for entry in self.entries if entry.state is not ListingState.ABSENT)


def _line(agent: ListingAgent, entry: ListingEntry) -> str:
    match agent:
        case ListingAgent.CLAUDE_CODE:
            label = _label(entry.skill)
            return f"- {label}: {entry.text}" if entry.text else f"- {label}"
        case ListingAgent.CODEX:
            text = f" {entry.text}" if entry.text else ""
            return f"- {entry.skill.name}:{text}{_place(entry.skill)}"
        case _:
            assert_never(agent)


def _label(skill: LibrarySkill) -> str:
    return f"{skill.folder} ({skill.name})" if skill.folder and skill.folder != skill.name else skill.name


def _place(skill: LibrarySkill) -> str:
    return f" (file: r{1 - skill.is_users}/{skill.folder or skill.name}/SKILL.md)"


def listing(
    agent: ListingAgent, skills: Sequence[LibrarySkill], window: int | None = None, roots: Sequence[str] = ()
) -> SkillListing:
    """Return what ``agent`` lists of ``skills`` with a context window of so many tokens; 0 is an unknown window.

    ``roots`` are the folders that the skills are in, and the one of the agent's own: long paths cost Codex some room.
    """
    tokens = agent.window if window is None else window
    match agent:
        case ListingAgent.CLAUDE_CODE:
            return _of_claude_code(skills, tokens or agent.window)
        case ListingAgent.CODEX:
            return _of_codex(skills, tokens, roots)
        case _:
            assert_never(agent)


def _of_claude_code(skills: Sequence[LibrarySkill], window: int) -> SkillListing:
    ranking = sorted(skills, key=lambda skill: (not skill.is_users, skill.folder or skill.name))
    names: set[str] = set()
    entries, absent = list[ListingEntry](), list[ListingEntry]()
    for skill in ranking:
        folder = skill.folder or skill.name
        reason = ListingReason.NAMESAKE if folder in names else ListingReason.NONE
        reason = ListingReason.SILENT if skill.is_silent else reason
        names.add(folder)
        entry = ListingEntry(skill=skill, state=ListingState.ABSENT, reason=reason)
        (absent if reason else entries).append(entry)
    budget = max(1, int(window * CHARACTERS_OF_A_TOKEN * CLAUDE_SHARE))
    texts = [_cut(_described(entry.skill)) for entry in entries]
    labels = [_columns(_label(entry.skill)) for entry in entries] + [len(name) for name, _ in _BUILT_IN]
    extras = [2 + _columns(text) if text else 0 for text in texts] + [2 + columns for _, columns in _BUILT_IN]
    frame = _BUNDLED_COLUMNS + sum(labels) + 3 * len(labels) - 1  # dash, space and line end of each but the last
    room = budget - frame
    is_whole = sum(extras) <= room
    for index, extra in enumerate(extras):
        fits = is_whole or extra <= room
        room -= extra if fits else 0
        if index < len(entries):
            skill = entries[index].skill
            entries[index] = _entry(skill, texts[index] if fits else "", _described(skill))
    return SkillListing(
        agent=ListingAgent.CLAUDE_CODE,
        entries=(*entries, *absent),
        size=frame + sum(extras),
        budget=budget,
        unit="characters",
    )


def _entry(skill: LibrarySkill, text: str, whole: str) -> ListingEntry:
    state = ListingState.WHOLE if text == whole else ListingState.CUT
    reason = ListingReason.NONE if whole else ListingReason.UNDESCRIBED
    return ListingEntry(skill=skill, state=state if text else ListingState.NAME, text=text, reason=reason)


def _described(skill: LibrarySkill) -> str:
    text = " - ".join(filter(None, (skill.description, skill.when)))
    return _SPACE.sub(" ", text).strip()


def _cut(text: str) -> str:
    """Return a description as Claude Code cuts it, which counts UTF-16 units."""
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * CLAUDE_DESCRIPTION:
        return text
    return units[: 2 * (CLAUDE_DESCRIPTION - 1)].decode("utf-16-le", "ignore") + "…"


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else not unicodedata.combining(character)
               for character in text)  # fmt: skip


def _of_codex(skills: Sequence[LibrarySkill], window: int, roots: Sequence[str]) -> SkillListing:
    own = [LibrarySkill(name=name, description="x" * length) for name, length in _SYSTEM]
    ranking = sorted((skill for skill in skills if skill.description.strip()),
                     key=lambda skill: (skill.is_users, skill.name))  # fmt: skip
    absent = [ListingEntry(skill=skill, state=ListingState.ABSENT, reason=ListingReason.UNDESCRIBED)
              for skill in skills if not skill.description.strip()]  # fmt: skip
    every = [replace(skill, description=_shortened(" ".join(skill.description.split()))) for skill in (*own, *ranking)]
    budget = max(1, int(window * CODEX_SHARE)) if window else CODEX_CHARACTERS
    lines = [_CodexLine(skill, BYTES_OF_A_TOKEN if window else 1) for skill in every]
    table = sum(len(f"- `r{index}` = `{root}`\n".encode()) for index, root in enumerate(roots))
    shares = _even_shares(lines, budget - max(0, -(-(table - _ROOT_TABLE) // BYTES_OF_A_TOKEN)))
    entries = []
    for skill, line, share in list(zip(ranking, lines[len(own) :], shares[len(own) :], strict=True)):
        if share is None:
            absent.append(ListingEntry(skill=skill, state=ListingState.ABSENT, reason=ListingReason.FULL))
        else:
            entries.append(_entry(skill, line.text[:share], " ".join(skill.description.split())))
    return SkillListing(
        agent=ListingAgent.CODEX,
        entries=(*entries, *absent),
        size=sum(line.cost(len(line.text)) for line in lines),
        budget=budget,
        unit="tokens" if window else "characters",
    )


def _shortened(text: str) -> str:
    return text if len(text) <= CODEX_DESCRIPTION else f"{text[: CODEX_DESCRIPTION - 3]}..."


class _CodexLine:
    def __init__(self, skill: LibrarySkill, divisor: int) -> None:
        self.text = skill.description
        self._divisor = divisor
        self._least = self._size(f"- {skill.name}:{_place(skill)}\n")
        self._sizes = [0, *accumulate(map(self._size, self.text))]

    def _size(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass")) if self._divisor > 1 else len(text)

    def cost(self, characters: int) -> int:
        """Return what the line costs with so many characters of its description."""
        size = self._least + (self._sizes[characters] + 1 if characters else 0)
        return -(-size // self._divisor)


def _even_shares(lines: Sequence[_CodexLine], budget: int) -> list[int | None]:
    """Return how many characters of its description each line keeps: one at a time, in turn, until nothing fits.

    None is a line that is left out, because the names alone are over the budget.
    """
    if sum(line.cost(len(line.text)) for line in lines) <= budget:
        return [len(line.text) for line in lines]
    least = [line.cost(0) for line in lines]
    if sum(least) > budget:
        shares: list[int | None] = []
        for cost in least:
            shares.append(0 if cost <= budget else None)
            budget -= cost if cost <= budget else 0
        return shares
    return [*_in_turn(lines, budget - sum(least))]


def _in_turn(lines: Sequence[_CodexLine], room: int) -> list[int]:
    shares = [0] * len(lines)
    is_changed = True
    while is_changed:
        is_changed = False
        for index, line in enumerate(lines):
            if shares[index] < len(line.text):
                extra = line.cost(shares[index] + 1) - line.cost(shares[index])
                if extra <= room:
                    shares[index] += 1
                    room -= extra
                    is_changed = True
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """The other skill of a library whose description has most in common with a skill's."""

    name: str
    share: float  # of common words, rare ones counting more; 1 for the same words


def neighbours(skills: Sequence[LibrarySkill]) -> Mapping[str, Neighbour]:
    """Return the nearest neighbour of every skill by name; a skill alone, or without a common word, has none."""
    words = {skill.name: frozenset(_WORD.findall(skill.description.lower())) for skill in skills}
    counts = Counter(word for each in words.values() for word in each)
    weights = {word: log(1 + len(words) / count) for word, count in counts.items()}
    likenesses = {name: list(_likenesses(name, words, weights)) for name in words}
    return {
        name: max(candidates, key=lambda candidate: (candidate.share, candidate.name))
        for name, candidates in likenesses.items()
        if candidates
    }


def _likenesses(name: str, words: Mapping[str, frozenset[str]], weights: Mapping[str, float]) -> Iterator[Neighbour]:
    own = words[name]
    for neighbour, theirs in words.items():
        common = sum(weights[word] for word in own & theirs)
        if neighbour != name and common:
            yield Neighbour(name=neighbour, share=common / sum(weights[word] for word in own | theirs))
