"""Owns how a request becomes what an agent is given: skills, pictures, instructions and a task.

A skill that a system message marks (``skillgit.plugin.skill_marks``) is taken out: it is delivered as a file where the
agent looks for skills. A sentence is in its place. Its other files stand at its end between ``<companion path="…">``
and ``</companion>``; they are delivered as files of its folder. One that is offered is installed as it is, its
frontmatter too, and not a word says so: it is up to the agent whether it loads it.

Tools that an agent does not have are offered in words: it answers in JSON and names the ones to call.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.trajectory import ToolUse, Turn
from skillgit.domain.untrusted.file_names import clashes, path_fault
from skillgit.domain.untrusted.json_limits import read_document
from skillgit.errors import BadRequestError, UnusableAnswerError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.backend import Image, Message, Reply, Request, Text, Tool, ToolCall, Usage
from skillgit.plugin.skill_marks import skill_blocks

with loaded_on_use():
    import yaml

Match = re.Match[str]
_COMPANION = re.compile(r'^<companion path="(?P<path>[^"\n]+)">[ \t]*\n', re.MULTILINE)
_COMPANION_END = re.compile(r"^</companion>[ \t]*(?:\n|\Z)", re.MULTILINE)
_NO_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 64
_DESCRIPTION = "How to do the task of this workspace. Use it for every task here."
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSkill:
    """A skill to deliver: its name as agents allow it, its ``SKILL.md``, and path to text of its other files."""

    name: str
    document: str
    files: Mapping[str, str] = field(default_factory=dict)
    offered: bool = False  # whether it is up to the agent to load it


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureFile:
    """A picture to deliver: its path in the workspace and its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    skills: tuple[DeliveredSkill, ...]  # to be placed where the agent looks for skills
    pictures: tuple[PictureFile, ...]
    instructions: str  # what the system messages say besides the skills
    task: str  # what is to be done, or the conversation to be continued

    @property
    def to_load(self) -> tuple[DeliveredSkill, ...]:
        """The skills that the agent is asked to load."""
        return tuple(skill for skill in self.skills if not skill.offered)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the skills that the agent is asked to load."""
        return tuple(skill.name for skill in self.to_load)

    @property
    def offers(self) -> bool:
        """Whether what the agent loads is what is asked."""
        return any(skill.offered for skill in self.skills)


def assignment(request: Request) -> Assignment:
    """Return what ``request`` asks, in the form that an agent is given it; a BadRequestError for a broken picture."""
    skills: list[DeliveredSkill] = []
    pictures: list[PictureFile] = []
    messages = [message for message in request.messages if message.role != "system"]
    instructions = [_taken_out(message.text, skills) for message in request.messages if message.role == "system"]
    is_question = len(messages) == 1 and messages[0].role == "user"
    task = _words(messages[0], pictures) if is_question else _conversation(messages, pictures)
    return Assignment(
        skills=tuple(skills),
        pictures=tuple(pictures),
        instructions="\n\n".join(text for text in instructions if text),
        task=task,
    )


def _taken_out(text: str, skills: list[DeliveredSkill]) -> str:
    """Return ``text`` without its skills, which are added to ``skills``."""
    parts: list[str] = []
    position = 0
    for opening, closing in skill_blocks(text):
        skill = _skill(opening, text[opening.end() : closing.start()], {skill.name for skill in skills})
        skills.append(skill)
        parts.append(text[position : opening.start()])
        if not skill.offered:
            parts.append(f"The skill {skill.name} is installed here. Load it before you begin, and follow it.\n")
        position = closing.end()
    return "".join([*parts, text[position:]]).strip()


def _skill(opening: Match, body: str, names: set[str]) -> DeliveredSkill:
    plain = _NO_NAME.sub("-", opening["name"].lower()).strip("-")[:_LONGEST_NAME].strip("-") or "skill"
    name, number = plain, 1
    while name in names:
        number += 1
        name = f"{plain[: _LONGEST_NAME - 4].rstrip('-')}-{number}"
    if opening["offered"]:
        return DeliveredSkill(name=name, document=body, offered=True)
    body, files = _unfolded(body)
    head = frontmatter(body)
    # Every JSON string is a YAML string too.
    fields = (f"{key}: {json.dumps(value)}" for key, value in (("name", name), ("description", _described(head))))
    document = "\n".join(["---", *fields, "---", "", body[len(head) :].strip(), ""])
    return DeliveredSkill(name=name, document=document, files=files)


def _unfolded(body: str) -> tuple[str, dict[str, str]]:
    """Return the text of a skill without its companions, and path to text of these.

    One whose path leaves the skill's folder or names a file that is there already stays in the text: a model may have
    written it.
    """
    parts: list[str] = []
    files: dict[str, str] = {}
    position = 0
    for opening, closing in _companion_blocks(body):
        path = opening["path"]
        hidden = any(part.startswith(".") for part in path.split("/"))
        if not hidden and path.isprintable() and not path_fault(path) and not any(clashes(("SKILL.md", *files, path))):
            files[opening["path"]] = body[opening.end() : closing.start()]
            parts.append(body[position : opening.start()])
            position = closing.end()
    return "".join([*parts, body[position:]]), files


def _companion_blocks(body: str) -> Iterator[tuple[Match, Match]]:
    """Yield the marks around each companion: the last closing one before the next, as its text may speak of marks."""
    starts = list(_COMPANION.finditer(body))
    for start, limit in zip(starts, [*(later.start() for later in starts[1:]), len(body)], strict=False):
        ends = list(_COMPANION_END.finditer(body, start.end(), limit))
        if ends:
            yield start, ends[-1]


def _described(head: str) -> str:
    if not head:
        return _DESCRIPTION

    try:
        read = yaml.safe_load("\n".join(head.strip().splitlines()[1:-1]))
    except yaml.YAMLError:
        return _DESCRIPTION
    description = read.get("description") if isinstance(read, dict) else None
    return " ".join(description.split()) if isinstance(description, str) and description.strip() else _DESCRIPTION


def _conversation(messages: Sequence[Message], pictures: list[PictureFile]) -> str:
    turns: list[str] = []
    for message in messages:
        calls = "".join(f"\n[calls {call.name} as {call.id}: {call.arguments}]" for call in message.tool_calls)
        answers = f' answers="{message.tool_call_id}"' if message.tool_call_id else ""
        turns.append(f'<turn role="{message.role}"{answers}>\n{_words(message, pictures)}{calls}\n</turn>')
    history = "\n".join(turns)
    return f"<conversation>\n{history}\n</conversation>\n\nYou are the assistant. Give the next turn, and nothing else."


def _words(message: Message, pictures: list[PictureFile]) -> str:
    words: list[str] = []
    for part in message.parts:
        if isinstance(part, Text):
            words.append(part.text)
        else:
            pictures.append(_picture(part, len(pictures) + 1))
            words.append(f"\n[picture: {pictures[-1].name}]\n")
    return "".join(words)


def _picture(image: Image, number: int) -> PictureFile:
    ending = _ENDINGS.get(image.media_type)
    if ending is None:
        raise BadRequestError(f"agents read no {image.media_type}", hint=f"they read {', '.join(sorted(_ENDINGS))}")
    try:
        data = base64.b64decode(image.data, validate=True)
    except binascii.Error as error:
        raise BadRequestError("a picture is not base64", hint="this is a fault of the environment") from error
    return PictureFile(name=f"pictures/{number:02d}.{ending}", data=data)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "content": {"type": "string"},
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["content", "tool_calls"],
    "additionalProperties": False,
}
"""The arguments are JSON in a string: providers want to know all keys of an object beforehand."""


def offer(tools: Sequence[Tool]) -> str:
    """Return the words that offer ``tools``; none if there are none."""
    if not tools:
        return ""
    entries = [tool.fields() for tool in tools]
    return (
        "Others will carry out these tools for you, besides those that you have yourself:\n"
        f"{json.dumps(entries, ensure_ascii=False, indent=1)}\n"
        "End with a JSON object. Its `content` is what you say; its `tool_calls` lists the tools to call now, each "
        "with its `name` and its `arguments` as JSON in a string, and is empty when your answer is complete."
    )


def read_answer(text: str, usage: Usage) -> Reply:
    """Return the reply in an answer of the form of ``SCHEMA``; an UnusableAnswerError if it has another."""
    try:
        answer: Any = read_document(text)
        content, calls = str(answer["content"]), list(answer["tool_calls"])
        pairs = [(str(call["name"]), str(call["arguments"])) for call in calls]
    except (ValueError, TypeError, KeyError) as error:
        raise UnusableAnswerError("the agent's answer is not of the form asked for", hint="", usage=usage) from error
    tool_calls = tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(pairs, 1)
    )
    return Reply(text=content, usage=usage, finish_reason="tool_calls" if tool_calls else "stop", tool_calls=tool_calls)


def tool_turns(uses: Sequence[ToolUse]) -> tuple[Turn, ...]:
    """Return what an agent that asked its model by itself did before it answered."""
    return tuple(Turn(role="assistant", content="", tool_calls=(use,)) for use in uses)
