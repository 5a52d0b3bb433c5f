"""A short answer: asked for, taken out of a reply, and compared with the right one as a label, as words or as a value.

A target is asked until it gives a final answer, a judge until its verdict can be read.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from skillgit.domain.evaluation import Scored
from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Image, Message, Text, assistant, system, user

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillgit.plugin.environment import Judge, Target


def extract(reply: str, tag: str = "answer") -> str:
    """Return the final answer of ``reply``, the tag in whichever case; empty if it says nothing.

    >>> extract('It is in the title. <answer>Paris</answer>')
    'Paris'
    """
    answer = in_tag(reply, tag)
    return last_line(reply) if answer is None else answer


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def in_tag(reply: str, tag: str = "answer") -> str | None:
    """Return what is in the last pair of tags; None if there is no pair."""
    close = _last(_pattern(f"</{tag}>"), reply, len(reply))
    opening = _last(_pattern(f"<{tag}>"), reply, close.start()) if close else None
    return reply[opening.end() : close.start()].strip() if close and opening else None


def quoted(text: str) -> str:
    """Return ``text`` as feedback quotes it: on one line, between quotation marks, with its letters as they are."""
    return json.dumps(text, ensure_ascii=False)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text), re.IGNORECASE)


def _last(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text, 0, end):  # noqa: B007 - the last match is wanted
        pass
    return match


def graded(gold: str, answer: str, *, right: bool) -> tuple[Scored, str]:
    """Return the score of an answer that is right or wrong, and what was expected."""
    message = f"correct: {quoted(gold)}" if right else f"expected {quoted(gold)}; the answer is {quoted(answer)}"
    return Scored(hard=float(right), soft=float(right)), message


def folded(text: str) -> str:
    return " ".join(text.split()).casefold()


T = TypeVar("T")

AGAIN = "Check your work against the task. Then give the final answer between <answer> and </answer>."


async def until_answered(
    target: Target,
    item_id: str,
    prompt: str,
    question: str,
    *,
    max_turns: int = 1,
    images: tuple[Image, ...] = (),
    review: str = "",
) -> Trajectory:
    """Return what happened when the target was asked ``question`` under the system prompt ``prompt``.

    A reply without an answer tag is followed by a request to check it, as long as there are turns left; the
    conversation is kept, so that every turn sees the task. ``review`` replaces that request, with the answer so far for
    ``{answer}``; the target then sees nothing else, not even the task.
    """
    message = Message(role="user", parts=(Text(text=question), *images))
    messages, turns = [system(prompt), message], [message.turn()]
    while True:
        reply = await target.chat(messages)
        turns.append(Turn(role="assistant", content=reply.text))
        if in_tag(reply.text) is not None or len(turns) >= 2 * max_turns:
            return Trajectory(item_id=item_id, turns=tuple(turns), answer=extract(reply.text))
        again = review.replace("{answer}", extract(reply.text)) if review else AGAIN
        messages = [messages[0], user(again)] if review else [*messages, assistant(reply.text), user(again)]
        turns.append(Turn(role="user", content=again))


async def ask_judge(judge: Judge, instructions: str, question: str, read: Callable[[str], T], *, form: str) -> T:
    """Return what ``read`` makes of the judge's reply; one that cannot be read is sent back once with the reason.

    ``read`` raises a ValueError with that reason; ``form`` says in words what a reply has to be. A second useless reply
    is an EnvironmentFaultError, not a score.
    """
    messages = [system(instructions), user(question)]
    for _ in range(2):
        reply = await judge.chat(messages)
        try:
            return read(reply.text)
        except ValueError as error:
            reason = str(error)
            messages += [assistant(reply.text), user(f"This reply cannot be used: {reason}. Reply with {form} only.")]
    raise EnvironmentFaultError(f"the judge's reply cannot be used: {reason}", hint="choose another judge")


def material(texts: Mapping[str, object]) -> str:
    """Return texts each between tags of its name, none of which it can end itself."""
    closing = re.compile(rf"</(?=\s*(?:{'|'.join(map(re.escape, texts))})\b)")
    inert = {name: closing.sub(r"<\\/", str(text)) for name, text in texts.items()}
    return "\n\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in inert.items())


WORDS_SCORER = "mrqa-2019/1"  # changes whenever :func:`exact_match` or :func:`f1` can change
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Return ``text`` as the MRQA 2019 evaluation compares it (``mrqa_official_eval.py``, taken from SQuAD v1.1).

    In this order: lower case, ASCII punctuation deleted, the words a, an and the deleted, white space collapsed.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Say whether two answers are the same.

    Unlike in MRQA, an answer of which nothing is left, like "A" or "!", equals another that differs by case only.

    >>> exact_match('The Beatles!', 'beatles')
    True
    """
    ours, theirs = normalise(answer), normalise(gold)
    return ours == theirs if ours and theirs else answer.strip().casefold() == gold.strip().casefold() != ""


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words.

    >>> round(f1('John Lennon of Liverpool', 'John Lennon'), 3)
    0.667
    """
    return 1.0 if exact_match(answer, gold) else overlap_f1(normalise(answer).split(), normalise(gold).split())


def overlap_f1(ours: list[str], theirs: list[str]) -> float:
    overlap = (Counter(ours) & Counter(theirs)).total()
    return 2 * overlap / (len(ours) + len(theirs)) if overlap else 0.0


LABEL_SCORER = "accuracy/1"  # changes whenever :func:`label_of` can change
_BOXED = re.compile(r"\\boxed\s*\{(.*)\}\s*[.$)\]\\]*\Z", re.DOTALL)
_COMMAND = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_DRESS = re.compile(r"[*_`$]|\\[()\[\],;!]")
_NAMED = re.compile(
    r"(?:(?:the|my|our)\s+)?(?:(?:final|correct|right|best)\s+)*(?:answer|option|choice)\b"
    r"(?:\s+(?:is|would\s+be|must\s+be))?\s*[:=]?\s*(?:(?:option|choice)\s+)?(.+)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(r"[(\[{]?\s*([A-Za-z])\s*[)\]}]?\s*[.:]?")
_LABEL_AND_TEXT = re.compile(r"(?:[(\[]\s*([A-Z])\s*[)\]]|([A-Z])\s*[.):])\s*\S.*", re.DOTALL)


def label_of(answer: str, choices: Mapping[str, str]) -> str:
    """Return the label that ``answer`` gives, in any usual wrapping or as the text of a choice; empty for none.

    A sentence that begins with the word "A" gives no label. The benchmark does not say how it reads one.

    >>> label_of('The answer is (B).', {'A': 'even', 'B': 'odd'})
    'B'
    """
    for text in dict.fromkeys((_undressed(answer), _undressed(last_line(answer)))):
        if label := _as_label(text, choices) or _as_text(text, choices):
            return label
        match = _NAMED.fullmatch(text)
        if match and (label := _as_label(match[1].strip(), choices) or _as_text(match[1], choices)):
            return label
    return _as_text(answer, choices)


def _as_label(text: str, choices: Mapping[str, str]) -> str:
    if alone := _LABEL.fullmatch(text):
        label = alone[1].upper()
    else:
        match = _LABEL_AND_TEXT.fullmatch(text)
        label = (match[1] or match[2]) if match else ""
    return label if label in choices else ""


def _as_text(text: str, choices: Mapping[str, str]) -> str:
    key = folded(text).rstrip(".")
    return next((label for label, choice in choices.items() if key and folded(choice).rstrip(".") == key), "")


def _undressed(text: str) -> str:
    """Return ``text`` without Markdown, without LaTeX around words, and without a box."""
    core = text.strip()
    while (box := _BOXED.search(core)) is not None:
        core = box[1].strip()
    return " ".join(_DRESS.sub("", _COMMAND.sub(r"\1", core)).split())


_LETTER = re.compile(r"\(?([A-G])\)?")
_SIGN = re.compile(r"\\(?:mathrm|text|textrm|mathbf|operatorname|left|right|displaystyle)\b|\\[,;!: ]")
_DEGREES = re.compile(r"\^\{?\\circ\}?|\\circ|°|\bdegrees?\b|掳")  # the last is a degree sign that was decoded wrongly
_NUMBER = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?|[-+]?\.\d+)\s*(.*)", re.DOTALL)
_QUANTITY = re.compile(r"(?:area|volume|length|height|width|angle|x|y)\s*=\s*", re.IGNORECASE)
_SYNONYMS = {"units": "", "unit": "", "米": "m", "metres": "m", "meters": "m", "\\pi": "π", "pi": "π"}


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
    return number is not None and number == right and (unit == right_unit or not unit or not right_unit)


def _plain(text: str) -> str:
    text = _DEGREES.sub("°", _SIGN.sub("", text.replace("$", "")))
    text = _QUANTITY.sub("", re.sub(r"[{}~]", "", text).strip(), count=1).strip().rstrip(".").casefold()
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
