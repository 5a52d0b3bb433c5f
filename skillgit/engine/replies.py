"""The JSON that optimizer prompts ask for: schemas, extraction from a reply, and one re-ask."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from skillgit.domain.edit import Edit, Op, Patch, Source
from skillgit.domain.skill import DOCUMENT, has_marker
from skillgit.plugin.backend import assistant, user

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.engine.session import Session
    from skillgit.plugin.backend import Message

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def _count(value: object) -> object:
    """Read a count that a model may write as text or as an integral float; whatever it is, it is at least 1."""
    match = re.search(r"\d+", str(value))
    return max(int(match.group()), 1) if match else 1


Count = Annotated[int, BeforeValidator(_count)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class EditReply(_Reply):
    """An edit as a model writes it."""

    op: Op
    file: str = DOCUMENT
    anchor: str = ""
    content: str = ""
    support: Count = 1
    source: Source | None = None

    @field_validator("anchor", "content", mode="before")
    @classmethod
    def _null_is_empty(cls, value: object) -> object:
        return "" if value is None else value

    def edit(self, source: Source) -> Edit:
        """Return the edit; ``source`` holds where the model names none."""
        return Edit(
            op=self.op,
            file=self.file,
            anchor=self.anchor,
            content=self.content,
            support=self.support,
            source=self.source or source,
        )


class Finding(_Reply):
    """What an analyst saw in several trajectories."""

    pattern: str
    count: Count = 1
    items: tuple[str, ...] = ()


class PatchReply(_Reply):
    """A proposed patch."""

    title: str = ""
    reasoning: str = ""
    edits: tuple[EditReply, ...]

    def patch(self, source: Source) -> Patch:
        """Return the patch; ``source`` holds for edits that name none."""
        edits = tuple(edit.edit(source) for edit in self.edits)
        return Patch(edits=edits, reasoning=self.reasoning, title=self.title)


class AnalysisReply(PatchReply):
    """An analyst's answer."""

    findings: tuple[Finding, ...] = ()


class RankReply(_Reply):
    """The choice of edits."""

    title: str = ""
    reasoning: str = ""
    selected: tuple[Annotated[int, Field(strict=True)], ...]


class GuidanceReply(_Reply):
    """The slow update's answer."""

    title: str = ""
    reasoning: str = ""
    guidance: str

    @field_validator("guidance")
    @classmethod
    def _no_markers(cls, value: str) -> str:
        if has_marker(value):
            raise ValueError("guidance must not contain skillgit markers")
        return value.strip()


class MemoryReply(_Reply):
    """The optimizer's note to itself."""

    reasoning: str = ""
    memory: str


R = TypeVar("R", bound=_Reply)


class UnusableReplyError(Exception):
    """A reply is not the JSON that was asked for; the text says why, for the model to read."""


def parse(text: str, schema: type[R]) -> R:
    """Read the JSON object in ``text``.

    Raises:
        UnusableReplyError: There is none, or it does not fit ``schema``.
    """
    value = _json_object(text)
    if value is None:
        raise UnusableReplyError("it contains no JSON object")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc'])) or 'object'}: {fault['msg']}" for fault in error.errors()[:5]]
        raise UnusableReplyError("; ".join(faults)) from error


def _json_object(text: str) -> dict[str, object] | None:
    """Return the JSON object of a reply: in a fence, else between the outermost braces; near misses are mended."""
    fenced = _FENCE.search(text)
    candidate = fenced.group(1) if fenced else text[text.find("{") : text.rfind("}") + 1]
    try:
        value = json.loads(candidate)
    except json.JSONDecodeError:
        if "{" not in candidate:
            return None
        from json_repair import repair_json  # noqa: PLC0415 - needed for damaged replies only

        value = repair_json(candidate, return_objects=True)
    return value if isinstance(value, dict) and value else None


async def ask(
    session: Session, stage: str, messages: Sequence[Message], schema: type[R], *, draw: tuple[str | int, ...]
) -> R | None:
    """Ask the optimizer for JSON; a reply that does not fit is sent back once with the reason.

    Returns:
        The reply, or None if the second one does not fit either.
    """
    conversation = list(messages)
    for attempt in (1, 2):
        place = (stage, session.seed, *draw, attempt)
        reply = await session.calls.call("optimizer", stage, conversation, draw=place)
        try:
            return parse(reply.text, schema)
        except UnusableReplyError as fault:
            again = f"Your reply cannot be used: {fault}. Answer again with one JSON object and nothing else."
            conversation += [assistant(reply.text), user(again)]
    return None
