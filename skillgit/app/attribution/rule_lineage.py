"""The life of a rule: the wordings that it had before, what happened to it later, and what leaving it out changed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from shlex import quote
from typing import Literal

from skillgit.app.attribution.line_tracer import TracedLine, Tracer
from skillgit.app.recorded.evidence_json import members, objects, parsed
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.skill import DOCUMENT, excess
from skillgit.domain.skill_rules import Rule, RuleDiff, match, rules
from skillgit.errors import SkillError
from skillgit.index import rule_queries
from skillgit.index.rule_queries import OriginRow
from skillgit.store import tree

Fate = Literal["stands", "reworded", "removed", "left"]
"""Whether a rule is in the newest version, was reworded or removed, or was left with the line that had it, as the next
version was made of one without it."""

_MOST = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A rule as one event put it."""

    rule: Rule
    commit: str
    path: str
    line: TracedLine
    origin: OriginRow | None  # the event; absent if the commit is none of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterChange:
    """What happened to a rule."""

    fate: Fate
    version: int
    origin: OriginRow | None  # the event that made that version; absent if it cannot be told
    path: str  # the file that it is in; empty if there is none
    rule: Rule | None  # the rule in that version; absent if it is not in it


class RuleText:
    """The rules of one text, to be found by line and by words."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.by_words: dict[str, Rule] = {}
        for rule in rules:
            self.by_words.setdefault(rule.text, rule)

    def at(self, line: int) -> Rule | None:
        """Return the rule that a line belongs to."""
        index = bisect_right(self.rules, line, key=lambda rule: rule.first) - 1
        return self.rules[index] if index >= 0 and line <= self.rules[index].last else None


class RuleChanges:
    """The rules that have other words in a newer text."""

    def __init__(self, diff: RuleDiff) -> None:
        self.before = {pair.new: pair.old for pair in diff.changes}
        self.after: dict[str, Rule] = {}  # old words to what the first such rule became
        for pair in diff.changes:
            self.after.setdefault(pair.old.text, pair.new)


_EMPTY = RuleText(())


class RuleHistory:
    """Follows rules through a repository; every text is read, blamed and compared once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.tracer = Tracer(workspace)
        self._texts: dict[tuple[str, bool], RuleText] = {}
        self._files: dict[tuple[str, str, bool], RuleText] = {}
        self._skills: dict[tuple[str, str], dict[str, RuleText]] = {}
        self._changes: dict[tuple[RuleText, RuleText], RuleChanges] = {}

    def wordings(self, commit: str, path: str, rule: Rule) -> Iterator[Wording]:
        """Yield the wordings of a rule in the file ``path`` of ``commit``, the present one first."""
        for _ in range(_MOST):
            # the line that came last gave the rule the words that it has
            line = max(self.tracer.trace(commit, path, rule.first, rule.last), key=_age, default=None)
            if line is None:
                return
            new = self.text(line.commit, line.original_path)
            stood = new.at(line.original_line)
            yield Wording(
                rule=stood or rule, commit=line.commit, path=line.original_path, line=line, origin=line.origin
            )
            base = self.tracer.before(line.commit)
            if stood is None or base is None:
                return
            commit, path = base, line.original_path
            before = self.changes(self.text(commit, path), new).before.get(stood)
            if before is None:
                return
            rule = before

    def later_changes(self, run: str, skill: str, version: int, rule: Rule) -> Iterator[LaterChange]:
        """Yield a rule's later changes, oldest first, by bisection: of a rule that came back, one end is told."""
        index = self._workspace.index
        newest = rule_queries.newest_version(index, run)
        for _ in range(_MOST):
            stands = self._find(run, skill, newest, rule)
            if stands is not None:
                origin = rule_queries.origin_of_version(index, run, newest)
                yield LaterChange(fate="stands", version=newest, origin=origin, path=stands[0], rule=stands[1])
                return
            present, absent = version, newest
            while absent - present > 1:
                middle = (present + absent) // 2
                has = self._find(run, skill, middle, rule) is not None
                present, absent = (middle, absent) if has else (present, middle)
            change = self._change(run, skill, present, absent, rule)
            yield change
            if change.rule is None:
                return
            version, rule = absent, change.rule

    def text(self, commit: str, path: str, *, is_document: bool | None = None) -> RuleText:
        """Return the rules of the file ``path`` of ``commit``; none if there is no such file.

        Whether it is a skill's ``SKILL.md`` its name tells, unless ``is_document`` says so.
        """
        key = (commit, path, path.rpartition("/")[2] == DOCUMENT if is_document is None else is_document)
        if key not in self._files:
            content = tree.read_file(self._workspace.repo, self._workspace.repo.commit(commit).tree, path) or b""
            if too_long := excess({DOCUMENT if key[2] else path: content}):
                raise SkillError(too_long, hint=f"git show {quote(f'{commit[:12]}:{path}')}")
            self._files[key] = self._read(content.decode(errors="replace"), is_document=key[2])
        return self._files[key]

    def skill(self, commit: str, skill: str) -> dict[str, RuleText]:
        """Return path to rules of every Markdown file of the skill in ``commit``, ``SKILL.md`` first."""
        if (commit, skill) not in self._skills:
            self._skills[commit, skill] = dict(self._skill(commit, skill))
        return self._skills[commit, skill]

    def changes(self, old: RuleText, new: RuleText) -> RuleChanges:
        """Return which rules of ``old`` have other words in ``new``."""
        if (old, new) not in self._changes:
            self._changes[old, new] = RuleChanges(match(old.rules, new.rules))
        return self._changes[old, new]

    def _skill(self, commit: str, skill: str) -> Iterator[tuple[str, RuleText]]:
        contents = tree.read_texts(self._workspace.repo, self._workspace.repo.commit(commit).tree, skill)
        texts = {path: text for path, text in contents.items() if path.lower().endswith(".md") and "\0" not in text}
        for path in sorted(texts, key=lambda name: (name != DOCUMENT, name)):
            yield f"{skill}/{path}", self._read(texts[path], is_document=path == DOCUMENT)

    def _read(self, text: str, *, is_document: bool) -> RuleText:
        if (text, is_document) not in self._texts:
            self._texts[text, is_document] = RuleText(rules(text, is_document=is_document))
        return self._texts[text, is_document]

    def _version(self, run: str, skill: str, version: int) -> dict[str, RuleText]:
        commit = rule_queries.commit_of_version(self._workspace.index, run, version)
        return self.skill(commit, skill) if commit else {}

    def _find(self, run: str, skill: str, version: int, rule: Rule) -> tuple[str, Rule] | None:
        """Return where ``version`` has the words of ``rule``."""
        texts = self._version(run, skill, version).items()
        return next(((path, text.by_words[rule.text]) for path, text in texts if rule.text in text.by_words), None)

    def _change(self, run: str, skill: str, before: int, after: int, rule: Rule) -> LaterChange:
        origin = rule_queries.origin_of_version(self._workspace.index, run, after)
        new = self._version(run, skill, after)
        if origin is not None and origin.base is not None and origin.base != before:
            if self._find(run, skill, origin.base, rule) is None:
                return LaterChange(fate="left", version=after, origin=origin, path="", rule=None)
            before = origin.base
        for path, old in self._version(run, skill, before).items():
            if rule.text in old.by_words:
                now = self.changes(old, new.get(path, _EMPTY)).after.get(rule.text)
                if now is not None:
                    return LaterChange(fate="reworded", version=after, origin=origin, path=path, rule=now)
        return LaterChange(fate="removed", version=after, origin=origin, path="", rule=None)


def _age(line: TracedLine) -> tuple[bool, int, int]:
    origin = line.origin
    return (origin is not None, int(origin.time.timestamp()) if origin else 0, origin.step if origin else 0)


_KIND = "ablation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWorth:
    """What leaving a rule out changed."""

    version: int | None  # the version that it was left out of; absent for a rejected candidate
    split: str
    n: int
    score: float  # what the skill scored without it
    delta: float  # the score's distance from that of the whole skill
    fixed: int  # how many items scored higher without it
    broken: int  # how many items scored lower without it
    worth: str  # what the rule is good for: `works`, `mixed`, `harmful` or `dead`


def known_worth(workspace: Workspace, run: str, text: str) -> tuple[RuleWorth, ...]:
    """Return what notes on the events of ``run`` say of the rule ``text``, those on newer versions last."""
    notes = rule_queries.notes_about(workspace.index, run, _KIND)
    return tuple(worth for version, line in notes for worth in _read(version, line, text))


def _read(version: int | None, line: str, text: str) -> Iterator[RuleWorth]:
    note = members(parsed(line))
    rows = [row for row in objects(note.get("rules")) if note.get("kind") == _KIND and row.get("text") == text]
    yield from filter(None, (_worth(version, note, row) for row in rows))


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
