"""The check ``judge``: a model grades a result by criteria, or compares it with a reference answer.

What is graded is between marks that nobody who wrote it could know, and is called material. A comparison is made
twice with the places swapped, since models prefer a place (Zheng et al., 2023, "Judging LLM-as-a-judge").
"""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeVar, cast

from skillgit.domain.ids import short_digest
from skillgit.domain.untrusted.json_limits import DocumentError, object_in
from skillgit.domain.untrusted.model_text import storable_json
from skillgit_envs.answers import ask_judge
from skillgit_envs.shipped_environment import prompt_file
from skillgit_envs.tasks.checks.check import CheckKind, Grade

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillgit_envs.tasks.checks.check import CheckSource, Fields, Sheet

T = TypeVar("T")
_PROMPTS = "skillgit_envs.tasks"
_LONGEST_FILE = 8000
_LONGEST_NAME = 60  # characters by which a criterion is told from others
_WINS = {"A": (1.0, 0.0), "B": (0.0, 1.0), "tie": (0.5, 0.5)}
_AS_EXPECTED = "The result is as described here: {}"


def scorer() -> list[str]:
    return ["tasks-judge/1", prompt_file(_PROMPTS, "judge"), prompt_file(_PROMPTS, "compare")]


def _prepared(fields: Fields, source: CheckSource) -> Fields:
    """Return the fields with ``criteria``, a list of texts, made of whatever says them."""
    criteria = [*fields.pop("criteria", []), *([fields.pop("rubric")] if "rubric" in fields else [])]
    if not criteria and source.expected:
        criteria = [_AS_EXPECTED.format(source.expected)]
    if not criteria or not all(isinstance(text, str) and text.strip() for text in criteria):
        raise ValueError("needs a 'rubric', or 'criteria', a list of texts")
    return fields | {"criteria": criteria}


async def _judge(fields: Fields, sheet: Sheet) -> Grade:
    if "against" in fields:
        return await _compared(fields, sheet)
    count = len(fields["criteria"])
    mark = short_digest([sheet.prompt, sheet.answer])
    texts = [_material(mark, "task", sheet.prompt), _material(mark, "result", _result(sheet))]
    question = "\n\n".join([_criteria(fields), *texts])

    def read(reply: Mapping[str, Any]) -> tuple[list[float], str]:
        scores = reply.get("scores", [reply["score"]] if "score" in reply else None)
        if not isinstance(scores, list) or len(scores) != count:
            raise ValueError(f"'scores' must be a list of {count} numbers")
        numbers = [score for score in scores if isinstance(score, int | float) and not isinstance(score, bool)]
        if len(numbers) != count or not all(0 <= score <= 1 for score in numbers):
            raise ValueError("every score must be a number from 0 to 1")
        return [float(score) for score in scores], str(reply.get("reason", ""))

    scores, reason = await _asked(sheet, "judge", question, read)
    misses = [score for score in scores if score < 1]
    total = sum(scores) / count
    parts = [(shorten(text, _LONGEST_NAME), score) for text, score in zip(fields["criteria"], scores, strict=True)]
    which = f", less than full for {len(misses)} of {count} criteria" if misses and count > 1 else ""
    return Grade(
        score=total, reason=f"the judge gives {total:.2f}{which}: {reason}", parts=tuple(parts) if count > 1 else ()
    )


async def _compared(fields: Fields, sheet: Sheet) -> Grade:
    reference, ours = str(fields["against"]), _result(sheet)
    mark = short_digest([sheet.prompt, sheet.answer])

    def read(reply: Mapping[str, Any]) -> tuple[tuple[float, float], str]:
        winner = reply.get("winner")
        if winner not in _WINS:
            raise ValueError("'winner' must be A, B or tie")
        return _WINS[winner], str(reply.get("reason", ""))

    points, reasons = [], []
    for index, (first, second) in enumerate(((ours, reference), (reference, ours))):
        parts = [_material(mark, "task", sheet.prompt), _material(mark, "A", first), _material(mark, "B", second)]
        pair, reason = await _asked(sheet, "compare", "\n\n".join([_criteria(fields), *parts]), read)
        points.append(pair[index])
        reasons.append(reason)
    score = sum(points) / len(points)
    return Grade(score=score, reason=f"compared with a reference, the judge gives {score:.2f}: {' / '.join(reasons)}")


def _criteria(fields: Fields) -> str:
    return "Criteria:\n" + "\n".join(f"{number}. {text}" for number, text in enumerate(fields["criteria"], start=1))


def _material(mark: str, name: str, text: str) -> str:
    return f"[{mark} begin {name}]\n{text}\n[{mark} end {name}]"


def _result(sheet: Sheet) -> str:
    """Return the result with the files that were made, as far as they are text."""
    parts = [sheet.answer]
    for name, content in sheet.products.items():
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = f"({len(content)} bytes that are no text)"
        parts.append(f"File {name}:\n{text[:_LONGEST_FILE]}")
    return "\n\n".join(parts)


async def _asked(sheet: Sheet, prompt: str, question: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    def read_object(reply: str) -> T:
        try:
            return read(cast("Mapping[str, Any]", storable_json(object_in(reply))))
        except DocumentError as error:
            raise ValueError(f"it {error}") from error

    return await ask_judge(sheet.judge, prompt_file(_PROMPTS, prompt), question, read_object, form="the JSON")


KINDS = (
    CheckKind(
        name="judge",
        help="A model grades by 'rubric' or 'criteria', or compares with the answer 'against'.",
        grade=_judge,
        takes={"rubric": (str,), "criteria": (list,), "against": (str,)},
        prepare=_prepared,
        reads="whole",
    ),
)
