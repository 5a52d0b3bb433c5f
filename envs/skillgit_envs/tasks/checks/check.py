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
    """What a check finds."""

    score: float  # from 0 to 1
    reason: str  # why, for the optimizer; the source of a check is no part of it
    parts: tuple[tuple[str, float], ...] = ()  # the score of each of several criteria, by its first words


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a check looks at, and what it may use."""

    prompt: str
    answer: str  # the result, as it was taken out of the reply
    row: Mapping[str, object]  # the row of the data file, without its checks, for programs that check
    products: Mapping[str, bytes]
    attachments: Attachments
    judge: Judge
    sandbox: Callable[[], Sandbox]
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSource:
    """Where a check is read from."""

    where: str
    folder: Path
    find: Callable[[list[str]], Listed]
    answers: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    expectation: str = ""  # what the row says of a good result, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """A kind of check."""

    name: str  # what ``type`` says
    help: str
    grade: Callable[[Fields, Sheet], Awaitable[Grade]]
    takes: Mapping[str, tuple[type, ...]] = field(default_factory=dict)  # field to the types of its value
    needs: tuple[str, ...] = ()  # the fields of which there must be one
    prepare: Callable[[Fields, CheckSource], Fields] = lambda fields, _: (
        fields
    )  # completes the fields, or raises a ValueError
    reads: Reads = "tag"  # how a result is taken out of a reply if nothing else is said
