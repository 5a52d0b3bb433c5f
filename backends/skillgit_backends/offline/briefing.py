"""The optimizer's prompts, parsed: tagged sections, trajectories, patches, pairs, what was tried before."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from skillgit.domain.edit import normalised

_DOCUMENT = "SKILL.md"
_NO_LIMIT = 1_000
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_STEP = re.compile(
    r"^(?:step|slow|epoch)\b.*?\b(?P<decision>accept\w*|reject\w*|skip\w*|revert\w*|merge\w*)\b", re.IGNORECASE
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_EXPECTED = re.compile(rf"expected(?: one of)?:\s*(?P<list>{_STRING}(?:,\s*{_STRING})*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a task.

    Attributes:
        item: The task's id.
        prompt: What the target was given.
        answer: What it answered.
        expected: The answers that would have been right, as far as the feedback tells them.
    """

    item: str
    prompt: str
    answer: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An earlier step: whether the gate took its candidate, and the lines that it had added."""

    accepted: bool
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One task with the previous and the current version of the skill."""

    category: str
    current: Attempt


@dataclass(frozen=True, slots=True)
class Briefing:
    """A user message of the optimizer, with the text of its sections."""

    text: str

    def section(self, tag: str) -> str:
        """Return the body of the first section ``tag``; empty if there is none."""
        return next((body for _, body in sections(self.text, tag)), "")

    @property
    def document(self) -> str:
        """The file that rules go into, of the current skill where there are two."""
        skills = sections(self.text, "skill")
        whole = next((body for attributes, body in self._files if attributes.get("path") == self.rules_file), "")
        return whole or (_put_together(skills[-1][1]) if skills else "")

    @property
    def rules_file(self) -> str:
        """The path of that file: another Markdown file than ``SKILL.md`` if one is there to be edited."""
        paths = (found["path"] for found, _ in self._files if found.get("editable") == "yes" and "path" in found)
        return next((path for path in paths if path != _DOCUMENT and path.endswith(".md")), _DOCUMENT)

    @property
    def _files(self) -> list[tuple[dict[str, str], str]]:
        skills = sections(self.text, "skill")
        return sections(skills[-1][1], "file") if skills else []

    @property
    def budget(self) -> int:
        """The most edits that may be proposed; more than anybody proposes where there is no limit."""
        match = re.search(r"^<budget>\s*(\d+)\s*</budget>", self.text, re.MULTILINE)
        return int(match.group(1)) if match else _NO_LIMIT

    @property
    def attempts(self) -> list[Attempt]:
        """The trajectories."""
        return [_attempt(attributes.get("id", ""), body) for attributes, body in sections(self.text, "trajectory")]

    @property
    def patches(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The patches of a merge with the source that each group is labelled with."""
        return [
            (attributes.get("source", ""), [entry for entry in _entries(body) if isinstance(entry, dict)])
            for attributes, body in sections(self.text, "patches")
        ]

    @property
    def edits(self) -> list[dict[str, Any]]:
        """The edits to rank."""
        return [entry for entry in _entries(self.section("edits")) if isinstance(entry, dict)]

    @property
    def suggestions(self) -> list[dict[str, Any]]:
        """The suggestions to rank or to carry out."""
        return [entry for entry in _entries(self.section("suggestions")) if isinstance(entry, dict)]

    @property
    def steps(self) -> list[Step]:
        """What was tried before, as the history tells it."""
        return self.steps_in("history")

    def steps_in(self, tag: str) -> list[Step]:
        """Return the steps that the section ``tag`` tells of."""
        found: list[tuple[bool, list[str]]] = []
        for line in self.section(tag).splitlines():
            match = _STEP.match(line)
            if match:
                found.append((match.group("decision").lower().startswith(("accept", "merge")), []))
            elif found and re.match(r"\s+\+ ", line):
                found[-1][1].append(line.strip()[2:].strip())
        return [Step(accepted=accepted, added=tuple(added)) for accepted, added in found]

    @property
    def rejected_lines(self) -> frozenset[str]:
        """Normalised lines of edits that were rejected."""
        return frozenset(normalised(line) for step in self.steps if not step.accepted for line in step.added)

    @property
    def pairs(self) -> list[Pair]:
        """The tasks that a slow update compares."""
        return [
            Pair(category=attributes.get("category", ""), current=_attempt(attributes.get("id", ""), _current(body)))
            for attributes, body in sections(self.text, "pair")
        ]


def sections(text: str, tag: str) -> list[tuple[dict[str, str], str]]:
    """Return attributes and body of every section ``tag`` whose tags stand on lines of their own."""
    pattern = re.compile(
        rf"^<{tag}(?P<attributes>(?: [^>\n]*)?)>(?:\n(?P<body>.*?))?\n?</{tag}>[ \t]*$", re.DOTALL | re.MULTILINE
    )
    return [
        (dict(_ATTRIBUTE.findall(match.group("attributes"))), match.group("body") or "")
        for match in pattern.finditer(text)
    ]


def _put_together(skill: str) -> str:
    """Return the document whose editable text and protected parts ``skill`` shows."""
    document = next((body for _, body in sections(skill, "body")), "")
    head = ""
    for attributes, text in sections(skill, "protected"):
        if "placeholder" in attributes:
            document = document.replace(attributes["placeholder"], text, 1)
        else:
            head = f"{text}\n\n"
    return f"{head}{document}\n"


def _current(pair: str) -> str:
    return next((body for _, body in sections(pair, "current")), pair)


def _attempt(item: str, body: str) -> Attempt:
    turns = sections(body, "turn")
    rest = re.sub(r"^<turn\b.*?^</turn>[ \t]*$", "", body, flags=re.DOTALL | re.MULTILINE)
    feedback = "\n".join(text for _, text in sections(rest, "feedback"))
    return Attempt(
        item=item,
        prompt=next((text for attributes, text in turns if attributes.get("role") == "user"), ""),
        answer=" ".join(next((text for _, text in sections(rest, "answer")), "").split()),
        expected=_expected(feedback),
    )


def _expected(feedback: str) -> tuple[str, ...]:
    match = _EXPECTED.search(feedback)
    return tuple(_entries(f"[{match.group('list')}]")) if match else ()


def _entries(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return found if isinstance(found, list) else [found]
