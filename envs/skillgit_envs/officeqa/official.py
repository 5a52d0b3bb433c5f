"""The reward of OfficeQA, by the rules of ``reward.py`` in databricks/officeqa (revision 7b9a3c15), written anew.

An answer is right or wrong. An answer with numbers is compared number by number, within a relative tolerance, and has
to hold as many numbers as the accepted one; an answer without numbers has to be the same text. Units are compared but
never multiplied out, and per cent signs are not compared. Differences: a unit belongs to the number next to it, where
the original takes the largest unit within 20 characters; a text in brackets is a list only if it is nothing else.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from skillgit_envs.answer_tag import in_tag
from skillgit_envs.officeqa.numbers import Number, close, numbers, plain, without_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 250
_GIVEN_UP = "unable to determine"
_MARKUP = re.compile(r"<[^<>]*>")
_UNIT_WORDS = re.compile(r"\b(?:(?:hundred|thousand|million|billion|trillion)s?|percent|percentage)\b")
_SHORTEST_TEXT = 2
_ATOM = re.compile(r"-?\d+(?:\.\d+)?")
_HEAD, _GROUP = re.compile(r"-?\d{1,3}"), re.compile(r"\d{3}(?:\.\d+)?")


def fault(answer: str, gold: str, tolerance: float) -> str:
    """Return what is wrong with ``answer``, in a few words; nothing if it is right.

    Args:
        answer: The answer; of a ``FINAL_ANSWER`` block in it only the last one counts.
        gold: The accepted answer.
        tolerance: The greatest relative error of a number, 0.01 for 1 %; it is within the limit if it equals it.
    """
    tagged = in_tag(answer, "final_answer")
    answer = (answer if tagged is None else tagged).strip()
    if not answer:
        return "there is no answer"
    if len(answer) > LONGEST or "\n" in answer:
        return f"an answer is one line of at most {LONGEST} characters"
    if _GIVEN_UP in answer.lower():
        return "nothing was determined"
    expected = numbers(gold)
    if not expected:
        return _text_fault(answer, gold)
    if _MARKUP.search(answer):
        return "there is markup in the answer"
    return _number_fault(answer, gold, expected, Fraction(str(tolerance)))


def _text_fault(answer: str, gold: str) -> str:
    if numbers(answer):
        return "a text without numbers is expected"
    return "" if _bare(answer) == _bare(gold) else "the text is another one"


def _bare(text: str) -> str:
    unquoted = plain(text).strip().lower().strip('"').strip("'")
    return " ".join(re.sub(r"\([^()]*\)", " ", unquoted).split())


def _number_fault(answer: str, gold: str, expected: Sequence[Number], tolerance: Fraction) -> str:
    words = _words(gold)
    counted = _counted(numbers(answer), expected, words)
    if gold.strip().startswith("[") and gold.strip().endswith("]") and not words:
        return _list_fault(answer, counted, expected, tolerance)
    if len(counted) != len(expected):
        return f"its count of numbers is {len(counted)} where {len(expected)} is expected"
    if not all(any(one.near(other, tolerance) for other in counted) for one in expected):
        return "a number is another one"
    said = _words(answer)
    if words and not (said and (words in said or said in words)):
        return "the words beside the number are other ones"
    return ""


def _counted(found: list[Number], expected: Sequence[Number], words: str) -> list[Number]:
    """Return the numbers of an answer that count: years in passing do not, where no year is asked for."""
    if words or any(number.like_a_year for number in expected):
        return found
    return [number for number in found if not (number.like_a_year and number.bare)]


def _words(text: str) -> str:
    """Return what a text says beside numbers and units; nothing, if it is less than two letters."""
    left = _UNIT_WORDS.sub(" ", without_numbers(text).lower())
    cleaned = " ".join(re.sub(r"[^\w\s]|_", " ", left).split())
    return cleaned if len(cleaned) >= _SHORTEST_TEXT else ""


def _list_fault(answer: str, found: Sequence[Number], expected: Sequence[Number], tolerance: Fraction) -> str:
    if len(found) == len(expected):
        pairs = zip(expected, found, strict=True)
        if all(one.near(other, tolerance) for one, other in pairs):
            return ""
    if _divides_into(answer, [number.value for number in expected], tolerance):
        return ""
    if len(found) != len(expected):
        return f"its count of numbers is {len(found)} where {len(expected)} is expected"
    return "a number of the list is another one, or stands in another place"


def _divides_into(answer: str, golds: Sequence[Fraction], tolerance: Fraction) -> bool:
    """Say whether the commas of a list can be read as thousands and as separators so that it is the expected one.

    ``[8,152,260]`` is 8 and 152260, or 8152 and 260. The set holds how many parts are used up by the numbers so far.
    """
    parts = [part.strip(" []$€£¥%") for part in plain(answer).split(",")]
    if not all(_ATOM.fullmatch(part) for part in parts):
        return False
    used = {0}
    for gold in golds:
        used = {end for start in used for end, value in _readings(parts, start) if close(gold, value, tolerance)}
    return len(parts) in used


def _readings(parts: Sequence[str], start: int) -> list[tuple[int, Fraction]]:
    """Return the numbers that begin with the part ``start``, each with the part behind its end."""
    found = [(start + 1, Fraction(parts[start]))] if start < len(parts) else []
    if not found or not _HEAD.fullmatch(parts[start]):
        return found
    joined = parts[start]
    for end in range(start + 1, len(parts)):
        if not _GROUP.fullmatch(parts[end]) or "." in joined:
            break
        joined += parts[end]
        found.append((end + 1, Fraction(joined)))
    return found
