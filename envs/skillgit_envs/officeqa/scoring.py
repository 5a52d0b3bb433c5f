"""Whether an answer is right: the official score of numbers with their units, and a plain match of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillgit.domain.evaluation import Scored
from skillgit_envs.answers import in_tag, last_line, overlap_f1, quoted

SCORERS: Mapping[str, str] = {"official": "officeqa-reward/3", "skillopt": "officeqa-em-f1/1"}
"""Name of a scorer to what changes whenever one of its scores can change."""


def final_answer(reply: str, scorer: str = "official") -> str:
    """Return the answer in a reply: the last ``FINAL_ANSWER`` or ``answer`` block.

    Without a block it is all of the reply for the official scorer, which takes no answer of several lines, and the last
    line for SkillOpt's.
    """
    for tag in ("final_answer", "answer"):
        if (block := in_tag(reply, tag)) is not None:
            return block
    return reply.strip() if scorer == "official" else last_line(reply)


def score(answer: str, gold: str, scorer: str, tolerance: float) -> Scored:
    """Score an answer by one of :data:`SCORERS`; the official one knows right and wrong only.

    ``tolerance`` is the greatest relative error of a number for the official one.

    >>> score('It was 12.5 million.', '12.5 million', 'official', 0.01).hard
    1.0
    >>> score('13 million', '12.5 million', 'official', 0.01).hard
    0.0
    """
    if scorer == "official":
        right = float(not fault(answer, gold, tolerance))
        return Scored(hard=right, soft=right)
    return Scored(hard=float(exact(answer, gold)), soft=f1(answer, gold))


def feedback(answer: str, gold: str, scorer: str, tolerance: float) -> str:
    """Say in one line what was expected and what is wrong with the answer; the target never sees it."""
    if score(answer, gold, scorer, tolerance).passed:
        return f"correct: the answer {quoted(answer)} matches {quoted(gold)}"
    if scorer == "official":
        return f"expected {quoted(gold)}, not {quoted(answer)}: {fault(answer, gold, tolerance)}"
    return f"expected {quoted(gold)}, not {quoted(answer)}, which has a word overlap of {f1(answer, gold):.2f}"


_DROPPED = re.compile(r"[^\w\s.%-]|_")
_WORDS = frozenset({"million", "millions", "billion", "billions", "dollar", "dollars", "nominal"})


def tokens(text: str) -> list[str]:
    return [word for word in _DROPPED.sub("", text.lower()).split() if word not in _WORDS]


def exact(answer: str, gold: str) -> bool:
    """Say whether two answers are the same, and not nothing."""
    return tokens(answer) == tokens(gold) != []


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words."""
    return overlap_f1(tokens(answer), tokens(gold))


FIRST_YEAR, LAST_YEAR = 1900, 2100
NEARBY = 20  # characters on either side of a number in which its unit is looked for

