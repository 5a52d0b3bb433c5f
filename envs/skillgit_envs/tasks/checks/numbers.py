"""The check ``numeric``: the last number in an answer, within a tolerance (``math.isclose``)."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from skillgit_envs.tasks.checks.check import CheckKind, Grade
from skillgit_envs.tasks.checks.texts import expected, with_answers

if TYPE_CHECKING:
    from skillgit_envs.tasks.checks.check import CheckSource, Fields, Sheet

SCORER = "tasks-numeric/1"
_RELATIVE = 1e-9
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-+\u2212])?\s?(?P<digits>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?P<power>[eE][-+]?\d+)?"
)


def number_in(text: str) -> float | None:
    """Return the last number in ``text``; None if there is none.

    Commas part thousands. A currency sign before and a unit or a per cent sign behind are passed over, and change
    nothing: 12% is 12.
    """
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return None
    sign = "-" if matches[-1]["sign"] in {"-", "\u2212"} else ""
    value = float(f"{sign}{matches[-1]['digits'].replace(',', '')}{matches[-1]['power'] or ''}")
    return value if math.isfinite(value) else None


def _prepared(fields: Fields, source: CheckSource) -> Fields:
    fields = with_answers(fields, source)
    if any(number_in(answer) is None for answer in fields["answers"]):
        raise ValueError("has an answer without a number")
    for name in ("abs", "rel"):
        if fields.get(name, 0) < 0:
            raise ValueError(f"has a negative '{name}'")
    return fields


async def _numeric(fields: Fields, sheet: Sheet) -> Grade:
    number = number_in(sheet.answer)
    if number is None:
        return Grade(score=0.0, said=f"{expected(fields['answers'])}; the answer has no number")
    relative, absolute = fields.get("rel", 0.0 if "abs" in fields else _RELATIVE), fields.get("abs", 0.0)
    golds = [number_in(answer) for answer in fields["answers"]]
    # isclose takes the larger of the two as the base of the relative tolerance; here it is the accepted answer.
    if any(
        gold is not None and math.isclose(number, gold, rel_tol=0.0, abs_tol=max(absolute, relative * abs(gold)))
        for gold in golds
    ):
        return Grade(score=1.0, said="correct")
    return Grade(score=0.0, said=f"{expected(fields['answers'])}; the answer gives {number:g}")


KINDS = (
    CheckKind(
        name="numeric",
        help="The last number in the answer is one of 'answers', within 'abs' or, as a share of it, 'rel'.",
        grade=_numeric,
        takes={"answer": (str, int, float), "answers": (list,), "abs": (int, float), "rel": (int, float)},
        prepare=_prepared,
    ),
)
