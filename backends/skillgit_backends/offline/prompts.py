"""The prompts that the offline models get, parsed: a target's skill and task, sections of an optimizer's message."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillgit.domain.edit import normalised
from skillgit.domain.skill import DOCUMENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.plugin.backend import Message

_SKILL = re.compile(r"<skill\b[^>]*>(?P<body>.*)</skill>", re.DOTALL)
_CONTEXT = re.compile(r"<context>(?P<body>.*?)</context>", re.DOTALL)
_QUESTION = re.compile(r"<question>(?P<body>.*?)</question>", re.DOTALL)
_NO_LIMIT = 1_000
_FRAME = re.compile(r"^<(environment|record|contrast)\b.*?^</\1[^>]*>\n+", re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r"(</?[a-z_]+)-\d+(?=[ >])")
_REASONS = re.compile(r"^  (?:because|fixed): .*\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_STEP = re.compile(
    r"^(?:step|slow|epoch)\b.*?\b(?P<decision>accept\w*|reject\w*|skip\w*|revert\w*|merge\w*)\b", re.IGNORECASE
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_EXPECTED = re.compile(rf"expected(?: one of)?:\s*(?P<list>{_STRING}(?:,\s*{_STRING})*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTask:
    context: str
    question: str


def skill_text(messages: Sequence[Message]) -> str:
    """Return the skill inside the system message, or the whole system message where no skill is marked."""
    text = "\n".join(message.text for message in messages if message.role == "system")
    match = _SKILL.search(text)
    return match["body"] if match else text


def parse_task(prompt: str) -> SearchTask:
    """Read a task prompt; without marks, the last paragraph is the question and the rest the context."""
    context, question = _CONTEXT.search(prompt), _QUESTION.search(prompt)
    if question is not None:
        rest = prompt[: question.start()] + prompt[question.end() :]
        return SearchTask(
            context=(context["body"] if context else rest).strip(), question=" ".join(question["body"].split())
        )
    paragraphs = [part for part in re.split(r"\n\s*\n", prompt.strip()) if part.strip()]
    return SearchTask(context="\n".join(paragraphs[:-1]), question=" ".join("".join(paragraphs[-1:]).split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttempt:
    item: str
    turns: tuple[tuple[str, str], ...] = ()
    answer: str
    right_answers: tuple[str, ...]  # the right answers, as far as the feedback names them
    category: str = ""  # how the outcome changed, where two versions are compared

    @property
    def prompt(self) -> str:
        return next((text for role, text in self.turns if role == "user"), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierStep:
    """An earlier step: whether the gate took its candidate, and the lines that it had added."""

    is_accepted: bool
    additions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Briefing:
    """A user message of the optimizer."""

    text: str

    def section(self, tag: str) -> str:
        """Return the body of the first section ``tag``; empty if there is none."""
        return next((body for _, body in sections(self.text, tag)), "")

    @property
    def seed(self) -> str:
        """What draws are made from: what the prompt is about and not how it says it, so that prompts can improve."""
        text = _FRAME.sub("", self.text)
        return _REASONS.sub("", _MARKS.sub(r"\1", text))

    @property
    def document(self) -> str:
        """The file that rules go into, of the current skill where there are two."""
        skills = sections(self.text, "skill")
        whole = next((body for attributes, body in self._files if attributes.get("path") == self.rules_file), "")
        return whole or (_assembled(skills[-1][1]) if skills else "")

    @property
    def rules_file(self) -> str:
        """The path of that file: another Markdown file than ``SKILL.md`` if one is there to be edited."""
        paths = (file["path"] for file, _ in self._files if file.get("editable") == "yes" and "path" in file)
        return next((path for path in paths if path != DOCUMENT and path.endswith(".md")), DOCUMENT)

    @property
    def _files(self) -> list[tuple[dict[str, str], str]]:
        skills = sections(self.text, "skill")
        return sections(skills[-1][1], "file") if skills else []

    @property
    def budget(self) -> int:
        """The most edits that may be proposed; more than any analyst proposes where there is no limit."""
        match = re.search(r"^<budget(?:-\d+)?>\s*(\d+)\s*</budget", self.text, re.MULTILINE)
        return int(match[1]) if match else _NO_LIMIT

    @property
    def attempts(self) -> list[TaskAttempt]:
        return [_attempt(attributes, body) for attributes, body in sections(self.text, "trajectory")]

    @property
    def pairs(self) -> list[TaskAttempt]:
        """The current attempts of the tasks that a slow update compares."""
        return [
            _attempt(attributes, next((side for _, side in sections(body, "current")), body))
            for attributes, body in sections(self.text, "pair")
        ]

    @property
    def patches(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The patches of a merge with the source that each group is labelled with."""
        return [(attributes.get("source", ""), _objects(body)) for attributes, body in sections(self.text, "patches")]

    def proposals(self, tag: str) -> list[dict[str, Any]]:
        return _objects(self.section(tag))

    def steps(self, tag: str = "history") -> list[EarlierStep]:
        steps: list[tuple[bool, list[str]]] = []
        for line in self.section(tag).splitlines():
            match = _STEP.match(line)
            if match:
                steps.append((match["decision"].lower().startswith(("accept", "merge")), []))
            elif steps and re.match(r"\s+\+ ", line):
                steps[-1][1].append(line.strip()[2:].strip())
        return [EarlierStep(is_accepted=is_accepted, additions=tuple(lines)) for is_accepted, lines in steps]

    @property
    def rejected_lines(self) -> frozenset[str]:
        return frozenset(normalised(line) for step in self.steps() if not step.is_accepted for line in step.additions)


def sections(text: str, tag: str) -> list[tuple[dict[str, str], str]]:
    """Return attributes and body of every section ``tag`` whose tags stand on lines of their own."""
    pattern = re.compile(
        rf"^<{tag}(?P<mark>(?:-\d+)?)(?P<attributes>(?: [^>\n]*)?)>(?:\n(?P<body>.*?))?\n?</{tag}(?P=mark)>[ \t]*$",
        re.DOTALL | re.MULTILINE,
    )
    return [(dict(_ATTRIBUTE.findall(match["attributes"])), match["body"] or "") for match in pattern.finditer(text)]


def _assembled(skill: str) -> str:
    """Return the document whose editable text and protected parts ``skill`` shows."""
    document = next((body for _, body in sections(skill, "body")), "")
    head = ""
    for attributes, text in sections(skill, "protected"):
        if "placeholder" in attributes:
            document = document.replace(attributes["placeholder"], text, 1)
        else:
            head = f"{text}\n\n"
    return f"{head}{document}\n"


def _attempt(attributes: dict[str, str], body: str) -> TaskAttempt:
    rest = re.sub(r"^<turn\b.*?^</turn(?:-\d+)?>[ \t]*$", "", body, flags=re.DOTALL | re.MULTILINE)
    match = _EXPECTED.search("\n".join(text for _, text in sections(rest, "feedback")))
    return TaskAttempt(
        item=attributes.get("id", ""),
        turns=tuple((turn.get("role", ""), text) for turn, text in sections(body, "turn")),
        answer=" ".join(next((text for _, text in sections(rest, "answer")), "").split()),
        right_answers=tuple(_entries(f"[{match['list']}]")) if match else (),
        category=attributes.get("category", ""),
    )


def _objects(text: str) -> list[dict[str, Any]]:
    return [entry for entry in _entries(text) if isinstance(entry, dict)]


def _entries(text: str) -> list[Any]:
    try:
        entries = json.loads(text)
    except ValueError:
        return []
    return entries if isinstance(entries, list) else [entries]
