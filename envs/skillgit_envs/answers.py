"""Short answers: asked for, taken out of a reply, compared with the right one as words, or graded by a judge."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import TypeVar

from skillgit.domain.evaluation import Scored
from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Image, Message, Text, assistant, system, user
from skillgit.plugin.environment import Judge, Target


def extract(reply: str, tag: str = "answer") -> str:
    """Return the final answer of ``reply``, the tag in whichever case; empty if it says nothing.

    >>> extract('It is in the title. <answer>Paris</answer>')
    'Paris'
    """
    answer = in_tag(reply, tag)
    return last_line(reply) if answer is None else answer


_STATEMENT = re.compile(
    r"\banswer\b\**(?:\s+is\b|\s*[:=])\s*(?P<value>[^\n]*?)(?=[.!]?\s*(?:$|\n)|\.\s)", re.IGNORECASE
)
_CORRECTION = re.compile(
    r"\b(?:wait|no|actually|correct(?:ion|ing)|instead|rather|mistake|wrong|sorry)\b", re.IGNORECASE
)


def consistent_extract(reply: str) -> str:
    r"""Return the final answer like ``extract``, and nothing for a reply without a tag that gives two answers.

    >>> consistent_extract("The answer is A.\nThe answer is B.")
    ''
    >>> consistent_extract("The answer is A.\nWait, that is wrong. The answer is B.")
    'Wait, that is wrong. The answer is B.'
    """
    if in_tag(reply) is None:
        statements = list(_STATEMENT.finditer(reply))
        for before, after in pairwise(statements):
            is_other = normalise(before["value"]) != normalise(after["value"])
            if is_other and not _CORRECTION.search(reply, before.end(), after.end()):
                return ""
    return extract(reply)


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
    """Return what ``read`` makes of the judge's reply, or raise an EnvironmentFaultError if two replies are useless."""
    # ``read`` raises a ValueError with the reason, which goes back to the judge; ``form`` says what a reply has to be.
    messages = [system(instructions), user(question)]
    for _ in range(2):
        reply = await judge.chat(messages)
        if is_cut := reply.finish_reason == "length":  # what follows may take the verdict back
            reason = "it was cut at the limit of its length"
        else:
            try:
                return read(reply.text)
            except ValueError as error:
                reason = str(error)
        messages += [assistant(reply.text), user(f"This reply cannot be used: {reason}. Reply with {form} only.")]
    hint = "raise calls.max_output_tokens" if is_cut else "choose another judge"
    raise EnvironmentFaultError(f"the judge's reply cannot be used: {reason}", hint=hint)


def material(texts: Mapping[str, object]) -> str:
    """Return texts each between tags of its name, none of which it can end itself."""
    closing = re.compile(rf"</(?=\s*(?:{'|'.join(map(re.escape, texts))})\b)")
    inert = {name: closing.sub(r"<\\/", str(text)) for name, text in texts.items()}
    return "\n\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in inert.items())


WORDS_SCORER = "mrqa-2019/1"  # changes whenever :func:`exact_match` or :func:`f1` can change
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Return ``text`` as MRQA 2019 compares it (``mrqa_official_eval.py``, taken from SQuAD v1.1), in its order."""
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