_MONEY = re.compile("[$£€¥₹¢₩₽]")
_IN_BRACKETS = re.compile(rf"\(\s*({_MONEY.pattern})?\s*(\d{{1,3}}(?:,\d{{3}})*(?:\.\d+)?|\d+(?:\.\d+)?)\s*\)")
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)")
_NUMBER = re.compile(r"-?\d+\.?\d*%?")
_UNITS = {
    "trillion": re.compile(r"\btrillions?\b"),
    "billion": re.compile(r"\bbillions?\b|\bb\b"),
    "million": re.compile(r"\bmillions?\b|\bm\b"),
    "thousand": re.compile(r"\bthousands?\b|\bk\b"),
}
"""Units, the largest first: where several are near a number, it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    value: float  # what it says, not multiplied by its unit; the figure before a ``%``
    unit: str = ""  # ``thousand``, ``million``, ``billion``, ``trillion`` or nothing

    def near(self, candidate: Number, tolerance: float) -> bool:
        """Say whether ``candidate`` is at most the share ``tolerance`` of this number away, in a unit that fits."""
        units = self.unit == candidate.unit or not (self.unit and candidate.unit)
        return units and close(self.value, candidate.value, tolerance)


def is_year(value: float) -> bool:
    return FIRST_YEAR <= value <= LAST_YEAR and value == int(value)


def close(gold: float, value: float, tolerance: float) -> bool:
    """Say whether ``value`` differs from ``gold`` by at most the share ``tolerance``, in floats as there."""
    return abs(gold - value) / abs(gold) <= tolerance if gold else not value


def plain(text: str) -> str:
    return " ".join(text.replace("\u2212", "-").split())


def _figures(text: str) -> str:
    """Return ``text`` without signs of currency, and with a minus for the brackets of an account."""
    return _MONEY.sub("", _IN_BRACKETS.sub(_loss, plain(text)))


def _loss(match: re.Match[str]) -> str:
    # Accounts write a loss in brackets, prose a year; a currency sign distinguishes them.
    return match[0] if not match[1] and is_year(float(match[2].replace(",", ""))) else f"-{match[2]}"


def numbers(text: str) -> list[Number]:
    text = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), _figures(text))
    values = []
    for match in _NUMBER.finditer(text):
        nearby = text[max(0, match.start() - NEARBY) : match.end() + NEARBY].lower()
        unit = next((unit for unit, pattern in _UNITS.items() if pattern.search(nearby)), "")
        values.append(Number(value=float(match[0].rstrip("%")), unit=unit))
    return values


LONGEST = 250
_BLOCK = re.compile(r"<FINAL_ANSWER>(.*?)</FINAL_ANSWER>", re.DOTALL | re.IGNORECASE)
_MARKUP = re.compile(r"<[^>]*>")
_UNIT_WORDS = re.compile(r"\b(?:(?:hundred|thousand|million|billion|trillion)s?|percent|percentage|%)\b")
_SHORTEST_TEXT = 2
_ONE_LIST = re.compile(r"([^\[\]\d]*)\[([^\[\]]+)\]([^\[\]\d]*)")
_LIST_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?")
_LOOSE_COMMA = re.compile(r"\s,|,\s")


def fault(answer: str, gold: str, tolerance: float) -> str:
    """Return what is wrong, in a few words, with the last ``FINAL_ANSWER`` block of ``answer``, or with all of it."""
    answer = [answer, *_BLOCK.findall(answer)][-1].strip()
    if not answer:
        return "there is no answer"
    if len(answer) > LONGEST or len(list(filter(str.strip, answer.splitlines()))) > 1:
        return f"an answer is one line of at most {LONGEST} characters"
    if "unable to determine" in answer.lower():
        return "nothing was determined"
    targets = numbers(gold)
    if not targets and numbers(answer):
        return "a text without numbers is expected"
    if not targets:
        return "" if _bare(answer) == _bare(gold) else "the text is another one"
    if _MARKUP.search(answer):
        return "there is markup in the answer"
    return _number_fault(answer, gold, targets, tolerance)


def _bare(text: str) -> str:
    core = text.strip().lower().strip('"').strip("'")
    return " ".join(re.sub(r"\([^)]*\)", "", core).split())


def _number_fault(answer: str, gold: str, targets: Sequence[Number], tolerance: float) -> str:
    words = _words(gold)
    candidates = numbers(answer)
    values, body = [number.value for number in targets], _list_body(gold)
    if not any(map(is_year, values)) and not (words and len(targets) == 1):
        # Years in passing do not count where no year is asked for.
        candidates = [number for number in candidates if not is_year(number.value)]
    if len(values) > 1 and body and _divides_into(body, values, 0.0):
        return _list_fault(answer, candidates, targets, tolerance)
    if len(candidates) != len(targets):
        return f"its count of numbers is {len(candidates)} where {len(targets)} is expected"
    if not all(any(target.near(candidate, tolerance) for candidate in candidates) for target in targets):
        return "a number is another one"
    answer_words = _words(answer)
    if words and not (answer_words and (words in answer_words or answer_words in words)):
        return "the words beside the number are other ones"
    return ""


def _words(text: str) -> str:
    """Return what a text says besides numbers and units; nothing, if it is less than two letters."""
    rest = _UNIT_WORDS.sub("", _NUMBER.sub("", plain(text).lower()).replace(",", ""))
    phrase = " ".join(re.sub(r"[^\w\s]", " ", rest).split())
    return phrase if len(phrase) >= _SHORTEST_TEXT else ""


def _list_body(text: str) -> str:
    """Return what is in the only square brackets of ``text`` if no digit is outside them; else nothing."""
    match = _ONE_LIST.fullmatch(plain(text))
    return match[2] if match else ""


def _list_fault(answer: str, candidates: Sequence[Number], targets: Sequence[Number], tolerance: float) -> str:
    if len(candidates) == len(targets):
        pairs = zip(targets, candidates, strict=True)
        if all(target.near(candidate, tolerance) for target, candidate in pairs):
            return ""
    if _divides_into(_list_body(answer) or plain(answer), [number.value for number in targets], tolerance):
        return ""
    if len(candidates) != len(targets):
        return f"its count of numbers is {len(candidates)} where {len(targets)} is expected"
    return "a number of the list is another one, or stands in another place"


def _divides_into(body: str, golds: Sequence[float], tolerance: float) -> bool:
    """Say whether the commas of a list can be read as thousands and as separators so that it is the expected one."""
    # ``8,152,260`` is 8 and 152260, or 8152 and 260. The set holds how many parts the numbers so far have used up.
    parts = body.split(",")
    readings = [list(_readings(parts, start)) for start in range(len(parts))]
    positions = {0}
    for gold in golds:
        starts = (start for start in positions if start < len(parts))
        positions = {end for start in starts for end, value in readings[start] if close(gold, value, tolerance)}
    return len(parts) in positions


def _readings(parts: Sequence[str], start: int) -> Iterator[tuple[int, float]]:
    """Yield the numbers that begin with the part ``start``, each with the part behind its end."""
    for end in range(start + 1, len(parts) + 1):
        entry = ",".join(parts[start:end]).strip()
        if end > start + 1 and _LOOSE_COMMA.search(entry):
            break
        if _LIST_NUMBER.fullmatch(figure := _figures(entry)):
            yield end, float(figure.rstrip("%").replace(",", ""))
