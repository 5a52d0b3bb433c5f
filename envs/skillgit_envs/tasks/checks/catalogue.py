"""All kinds of check, how a row's checks are read and completed, and how their result is taken out of a reply."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.errors import DataError
from skillgit_envs.answers import consistent_extract, last_line
from skillgit_envs.tasks.checks import comparisons, graders

if TYPE_CHECKING:
    from skillgit_envs.tasks.checks.comparisons import CheckKind, CheckSource, Fields, Grade, Reads, Sheet

KINDS: dict[str, CheckKind] = {kind.name: kind for module in (comparisons, graders) for kind in module.KINDS}
_HEAVIEST = 1_000_000  # far above any use; sums of weights stay finite
_COMMON: dict[str, tuple[type, ...]] = dict.fromkeys(("type", "name"), (str,))
_COMMON |= dict.fromkeys(("weight", "pass"), (int, float)) | {"message": (str,)}


def scorers() -> list[str]:
    return [*comparisons.SCORERS, *graders.scorers()]


def read_checks(source: CheckSource, values: Sequence[object]) -> list[Fields]:
    """Return the checks of a row, completed; one that needs nothing more may be the name of its kind."""
    return [_read(source, number, value) for number, value in enumerate(values, start=1)]


def _read(source: CheckSource, number: int, value: object) -> Fields:
    where = f"{source.where}: check {number}"
    fields = {"type": value} if isinstance(value, str) else value
    if not isinstance(fields, dict):
        raise DataError(f"{where} is not an object", hint='write it like {"type": "exact"}')
    kind = KINDS.get(str(fields.get("type")))
    if kind is None:
        problem = f"is of the type '{fields.get('type', '')}', which is none"
        raise DataError(f"{where} {problem}", hint=f"known are {', '.join(KINDS)}")
    try:
        _check_types(kind, fields)
        return kind.prepare({"weight": 1, "pass": 1} | fields, source)
    except ValueError as error:
        hint = getattr(error, "hint", "") or f"{kind.help} See the README of the environment tasks"
        raise DataError(f"{where}, {kind.name}, {error}", hint=hint) from error


def _check_types(kind: CheckKind, fields: Fields) -> None:
    types = {**_COMMON, **kind.takes}
    for name, value in fields.items():
        if name not in types:
            raise ValueError(f"has no field '{name}'; it takes {', '.join(types)}")
        if not isinstance(value, types[name]) or (isinstance(value, bool) and bool not in types[name]):
            raise ValueError(f"has a '{name}' of the wrong type")
    if kind.needs and not any(name in fields for name in kind.needs):
        raise ValueError(f"needs {' or '.join(repr(name) for name in kind.needs)}")
    if not 0 < fields.get("weight", 1) <= _HEAVIEST:
        raise ValueError(f"has a weight that is not above 0 and at most {_HEAVIEST:,}")
    if not 0 < fields.get("pass", 1) <= 1:
        raise ValueError("has a 'pass' that is not between 0 and 1")


def reading_of(checks: Sequence[Fields]) -> Reads:
    """Return how a result is taken out of a reply if the row does not say: as the strictest check needs it."""
    readings = {KINDS[check["type"]].reads for check in checks}
    return "tag" if "tag" in readings else "json" if "json" in readings else "whole"


async def graded(checks: Sequence[Fields], sheet: Sheet) -> tuple[Scored, str]:
    """Carry out ``checks`` and return the score with what the optimizer may read."""
    grades = [await KINDS[check["type"]].grade(check, sheet) for check in checks]
    passes = [grade.score >= check["pass"] for check, grade in zip(checks, grades, strict=True)]
    whole = fsum(check["weight"] for check in checks)
    soft = fsum(check["weight"] * grade.score for check, grade in zip(checks, grades, strict=True)) / whole
    messages = [
        check["message"] if "message" in check and not ok else grade.reason
        for check, grade, ok in zip(checks, grades, passes, strict=True)
    ]
    listing = (
        f"- {check.get('name') or check['type']}: {_outcome(grade, check['pass'], ok=ok)}; {text}"
        for check, grade, text, ok in zip(checks, grades, messages, passes, strict=True)
    )
    feedback = messages[0] if len(messages) == 1 else "\n".join(listing)
    return Scored(hard=float(all(passes)), soft=min(1.0, soft), parts=_parts(checks, grades)), feedback


def _outcome(grade: Grade, bar: float, *, ok: bool) -> str:
    """Say whether one of several checks passed, and of partial credit how near it came to the ``bar``."""
    word = "passed" if ok else "failed"
    return f"{word} with {grade.score:.2f}, {bar:g} passes" if 0 < grade.score < 1 else word


def _parts(checks: Sequence[Fields], grades: Sequence[Grade]) -> tuple[tuple[str, float], ...]:
    """Return the score of each of several checks and criteria."""
    scores = [score for grade in grades for score in grade.parts or (grade.score,)]
    names = [name for group in part_names(checks) for name in group]
    return tuple(zip(names, scores, strict=True)) if len(scores) > 1 else ()


def part_names(checks: Sequence[Fields]) -> list[list[str]]:
    """Return the names of the parts of each check; later ones of one name, or of one type, are numbered."""
    counts, groups = Counter[str](), list[list[str]]()
    for check in checks:
        label = str(check.get("name") or check["type"])
        groups.append([])
        for name in [f"{label}: {part}" for part in KINDS[check["type"]].parts(check)] or [label]:
            counts[name] += 1
            groups[-1].append(name if counts[name] == 1 else f"{name} {counts[name]}")
    return groups


_FENCE = re.compile(r"^(?P<ticks>`{3,})[^\n`]*\n(?P<body>.*?)^(?P=ticks)`*[ \t]*$", re.DOTALL | re.MULTILINE)
_OPENING = re.compile(r"[{\[]")


def json_text(reply: str) -> str:
    """Return the JSON in a reply: all of it, else its last block of code that is JSON, else its last object.

    An array among words is none, for ``[1]`` is how a source is cited; neither is an object in it. Without JSON, the
    result is the reply.
    """
    if _is_json(reply):
        return reply.strip()
    if blocks := [block for block in _blocks(reply) if _is_json(block)]:
        return blocks[-1]
    result, position, decoder = "", 0, json.JSONDecoder()
    while (match := _OPENING.search(reply, position)) is not None:
        try:
            value, position = decoder.raw_decode(reply, match.start())
        except (ValueError, RecursionError):
            position = match.end()
        else:
            result = reply[match.start() : position] if isinstance(value, dict) else result
    return result or reply.strip()


def code_block(reply: str) -> str:
    """Return the last block of code between fences, without them; the whole reply if there is none."""
    return (_blocks(reply) or [reply])[-1].strip("\n")


def _blocks(reply: str) -> list[str]:
    return [match.group("body") for match in _FENCE.finditer(reply)]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


EXTRACTORS: Mapping[str, Callable[[str], str]] = {
    "whole": str.strip,
    "tag": consistent_extract,
    "last_line": last_line,
    "json": json_text,
    "code": code_block,
}
"""Name, as ``env.extract`` has it, to what takes the result out of a reply."""
