"""What a check is, and checks that compare a result with what is right: texts, numbers and JSON.

``normalized`` and ``f1`` follow the MRQA 2019 evaluation, as the environment searchqa does; ``choice`` reads a label as
the environment livemathematicianbench does; ``numeric`` takes one number with its unit, within a tolerance; ``json``
wants JSON that fits a schema (JSON Schema 2020-12) and has the right fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillgit.domain.untrusted.model_text import storable_json
from skillgit.errors import EnvironmentFaultError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.card import read_card
from skillgit.plugin.environment import Judge
from skillgit.sandbox import Limits, Sandbox
from skillgit_envs.answers import WORDS_SCORER, exact_match, f1, folded, quoted
from skillgit_envs.choices import LABEL_SCORER, label_of
from skillgit_envs.one_number import QUANTITY_SCORER, NotOneNumberError, answer_quantity, gold_quantity

with loaded_on_use():
    import jsonschema
    import regex

if TYPE_CHECKING:
    from skillgit_envs.tasks.attachments import Attachments, Listed


Fields: TypeAlias = dict[str, Any]
"""A check in the content of an item: ``type``, ``name``, ``weight``, ``pass``, ``message``, and what its kind takes."""
Reads = Literal["tag", "json", "whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    score: float  # from 0 to 1
    reason: str  # why, for the optimizer; the source of a check is not part of it
    parts: tuple[float, ...] = ()  # the score of each part that its kind names; empty where there is one score only


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a check looks at, and what it may use."""

    prompt: str
    answer: str  # the result, as it was taken out of the reply
    row: Mapping[str, object]  # the row of the data file, without its checks, for programs that check
    products: Mapping[str, bytes]
    attachments: Attachments
    judge: Judge
    sandbox: Callable[[], Sandbox]
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSource:
    where: str
    folder: Path
    find: Callable[[list[str]], Listed]
    answers: tuple[str, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    expectation: str = ""  # what the row says of a good result, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    name: str  # what ``type`` says
    grade: Callable[[Fields, Sheet], Awaitable[Grade]]
    takes: Mapping[str, tuple[type, ...]] = field(default_factory=dict)  # field to the types of its value
    needs: tuple[str, ...] = ()  # the fields of which there must be one
    prepare: Callable[[Fields, CheckSource], Fields] = lambda fields, _: fields  # completes them, or is a ValueError
    parts: Callable[[Fields], tuple[str, ...]] = lambda _: ()  # names what is graded apart; empty for one score only
    reads: Reads = "tag"  # how a result is taken out of a reply if nothing else is said

    @property
    def help(self) -> str:
        """What the card says of it, as a sentence."""
        card = read_card(Path(__file__).parents[1])
        return f"{next(option.values for option in card.options if option.name == 'scorer')[self.name]}."


SCORERS = (WORDS_SCORER, LABEL_SCORER, "tasks-texts/2", QUANTITY_SCORER, "tasks-json/2")
_REGEX_SECONDS = 2.0
_SHOWN = 300


class CheckError(ValueError):
    """A check cannot be used; ``hint`` says what to do about it."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


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


def _exact(answer: str, gold: str) -> bool:
    return answer.strip() == gold.strip()


def _contains(answer: str, gold: str) -> bool:
    return folded(gold) in folded(answer)


def _compared(score: Callable[[str, str], float]) -> Callable[[Fields, Sheet], Any]:
    async def grade(fields: Fields, sheet: Sheet) -> Grade:
        best = float(max(score(sheet.answer, answer) for answer in fields["answers"]))
        if best >= 1:
            return Grade(score=1.0, reason="correct")
        if not sheet.answer.strip():
            return Grade(score=0.0, reason=f"{expected(fields['answers'])}; there is no answer")
        excerpt = quoted(sheet.answer[:_SHOWN])
        return Grade(score=best, reason=f"{expected(fields['answers'])}; the answer is {excerpt}")

    return grade


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
        return Grade(score=1.0, reason="correct")
    description = f"gives {guess}. {choices[guess]}" if guess else "gives no label"
    return Grade(score=0.0, reason=f'expected: "{right}. {choices[right]}"; the answer {description}')


def _compiled(fields: Fields, source: CheckSource) -> Fields:

    del source
    if fields.setdefault("match", "search") not in {"search", "full"}:
        raise ValueError("has a 'match' that is neither search nor full")
    try:
        regex.compile(fields["pattern"])
    except regex.error as error:
        raise ValueError(f"has a pattern that is not a regular expression: {error}") from error
    return fields


async def _regex(fields: Fields, sheet: Sheet) -> Grade:

    pattern = regex.compile(fields["pattern"], regex.IGNORECASE if fields.get("ignore_case") else 0)
    look = pattern.fullmatch if fields["match"] == "full" else pattern.search
    try:
        match = look(sheet.answer, timeout=_REGEX_SECONDS)
    except TimeoutError as error:
        problem = f"a regular expression took more than {_REGEX_SECONDS:g} seconds"
        raise EnvironmentFaultError(problem, hint="write it without nested repetition") from error
    message = "the form is right" if match else "the answer does not have the form that is asked for"
    return Grade(score=float(match is not None), reason=message)


_RELATIVE = 1e-9


def _numbered(fields: Fields, source: CheckSource) -> Fields:
    fields = with_answers(fields, source)
    for answer in fields["answers"]:
        try:
            gold_quantity(answer)
        except NotOneNumberError as error:
            raise CheckError(f"has the answer {quoted(answer)}, which {error}", hint=error.hint) from error
    for name in ("abs", "rel"):
        if fields.get(name, 0) < 0:
            raise ValueError(f"has a negative '{name}'")
    return fields


async def _numeric(fields: Fields, sheet: Sheet) -> Grade:
    try:
        quantity = answer_quantity(sheet.answer)
    except NotOneNumberError as error:
        return Grade(score=0.0, reason=f"{expected(fields['answers'])}; the answer {error}")
    relative, absolute = fields.get("rel", 0.0 if "abs" in fields else _RELATIVE), fields.get("abs", 0.0)
    golds = map(gold_quantity, fields["answers"])
    if any(quantity.equals(gold, absolute=absolute, relative=relative) for gold in golds):
        return Grade(score=1.0, reason="correct")
    value = f"{float(quantity.value):g} {quantity.unit}".strip()
    return Grade(score=0.0, reason=f"{expected(fields['answers'])}; the answer gives {value}")


_TOLD = 3
_MISSING = object()


def _with_schema(fields: Fields, source: CheckSource) -> Fields:

    schema = fields.get("schema")
    if isinstance(schema, str):
        (entry,) = source.find([schema])
        try:
            schema = json.loads((source.folder / entry["name"]).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"has a schema that is not JSON: {error}") from error
        fields = fields | {"schema": schema}
    if schema is not None:
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise ValueError(f"has a schema that is none: {error.message}") from error
        for part in _schemas(schema):
            links = (str(part.get(name, "#")) for name in ("$ref", "$dynamicRef"))
            if outside := next((link for link in links if not link.startswith("#")), ""):
                raise ValueError(f"has a schema that refers to {outside}; only its own parts can be referred to")
            if (name := part.get("format", FORMATS[0])) not in FORMATS:
                message = f"has a schema with the format '{name}', which is not checked; {', '.join(FORMATS)} are"
                raise ValueError(message)
    return fields


_NAMED = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_VALUES = frozenset(("const", "enum", "default", "examples"))


def _schemas(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those in it; what is under a name, or is a value, is not taken for keywords."""
    if isinstance(value, dict):
        yield value
    for name, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if name not in _VALUES:
            yield from _schemas(list(part.values()) if name in _NAMED and isinstance(part, dict) else part)


FORMATS = ("date", "date-time", "time", "email", "idn-email", "ipv4", "ipv6", "regex", "uuid")
"""The formats of JSON Schema that are checked, on every machine alike: those that need no further package."""
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"


@cache
def _format_checker() -> jsonschema.FormatChecker:
    """Return what checks FORMATS, dates with a time as RFC 3339 writes them."""
    checker = jsonschema.FormatChecker([name for name in FORMATS if "time" not in name])

    @checker.checks("time")
    def is_time(value: object) -> bool:
        return not isinstance(value, str) or re.fullmatch(_TIME, value, re.ASCII) is not None

    @checker.checks("date-time")
    def is_date_time(value: object) -> bool:
        return not isinstance(value, str) or (
            checker.conforms(value[:10], "date") and value[10:11] in {"T", "t"} and is_time(value[11:])
        )

    return checker


async def _json(fields: Fields, sheet: Sheet) -> Grade:
    try:
        value = storable_json(json.loads(sheet.answer))
    except (ValueError, RecursionError) as error:
        return Grade(score=0.0, reason=f"the answer is no JSON: {error}")
    faults = list(islice(_faults(fields.get("schema"), value), _TOLD))
    if faults:
        return Grade(score=0.0, reason=f"the JSON has not the form that is asked for: {'; '.join(faults)}")
    golds: dict[str, object] = fields.get("fields", {})
    wrong = {path: gold for path, gold in golds.items() if not _equal(_field(value, path), gold)}
    if not wrong:
        return Grade(score=1.0, reason="correct")
    details = "; ".join(f"{path}: expected {json.dumps(gold, ensure_ascii=False)}" for path, gold in wrong.items())
    return Grade(score=1.0 - len(wrong) / len(golds), reason=f"wrong fields: {details}")


def _faults(schema: dict[str, Any] | None, value: object) -> Iterator[str]:
    if schema is None:
        return

    for error in jsonschema.Draft202012Validator(schema, format_checker=_format_checker()).iter_errors(value):
        yield f"{error.json_path}: {error.message[:200]}"


def _field(value: object, path: str) -> object:
    """Return what is at a path such as ``order.lines.0.price``."""
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _equal(first: object, second: object) -> bool:
    """Say whether two values are equal as JSON, where true is not 1, but 1 is 1.0."""
    if first is _MISSING or isinstance(first, bool) != isinstance(second, bool):
        return False
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_equal(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_equal, first, second))
    return first == second


_ANSWERS: dict[str, tuple[type, ...]] = {"answer": (str, int, float), "answers": (list,)}
KINDS = (
    *(
        CheckKind(name=name, grade=_compared(score), takes=_ANSWERS, prepare=with_answers)
        for name, score in (("exact", _exact), ("normalized", exact_match), ("contains", _contains), ("f1", f1))
    ),
    CheckKind(
        name="choice",
        grade=_choice,
        takes=_ANSWERS,
        prepare=_choice_answer,
    ),
    CheckKind(
        name="regex",
        grade=_regex,
        takes={"pattern": (str,), "match": (str,), "ignore_case": (bool,)},
        needs=("pattern",),
        prepare=_compiled,
    ),
    CheckKind(
        name="numeric",
        grade=_numeric,
        takes={"answer": (str, int, float), "answers": (list,), "abs": (int, float), "rel": (int, float)},
        prepare=_numbered,
    ),
    CheckKind(
        name="json",
        grade=_json,
        takes={"schema": (dict, str), "fields": (dict,)},
        needs=("schema", "fields"),
        prepare=_with_schema,
        reads="json",
    ),
)
