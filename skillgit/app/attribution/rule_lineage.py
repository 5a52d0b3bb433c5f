"""The life of a rule: the wordings that it had before, what happened to it later, and what leaving it out changed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from shlex import quote
from typing import Literal

from skillgit.app.attribution.line_tracer import TracedLine, Tracer
from skillgit.app.recorded.evidence_json import members, parsed
from skillgit.app.recorded.rule_notes import KIND, noted_rules
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.skill import DOCUMENT, excess
from skillgit.domain.skill_rules import Rule, match, rules
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
    origin: OriginRow | None  # the event that made that version; absent if unknown
    path: str  # the file that it is in; empty if there is none
    rule: Rule | None  # the rule in that version; absent if it is not in it


class RuleText:
    """The rules of one text, to be found by line and by words."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.by_words = {rule.text: rule for rule in reversed(rules)}

    def at(self, line: int) -> Rule | None:
        """Return the rule that a line belongs to."""
        index = bisect_right(self.rules, line, key=lambda rule: rule.first) - 1
        return self.rules[index] if index >= 0 and line <= self.rules[index].last else None


class RuleChanges:
    """The rules that have other words in a newer text."""

    def __init__(self, old: RuleText, new: RuleText) -> None:
        pairs = match(old.rules, new.rules).changes
        self.before = {pair.new: pair.old for pair in pairs}
        self.after = {pair.old.text: pair.new for pair in reversed(pairs)}  # to what the first of such rules became


class RuleHistory:
    """Follows rules through a repository; every text is read, blamed and compared once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.tracer = Tracer(workspace)
        self.skill, self.changes = cache(self._skill), cache(RuleChanges)
        self._file, self._rules = cache(self._read_file), cache(self._read_rules)

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
        """Yield a rule's later changes, oldest first, by bisection: of a rule that came back, one end is found."""
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

        Its name says whether it is a skill's ``SKILL.md``, unless ``is_document`` does.
        """
        return self._file(commit, path, path.rpartition("/")[2] == DOCUMENT if is_document is None else is_document)

    def _read_file(self, commit: str, path: str, is_document: bool) -> RuleText:  # noqa: FBT001 - a key
        content = tree.read_file(self._workspace.repo, self._workspace.repo.commit(commit).tree, path) or b""
        if too_long := excess({DOCUMENT if is_document else path: content}):
            raise SkillError(too_long, hint=f"git show {quote(f'{commit[:12]}:{path}')}")
        return self._rules(content.decode(errors="replace"), is_document)

    def _read_rules(self, text: str, is_document: bool) -> RuleText:  # noqa: FBT001 - a key
        return RuleText(rules(text, is_document=is_document))

    def _skill(self, commit: str, skill: str) -> dict[str, RuleText]:
        """Return path to rules of every Markdown file of the skill in ``commit``, ``SKILL.md`` first."""
        contents = tree.read_texts(self._workspace.repo, self._workspace.repo.commit(commit).tree, skill)
        paths = [path for path, text in contents.items() if path.lower().endswith(".md") and "\0" not in text]
        order = sorted(paths, key=lambda path: (path != DOCUMENT, path))
        return {f"{skill}/{path}": self._rules(contents[path], path == DOCUMENT) for path in order}

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
                now = self.changes(old, new.get(path, RuleText(()))).after.get(rule.text)
                if now is not None:
                    return LaterChange(fate="reworded", version=after, origin=origin, path=path, rule=now)
        return LaterChange(fate="removed", version=after, origin=origin, path="", rule=None)


def _age(line: TracedLine) -> tuple[bool, int, int]:
    origin = line.origin
    return (origin is not None, int(origin.time.timestamp()) if origin else 0, origin.step if origin else 0)


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
    worths: list[RuleWorth] = []
    for version, line in rule_queries.notes_about(workspace.index, run, KIND):
        note = members(parsed(line))
        match note.get("n"):
            case int(n):
                worths += (
                    RuleWorth(
                        version=version,
                        split=str(note.get("split", "")),
                        n=n,
                        score=row.score,
                        delta=row.delta,
                        fixed=len(row.fixed_items),
                        broken=len(row.broken_items),
                        worth=row.worth,
                    )
                    for row in noted_rules(note)
                    if row.text == text
                )
    return tuple(worths)
