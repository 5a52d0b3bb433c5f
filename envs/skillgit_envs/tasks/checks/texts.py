"""Checks that compare a short answer with accepted ones: exact, normalized, contains, f1, choice, regex.

``normalized`` and ``f1`` follow the MRQA 2019 evaluation, as the environment searchqa does; ``choice`` reads a label as
the environment livemathematicianbench does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillgit.errors import EnvironmentFaultError
from skillgit_envs.answer_tag import quoted
from skillgit_envs.livemathematicianbench.scoring import SCORER as CHOICE_SCORER
from skillgit_envs.livemathematicianbench.scoring import label_of
from skillgit_envs.searchqa.scoring import SCORER as WORDS_SCORER
from skillgit_envs.searchqa.scoring import exact_match
from skillgit_envs.searchqa.scoring import f1 as f1_of
from skillgit_envs.tasks.checks.check import CheckKind, Grade

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit_envs.tasks.checks.check import CheckSource, Fields, Sheet

SCORERS = (WORDS_SCORER, CHOICE_SCORER, "tasks-texts/1")
_REGEX_SECONDS = 2.0
_SHOWN = 300


def with_answers(fields: Fields, source: CheckSource) -> Fields:
    """Return the fields with ``answers``, a list of texts: the check's own, else those of the row."""
    value = fields.pop("answers", fields.pop("answer", None))
    fields.pop("answer", None)
    answers = list(source.answers) if value is None else value if isinstance(value, list) else [value]
    texts = [_text(answer) for answer in answers]
    if not [text for text in texts if text.strip()]:
        raise ValueError("needs 'answers', in the check or in the row")
    return fields | {"answers": texts}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    raise ValueError("has an answer that is neither text nor number")


def expected(answers: Sequence[str]) -> str:
    lead = "expected" if len(answers) == 1 else "expected one of"
    return f"{lead}: {', '.join(map(quoted, answers))}"


def _compared(score: Callable[[str, str], float]) -> Callable[[Fields, Sheet], Any]:
    async def grade(fields: Fields, sheet: Sheet) -> Grade:
        best = max(score(sheet.answer, answer) for answer in fields["answers"])
        if best >= 1:
            return Grade(score=1.0, said="correct")
        if not sheet.answer.strip():
            return Grade(score=0.0, said=f"{expected(fields['answers'])}; there is no answer")
        excerpt = quoted(sheet.answer[:_SHOWN])
        return Grade(score=best, said=f"{expected(fields['answers'])}; the answer is {excerpt}")

    return grade


def _exact(answer: str, gold: str) -> float:
    return float(answer.strip() == gold.strip())


def _normalized(answer: str, gold: str) -> float:
    return float(exact_match(answer, gold))


def _contains(answer: str, gold: str) -> float:
    return float(" ".join(gold.split()).casefold() in " ".join(answer.split()).casefold())


def _choice_answer(fields: Fields, source: CheckSource) -> Fields:
    """Return the fields with the choices, and the label of the right one as the only answer."""
    if not source.choices:
        raise ValueError("needs the field 'choices' in the row, a list of texts")
    fields = with_answers(fields, source)
    labels = [label_of(answer, source.choices) for answer in fields["answers"]]
    if len(labels) != 1 or not labels[0]:
        raise ValueError("needs one answer: the label or the text of a choice")
    return fields | {"answers": labels, "choices": dict(source.choices)}


async def _choice(fields: Fields, sheet: Sheet) -> Grade:
    choices, (right,) = fields["choices"], fields["answers"]
    guess = label_of(sheet.answer, choices)
    if guess == right:
        return Grade(score=1.0, said="correct")
    description = f"gives {guess}. {choices[guess]}" if guess else "gives no label"
    return Grade(score=0.0, said=f'expected: "{right}. {choices[right]}"; the answer {description}')


def _compiled(fields: Fields, source: CheckSource) -> Fields:
    import regex  # noqa: PLC0415 - few files have such a check

    del source
    if fields.setdefault("match", "search") not in {"search", "full"}:
        raise ValueError("has a 'match' that is neither search nor full")
    try:
        regex.compile(fields["pattern"])
    except regex.error as error:
        raise ValueError(f"has a pattern that is no regular expression: {error}") from error
    return fields


async def _regex(fields: Fields, sheet: Sheet) -> Grade:
    import regex  # noqa: PLC0415 - few files have such a check

    pattern = regex.compile(fields["pattern"], regex.IGNORECASE if fields.get("ignore_case") else 0)
    look = pattern.fullmatch if fields["match"] == "full" else pattern.search
    try:
        match = look(sheet.answer, timeout=_REGEX_SECONDS)
    except TimeoutError as error:
        raise EnvironmentFaultError(
            f"a regular expression took more than {_REGEX_SECONDS:g} seconds", hint="write it without nested repetition"
        ) from error
    message = "the form is right" if match else "the answer does not have the form that is asked for"
    return Grade(score=float(match is not None), said=message)


_ANSWERS: dict[str, tuple[type, ...]] = {"answer": (str, int, float), "answers": (list,)}
KINDS = (
    *(
        CheckKind(name=name, help=text, grade=_compared(score), takes=_ANSWERS, prepare=with_answers)
        for name, text, score in (
            ("exact", "The answer is one of 'answers', but for blanks around it.", _exact),
            ("normalized", "The same without case, punctuation, articles and surplus blanks.", _normalized),
            ("contains", "One of 'answers' stands in the answer, in whichever case.", _contains),
            ("f1", "The best overlap of words with one of 'answers'; partial credit.", f1_of),
        )
    ),
    CheckKind(
        name="choice",
        help="The answer is the label or the text of the right one of the row's 'choices'.",
        grade=_choice,
        takes=_ANSWERS,
        prepare=_choice_answer,
    ),
    CheckKind(
        name="regex",
        help="The regular expression 'pattern' is found in the answer; 'match': 'full' wants it to be all of it.",
        grade=_regex,
        takes={"pattern": (str,), "match": (str,), "ignore_case": (bool,)},
        needs=("pattern",),
        prepare=_compiled,
    ),
)
