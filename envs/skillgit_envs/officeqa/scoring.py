"""How an answer is scored: by the official reward, or by exact match and token F1 as the reference does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit_envs.answer_tag import extract, in_tag
from skillgit_envs.officeqa.exact_match import exact, f1
from skillgit_envs.officeqa.official import fault

if TYPE_CHECKING:
    from collections.abc import Mapping

SCORERS: Mapping[str, str] = {"official": "officeqa-reward/1", "skillopt": "officeqa-em-f1/1"}
"""Name of a scorer to what changes whenever one of its scores can change."""


def final_answer(reply: str) -> str:
    """Return the answer in a reply: the last ``FINAL_ANSWER`` or ``answer`` block, else the last line."""
    tagged = in_tag(reply, "final_answer")
    return extract(reply) if tagged is None else tagged


def score(answer: str, gold: str, scorer: str, tolerance: float) -> Scored:
    """Score an answer.

    Args:
        answer: The answer.
        gold: The accepted one.
        scorer: One of :data:`SCORERS`; the official one knows right and wrong only.
        tolerance: The greatest relative error of a number for the official one.
    """
    if scorer == "official":
        right = float(not fault(answer, gold, tolerance))
        return Scored(hard=right, soft=right)
    return Scored(hard=float(exact(answer, gold)), soft=f1(answer, gold))


def feedback(answer: str, gold: str, scorer: str, tolerance: float) -> str:
    """Say in one line what was expected and what is wrong with the answer; the target never sees it."""
    if score(answer, gold, scorer, tolerance).passed:
        return f"correct: the answer {_quoted(answer)} matches {_quoted(gold)}"
    if scorer == "official":
        return f"expected {_quoted(gold)}, not {_quoted(answer)}: {fault(answer, gold, tolerance)}"
    return f"expected {_quoted(gold)}, not {_quoted(answer)}, which has a word overlap of {f1(answer, gold):.2f}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
