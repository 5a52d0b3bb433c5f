"""Find the rule that a person means, and what notes say it is worth."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isfinite
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.sequence_diff import words
from skillgit.domain.skill_rules import Rule
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import NotFoundError, UsageError
from skillgit.index import rule_queries
from skillgit.store import tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillgit.app.attribution.blame import SkillFile
    from skillgit.app.attribution.rule_lineage import RuleHistory, RuleText
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.index.rule_queries import OriginRow


_SURE = 65.0
"""From this likeness on, out of 100, words are taken to mean a rule."""
_ALL_WORDS = 90.0
"""The likeness from which on all words are in a rule."""
_BY_TITLE = 66.0
"""The likeness of a rule whose step's title, not its own text, has the words."""
_EVENTS = 40
_ASKED = 8
_SHORTEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A rule that may be meant.

    Attributes:
        path: The file that it is in, as the repository calls it.
        likeness: How well the words fit, out of 100.
        event: The event of that commit, where it was looked for in history.
    """

    rule: Rule
    path: str
    commit: str
    likeness: float
    event: OriginRow | None = None


def rule_at_line(workspace: Workspace, history: RuleHistory, commit: str, path: str, line: int) -> Hit:
    """Return the rule that stands on a line; a line that belongs to none stands for itself."""
    rule = history.text(commit, path).at(line)
    if rule is None:
        content = tree.read_file(workspace.repo.commit(commit).tree, path) or b""
        lines = content.decode(errors="replace").removesuffix("\n").split("\n")
        if not 1 <= line <= len(lines):
            raise UsageError(f"{path} has {len(lines)} lines, and none at {line}", hint="skillgit blame numbers them")
        if not lines[line - 1].strip():
            raise UsageError(f"line {line} of {path} is blank", hint="skillgit blame numbers the lines")
        rule = Rule(heading="", text=lines[line - 1].strip(), first=line, last=line)
    return Hit(rule=rule, path=path, commit=commit, likeness=100.0)


def rules_like(
    workspace: Workspace, history: RuleHistory, spot: SkillFile, text: str, path: str = ""
) -> tuple[Hit, ...]:
    """Return the rules that ``text`` may mean, the most likely first: those that stand, else those of history.

    Args:
        spot: The revision to look at first, its skill and its run.
        path: The only file to look in, as the repository calls it; empty for all of the skill.

    Raises:
        NotFoundError: No rule has such words.
    """
    commit = spot.found.commit
    files = {path: history.text(commit, path)} if path else history.skill(commit, spot.skill)
    here = [
        Hit(rule=rule, path=name, commit=commit, likeness=likeness(text, rule.text))
        for name, content in files.items()
        for rule in content.rules
    ]
    standing = {hit.rule.text: hit for hit in here}
    content = _best(here)
    if not content or content[0].likeness < _ALL_WORDS:
        once = _best(
            replace(standing[hit.rule.text], likeness=hit.likeness) if hit.rule.text in standing else hit
            for hit in _in_history(workspace, history, spot, text)
        )
        # a rule that had all the words goes before one that stands and has some of them
        content = once if not content else (*(hit for hit in once if hit.likeness >= _ALL_WORDS), *content)
    if not content:
        hint = f"skillgit log --grep {quote(text)}"
        raise NotFoundError(f"no rule of the skill, now or before, is like '{text}'", hint=hint)
    return content


def likeness(text: str, rule: str) -> float:
    """Return how well the words of ``text`` fit ``rule``, from 0 to 100; if all of them are in it, at least 90."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - one command needs it

    query, answer = words(text), words(rule)
    a, b = " ".join(query), " ".join(answer)
    tokens = [word for word in query if word.isalnum()]
    if tokens and all(any(own.startswith(word) for own in answer) for word in tokens):
        return _ALL_WORDS + fuzz.ratio(a, b) / 10.0
    return 0.9 * max(fuzz.token_set_ratio(a, b), fuzz.ratio(a, b), fuzz.partial_ratio(a, b) * 0.9)


