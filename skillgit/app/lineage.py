"""The life of a rule: the wordings that it had before, and what became of it in later versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.app.provenance import TracedLine, trace
from skillgit.domain.rules import Rule, match, rules
from skillgit.domain.skill import DOCUMENT
from skillgit.index import rule_queries
from skillgit.store import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.workspace import Workspace
    from skillgit.index.rule_queries import OriginRow

Fate = Literal["stands", "reworded", "removed"]

_MOST = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A rule as one event put it.

    Attributes:
        rule: The rule, in that event's text.
        commit: The commit that gave it these words.
        path: The file.
        line: The traced line that tells.
        origin: The event; absent if the commit is none of a run.
    """

    rule: Rule
    commit: str
    path: str
    line: TracedLine
    origin: OriginRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterChange:
    """What became of a rule.

    Attributes:
        fate: Whether it stands in the newest version, or was reworded or removed.
        version: The version that this is true of.
        origin: The event that made that version; absent if it cannot be told.
        path: The file that it stands in; empty if it was removed.
        rule: The rule in that version; absent if it was removed.
    """

    fate: Fate
    version: int
    origin: OriginRow | None
    path: str
    rule: Rule | None


def wordings(workspace: Workspace, commit: str, path: str, rule: Rule) -> Iterator[Wording]:
    """Yield the wordings of a rule in the file ``path`` of ``commit``, the present one first.

    Raises:
        NotFoundError: There is no such file.
    """
    for _ in range(_MOST):
        line = _newest(trace(workspace, commit, path)[rule.first - 1 : rule.last])
        if line is None:
            return
        new = file_rules(workspace, line.commit, line.original_path)
        stood = next((own for own in new if own.first <= line.original_line <= own.last), None)
        yield Wording(rule=stood or rule, commit=line.commit, path=line.original_path, line=line, origin=line.origin)
        parents = workspace.repo.commit(line.commit).parent_ids
        if stood is None or not parents:
            return
        commit, path = str(parents[0]), line.original_path
        before = next(
            (pair.old for pair in match(file_rules(workspace, commit, path), new).changed if pair.new == stood), None
        )
        if before is None:
            return
        rule = before


def later_changes(workspace: Workspace, run: str, skill: str, version: int, rule: Rule) -> Iterator[LaterChange]:
    """Yield what became of a rule of ``version`` of ``run`` until the newest version, oldest first.

    Whether a version has the rule is asked of a few versions only, halving the distance: where a rule went, came back
    and went again, one of its ends is told.
    """
    newest = rule_queries.newest_version(workspace.index, run)
    reader = _Versions(workspace, run, skill)
    for _ in range(_MOST):
        stands = reader.find(newest, rule)
        if stands is not None:
            origin = rule_queries.origin_of_version(workspace.index, run, newest)
            yield LaterChange(fate="stands", version=newest, origin=origin, path=stands[0], rule=stands[1])
            return
        present, gone = version, newest
        while gone - present > 1:
            middle = (present + gone) // 2
            present, gone = (middle, gone) if reader.find(middle, rule) is not None else (present, middle)
        change = reader.change(present, gone, rule)
        yield change
        if change.rule is None:
            return
        version, rule = gone, change.rule


class _Versions:
    """Reads the rules of versions.

    Args:
        workspace: The repository and its index.
        run: The run.
        skill: The skill folder.
    """

    def __init__(self, workspace: Workspace, run: str, skill: str) -> None:
        self._workspace = workspace
        self._run = run
        self._skill = skill
        self._read: dict[int, dict[str, tuple[Rule, ...]]] = {}

    def find(self, version: int, rule: Rule) -> tuple[str, Rule] | None:
        """Return where ``version`` has the words of ``rule``."""
        found = self._rules(version).items()
        return next(((path, own) for path, each in found for own in each if own.text == rule.text), None)

    def change(self, before: int, after: int, rule: Rule) -> LaterChange:
        """Return what ``after`` made of a rule that ``before`` has and ``after`` has not."""
        origin = rule_queries.origin_of_version(self._workspace.index, self._run, after)
        new = self._rules(after)
        for path, old in self._rules(before).items():
            if any(own.text == rule.text for own in old):
                pairs = match(old, new.get(path, ())).changed
                now = next((pair.new for pair in pairs if pair.old.text == rule.text), None)
                if now is not None:
                    return LaterChange(fate="reworded", version=after, origin=origin, path=path, rule=now)
        return LaterChange(fate="removed", version=after, origin=origin, path="", rule=None)

    def _rules(self, version: int) -> dict[str, tuple[Rule, ...]]:
        if version not in self._read:
            commit = rule_queries.commit_of_version(self._workspace.index, self._run, version)
            self._read[version] = dict(skill_rules(self._workspace, commit, self._skill)) if commit else {}
        return self._read[version]


def skill_rules(workspace: Workspace, commit: str, skill: str) -> Iterator[tuple[str, tuple[Rule, ...]]]:
    """Yield path and rules of every Markdown file of the skill in ``commit``, ``SKILL.md`` first."""
    held = tree.read_texts(workspace.repo.commit(commit).tree, skill)
    texts = {path: text for path, text in held.items() if path.lower().endswith(".md") and "\0" not in text}
    for path in sorted(texts, key=lambda name: (name != DOCUMENT, name)):
        yield f"{skill}/{path}", rules(texts[path], is_document=path == DOCUMENT)


def file_rules(workspace: Workspace, commit: str, path: str) -> tuple[Rule, ...]:
    """Return the rules of the file ``path`` of ``commit``; none if there is no such file."""
    content = tree.read_file(workspace.repo.commit(commit).tree, path)
    text = (content or b"").decode(errors="replace")
    return rules(text, is_document=path.rpartition("/")[2] == DOCUMENT)


def _newest(lines: Sequence[TracedLine]) -> TracedLine | None:
    """Return the line that came last: it gave the rule the words that it has."""
    return max(lines, key=_age, default=None)


def _age(line: TracedLine) -> tuple[bool, int, int]:
    origin = line.origin
    return (origin is not None, int(origin.time.timestamp()) if origin else 0, origin.step if origin else 0)
