"""Whether an answer to a problem of MathVerse is right.

Three rules. ``official``: a model compares what was extracted with the right answer, for free answers and choices
alike, as the benchmark's authors do (ZrrSkywalker/MathVerse, ``evaluation/score_answer_s2.py``); a reply that is
neither 0 nor 1 is asked for once more and is then a fault, where theirs asks without end. ``skillopt``: a choice is
right if it is the letter alone, a free answer if it is the same after LaTeX and blanks are gone, else a model compares;
rows whose right answer is no letter can never be solved. ``rules``: no model is asked; letters are read in any usual
form, rows whose right answer is a text or several letters can be solved, and values are compared as numbers and units.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from skillgit.domain.evaluation import Scored
from skillgit_envs.answer_tag import quoted
from skillgit_envs.dialogue import ask_judge, material
from skillgit_envs.livemathematicianbench.scoring import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Judge


class AnswerRule(StrEnum):
    """Who compares an answer with the right one."""

    RULES = "rules"
    OFFICIAL = "official"
    SKILLOPT = "skillopt"


SCORERS = {
    AnswerRule.RULES: "mathverse-rules/1",
    AnswerRule.OFFICIAL: "mathverse-judge/1",
    AnswerRule.SKILLOPT: "mathverse-skillopt/1",
}
"""What identifies each rule; it changes whenever a score can change."""

_HEAD = re.compile(r"^\s*Choices?:\s*$", re.MULTILINE)
_CHOICE = re.compile(r"^\s*([A-G])\s*[:.)]\s*(.*?)\s*(?=^\s*[A-G]\s*[:.)]|\Z)", re.MULTILINE | re.DOTALL)
_LETTER = re.compile(r"\(?([A-G])\)?")
_COMMAND = re.compile(r"\\(?:mathrm|text|textrm|mathbf|operatorname|left|right|displaystyle)\b|\\[,;!: ]")
_DEGREES = re.compile(r"\^\{?\\circ\}?|\\circ|°|\bdegrees?\b|掳")  # the last is a degree sign that was decoded wrongly
_NUMBER = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?|[-+]?\.\d+)\s*(.*)", re.DOTALL)
_NAMED = re.compile(r"(?:area|volume|length|height|width|angle|x|y)\s*=\s*", re.IGNORECASE)
_SYNONYMS = {"units": "", "unit": "", "米": "m", "metres": "m", "meters": "m", "\\pi": "π", "pi": "π"}
_VERDICT = re.compile(r"(?:judg(?:e)?ment\s*:\s*)?([01])\s*\.?", re.IGNORECASE)


def choices(question: str) -> dict[str, str]:
    r"""Return the choices that a problem lists, by letter; none where it lists none.

    >>> choices("Find x.\nChoices:\nA:30°\nB:45°")
    {'A': '30°', 'B': '45°'}
    """
    heads = list(_HEAD.finditer(question))
    return dict(_CHOICE.findall(question[heads[-1].end() :])) if heads else {}


def questions(rule: AnswerRule, kind: str) -> tuple[int, int]:
    """Return how often a judge is asked about one answer, at least and at most."""
    match rule:
        case AnswerRule.RULES:
            return 0, 0
        case AnswerRule.OFFICIAL:
            return 0, 1  # an item without an answer is wrong, and nobody is asked
        case AnswerRule.SKILLOPT:
            return 0, int(kind == "free-form")
        case _:
            assert_never(rule)


async def score(item: Item, answer: str, rule: AnswerRule, judge: Judge, instructions: str) -> tuple[Scored, str]:
    """Return the score of an answer, and what was expected.

    Args:
        instructions: The judge's system prompt; not read where no judge is asked.

    Raises:
        EnvironmentFaultError: The judge's verdict cannot be read.
    """
    right = await _is_right(item, answer, rule, judge, instructions)
    hit = float(right)
    gold = str(item.content["answer"]).strip()
    feedback = f"correct: {quoted(gold)}" if right else f"expected {quoted(gold)}; the answer is {quoted(answer)}"
    return Scored(hard=hit, soft=hit), feedback


async def _is_right(item: Item, answer: str, rule: AnswerRule, judge: Judge, instructions: str) -> bool:
    gold, is_choice = str(item.content["answer"]), item.content["kind"] == "multi-choice"
    options = choices(str(item.content["for_eval"])) if is_choice else {}
    if not answer.strip():
        return False
    match rule:
        case AnswerRule.RULES:
            return chosen(answer, gold, options) if is_choice else same_value(answer, gold)
        case AnswerRule.OFFICIAL:
            return await _judged(item, answer, judge, instructions)
        case AnswerRule.SKILLOPT if is_choice:
            return answer.strip().upper().rstrip(".):") == gold.strip()
        case AnswerRule.SKILLOPT:
            return _bare(answer) == _bare(gold) or await _judged(item, answer, judge, instructions)
        case _:
            assert_never(rule)


async def _judged(item: Item, answer: str, judge: Judge, instructions: str) -> bool:
    def verdict(reply: str) -> bool:
        match = _VERDICT.fullmatch(reply.strip())
        if match is None:
            raise ValueError("it is neither 0 nor 1")
        return match[1] == "1"

    texts = {"problem": item.content["for_eval"], "right-answer": item.content["answer"], "given-answer": answer}
    return await ask_judge(judge, instructions, material(texts), verdict, form="0 or 1")


def chosen(answer: str, gold: str, options: Mapping[str, str]) -> bool:
    """Say whether an answer gives the right choice, or all of several right ones, by letter or by text."""
    return bool(letters := _letters(gold, options)) and _letters(answer, options) == letters


def _letters(text: str, options: Mapping[str, str]) -> frozenset[str]:
    entries = [entry for entry in re.split(r"[\n,;&]|\band\b", text) if entry.strip()]
    matches = [_LETTER.fullmatch(entry.strip()) for entry in entries]
    if len(matches) > 1 and all(matches):
        return frozenset(match[1] for match in matches if match)
    if label := label_of(text, options):
        return frozenset(label)
    letters = [letter for letter, option in options.items() if same_value(text, option)]
    return frozenset(letters if len(letters) == 1 else ())


def same_value(answer: str, gold: str) -> bool:
    """Say whether two values are the same: as numbers, with the unit if the right answer names one and the given does.

    >>> same_value("$24$ units", "24")
    True
    >>> same_value("50 cm", "0.5 m")
    False
    """
    lines = [line for line in gold.splitlines() if line.strip()]
    if len(lines) > 1:
        values = [entry for entry in re.split(r"[\n,;]|\band\b", answer) if entry.strip()]
        return len(values) == len(lines) and all(map(same_value, values, lines))
    answer_text, gold_text = _plain(answer), _plain(gold)
    if answer_text == gold_text:
        return True
    (number, unit), (right, right_unit) = _quantity(answer_text), _quantity(gold_text)
    units_agree = unit == right_unit or not unit or not right_unit
    return number is not None and number == right and units_agree


def _bare(text: str) -> str:
    """Return ``text`` as the reference compares it: without LaTeX's signs and blanks, in lower case."""
    return re.sub(r"\\mathrm|[${}~\s]", "", text).lower()


def _plain(text: str) -> str:
    text = _DEGREES.sub("°", _COMMAND.sub("", text.replace("$", "")))
    text = _NAMED.sub("", re.sub(r"[{}~]", "", text).strip(), count=1).strip().rstrip(".").casefold()
    for word, synonym in _SYNONYMS.items():
        text = re.sub(rf"(?<![a-z]){re.escape(word)}(?![a-z])", synonym, text)
    return re.sub(r"\s+", "", text)


def _quantity(text: str) -> tuple[Decimal | None, str]:
    """Return the number and what follows it; no number for what is none, like an interval or a term."""
    match = _NUMBER.fullmatch(text)
    if match is None or re.search(r"[\d()\[\]+*/√=<>]", match[2].replace("^2", "").replace("^3", "")):
        return None, ""
    try:
        return Decimal(match[1].replace(",", "")), match[2].strip("°") if match[2] != "°" else ""
    except InvalidOperation:
        return None, ""