def search_words(text: str) -> tuple[str, ...]:
    """Return the words of ``text`` to ask the index for, the longest of them, for they are the rarest."""
    tokens = {word for word in re.findall(r"\w+", text.casefold()) if len(word) >= _SHORTEST}
    return tuple(sorted(tokens, key=lambda word: (-len(word), word))[:_ASKED])


def _best(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    return tuple(sorted((hit for hit in hits if hit.likeness >= _SURE), key=lambda hit: -hit.likeness))


def _in_history(workspace: Workspace, history: RuleHistory, spot: SkillFile, text: str) -> Iterator[Hit]:
    """Yield the rules that events brought whose text holds the words; those of versions before those of candidates."""
    if spot.run is None:
        return
    query = search_words(text)
    hits: set[tuple[str, str]] = set()
    for is_rejected in (False, True):
        for event, _ in rule_queries.alike(workspace.index, spot.run, query, is_rejected=is_rejected, limit=_EVENTS):
            additions = tuple(_brought(workspace, history, spot.skill, event))
            for (path, rule), title in zip(additions, _titles(event.title, len(additions)), strict=True):
                if (path, rule.text) not in hits:
                    hits.add((path, rule.text))
                    by_title = _BY_TITLE if likeness(text, title) >= _SURE else 0.0
                    near = max(likeness(text, rule.text), by_title)
                    yield Hit(rule=rule, path=path, commit=event.commit, likeness=near, event=event)


def _titles(title: str, count: int) -> list[str]:
    """Return the part of an event's title for each of its rules; all of it, where it has not as many parts."""
    parts = title.split(",")
    return parts if len(parts) == count else [title] * count


def _brought(workspace: Workspace, history: RuleHistory, skill: str, event: OriginRow) -> Iterator[tuple[str, Rule]]:
    """Yield path and rule of what an event's text has and its first parent's has not; of a seed, all of it."""
    parents = workspace.repo.commit(event.commit).parent_ids
    older: list[RuleText] = []
    if parents and event.kind != EventKind.RUN_STARTED:
        older = list(history.skill(str(parents[0]), skill).values())
    for path, content in history.skill(event.commit, skill).items():
        yield from ((path, rule) for rule in content.rules if not any(rule.text in text.by_words for text in older))


_KIND = "ablation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWorth:
    """What leaving a rule out changed.

    Attributes:
        version: The version that it was left out of; absent for a rejected candidate.
        score: What the skill scored without it.
        delta: The score's distance from that of the whole skill.
        fixed: How many items scored higher without it.
        broken: How many items scored lower without it.
        worth: What the rule is good for: ``works``, ``mixed``, ``harmful`` or ``dead``.
    """

    version: int | None
    split: str
    n: int
    score: float
    delta: float
    fixed: int
    broken: int
    worth: str


def known_worth(workspace: Workspace, run: str, text: str) -> tuple[RuleWorth, ...]:
    """Return what notes on the events of ``run`` say of the rule ``text``, those on newer versions last."""
    notes = rule_queries.notes_about(workspace.index, run, _KIND)
    return tuple(worth for version, line in notes for worth in _read(version, line, text))


def _read(version: int | None, line: str, text: str) -> Iterator[RuleWorth]:
    try:
        note = loads(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(note, dict) or note.get("kind") != _KIND or not isinstance(note.get("rules"), list):
        return
    for row in note["rules"]:
        if isinstance(row, dict) and row.get("text") == text:
            worth = _worth(version, note, row)
            if worth is not None:
                yield worth


def _worth(version: int | None, note: Mapping[str, object], row: Mapping[str, object]) -> RuleWorth | None:
    score, delta, n = row.get("score"), row.get("delta"), note.get("n")
    fixes, breaks = row.get("fixed"), row.get("broken")
    if not isinstance(fixes, list) or not isinstance(breaks, list) or not isinstance(n, int):
        return None
    if not isinstance(score, int | float) or not isinstance(delta, int | float) or not isfinite(score + delta):
        return None
    return RuleWorth(
        version=version,
        split=str(note.get("split", "")),
        n=n,
        score=float(score),
        delta=float(delta),
        fixed=len(fixes),
        broken=len(breaks),
        worth=str(row.get("worth", "")),
    )
