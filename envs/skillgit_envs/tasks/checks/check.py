"""What a check is: a kind with fields, that grades the result of one item from 0 to 1 and says why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from skillgit.plugin.environment import Judge
    from skillgit.sandbox import Limits, Sandbox
    from skillgit_envs.tasks.attachments import Attachments, Listed


Fields: TypeAlias = dict[str, Any]
"""A check in the content of an item: ``type``, ``name``, ``weight``, ``pass``, ``message``, and what its kind takes."""
Reads = Literal["tag", "json", "whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What a check finds.

    Attributes:
        score: From 0 to 1.
        said: Why, for the optimizer; the source of a check is no part of it.
        parts: The score of each of several criteria, by its first words.
    """

    score: float
    said: str
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a check looks at, and what it may use.

    Attributes:
        answer: The result, as it was taken out of the reply.
        row: The row of the data file, without its checks, for programs that check.
    """

    prompt: str
    answer: str
    row: Mapping[str, object]
    products: Mapping[str, bytes]
    attachments: Attachments
    judge: Judge
    sandbox: Callable[[], Sandbox]
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSource:
    """Where a check is read from.

    Attributes:
        expected: What the row says of a good result, in words.
    """

    where: str
    folder: Path
    find: Callable[[list[str]], Listed]
    answers: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    expected: str = ""


def as_read(fields: Fields, source: CheckSource) -> Fields:
    del source
    return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """A kind of check.

    Attributes:
        name: What ``type`` says.
        takes: Field to the types of its value.
        needs: The fields of which there must be one.
        prepare: Completes the fields; it raises ValueError with what is wrong with them.
        reads: How a result is taken out of a reply if nothing else is said.
    """

    name: str
    help: str
    grade: Callable[[Fields, Sheet], Awaitable[Grade]]
    takes: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    prepare: Callable[[Fields, CheckSource], Fields] = as_read
    reads: Reads = "tag"
