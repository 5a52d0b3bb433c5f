"""What a check is: a kind with fields, that grades the result of one item from 0 to 1 and says why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillgit.domain.evaluation import Scored
from skillgit_envs.tasks.checks.catalogue import KINDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from skillgit.plugin.environment import Judge
    from skillgit.sandbox import Limits, Sandbox
    from skillgit_envs.tasks.attachments import Attachments, Listed


async def graded(checks: Sequence[Fields], sheet: Sheet) -> tuple[Scored, str]:
    """Carry out ``checks`` and return the score with what the optimizer may read.

    Raises:
        BackendError: The judge could not be asked.
        EnvironmentFaultError: A check could not do its part.
    """
    grades = [await KINDS[check["type"]].grade(check, sheet) for check in checks]
    passes = [grade.score >= check["pass"] for check, grade in zip(checks, grades, strict=True)]
    whole = fsum(check["weight"] for check in checks)
    soft = fsum(check["weight"] * grade.score for check, grade in zip(checks, grades, strict=True)) / whole
    messages = [_said(check, grade, ok=ok) for check, grade, ok in zip(checks, grades, passes, strict=True)]
    feedback = (
        messages[0]
        if len(messages) == 1
        else "\n".join(f"- {check['type']}: {text}" for check, text in zip(checks, messages, strict=True))
    )
    return Scored(hard=float(all(passes)), soft=min(1.0, soft), parts=_parts(checks, grades)), feedback


def _parts(checks: Sequence[Fields], grades: Sequence[Grade]) -> tuple[tuple[str, float], ...]:
    """Return the score of each of several checks by its type; of several of one type, the later ones are numbered."""
    if len(checks) == 1:
        return ()
    counts, parts = Counter[str](), []
    for check, grade in zip(checks, grades, strict=True):
        counts[check["type"]] += 1
        number = counts[check["type"]]
        parts.append((check["type"] if number == 1 else f"{check['type']} {number}", grade.score))
    return tuple(parts)


def _said(check: Fields, grade: Grade, *, ok: bool) -> str:
    return check["message"] if "message" in check and not ok else grade.said


Fields: TypeAlias = dict[str, Any]
"""A check as an item's content holds it: ``type``, ``weight``, ``pass``, ``message``, and the fields of its kind."""
Reads = Literal["tag", "json", "whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What a check finds.

    Attributes:
        score: From 0 to 1.
        said: Why, for the optimizer; the source of a check is no part of it.
    """

    score: float
    said: str


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
