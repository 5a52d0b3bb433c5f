"""Every trailer: what its value is made of, which kinds of events bear it, how often, and what it says.

A record declares its fields, and is read and written by them. The trailers are derived from the facts of events:
reading and writing of events (``commit_message``), the check for trailers out of place (``run_checks``) and the
reference in ``docs/scripting.md`` use this table. A new trailer is a fact of :class:`skillgit.domain.event.Event`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from skillgit.domain.address import version_label
from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.evaluation import EvaluationSummary, Gauge, LoadCounts, Metric, Split
from skillgit.domain.event import CANDIDATES, START, Event, Fact, Inherited, Measurement, Models, facts_of
from skillgit.domain.event_kinds import AddressKind, EventKind
from skillgit.domain.gate_decision import Decision, NoRegression, Verdict
from skillgit.domain.placebo import Placebo
from skillgit.domain.proposal import EditRecord, Origin, PatchCounts, Screening
from skillgit.domain.protected_regions import AppendixCounts
from skillgit.domain.served_model import ServedModel, read_facts, write_facts
from skillgit.errors import TrailerError
from skillgit.store import trailers
from skillgit.store.trailers import TOKEN, format_token, parse_value

T = TypeVar("T")
NEEDED: Final[Any] = object()
"""What the absence of a field says that is always there."""
AS_THE_CLASS: Final[Any] = object()
"""What the absence of a field says that has a default in the class that is read."""
WORD: Final = ""
"""The key of the word that a value begins with."""


class ValueForm(NamedTuple):
    name: str
    # returns what a text says; ValueError, KeyError and TrailerError say that it cannot be read
    read: Callable[[str], Any]
    write: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class TokenKind:
    name: str
    pattern: re.Pattern[str]  # how its tokens look; it has no groups
    # returns the value of a token that looks so; ValueError and KeyError say that it is none all the same
    value: Callable[[str], Any]
    write: Callable[[Any], str] = format_token

    def read(self, token: str) -> Any:  # noqa: ANN401 - kinds have values of their own types
        """Return the value of ``token``; ValueError and KeyError say that it is of another kind."""
        if self.pattern.fullmatch(token) is None:
            raise ValueError(token)
        return self.value(token)


def _text(token: str) -> str:
    return unquote(token) if "%" in token else token


def _number(token: str) -> float:
    number = float(token)
    if not isfinite(number):
        raise ValueError(token)
    return number


TEXT = TokenKind("a text", TOKEN, _text)
INTEGER = TokenKind("an integer", trailers.INTEGER, int)
# the sum over a history of any length has to fit into what a database calls an integer
AMOUNT = TokenKind("an integer from 0, of at most 15 digits", re.compile(r"[0-9]{1,15}"), int)
NUMBER = TokenKind("a number", re.compile(r"-?[0-9][0-9.e+-]*"), _number)
VERSION = TokenKind(
    "`v` and a number", re.compile(rf"{AddressKind.VERSION}[0-9]{{1,18}}"), lambda token: int(token[1:]), version_label
)


def member(members: type[StrEnum]) -> TokenKind:
    # an enumeration finds its members in a function of Python's, which is slower by far
    names = {str(value): value for value in members}
    return TokenKind("one of " + " ".join(f"`{name}`" for name in names), TOKEN, names.__getitem__, str)


def flag(token: str, *, means: bool) -> TokenKind:
    """Return the kind of a field that says one truth value with ``token``, and the other one by its absence."""
    return TokenKind(f"`{token}`", re.compile(re.escape(token)), lambda _: means, lambda _: token)


@dataclass(frozen=True, slots=True)
class Field:
    key: str  # its key in the trailer; `WORD` for the word that the value begins with
    kind: TokenKind
    name: str = ""  # the attribute that it is, where that is not called like the key
    # what its absence says, where that is not the default of the class; `NEEDED` if it cannot be absent
    absent: Any = AS_THE_CLASS
    # says of a whole whether the field is written, where that does not follow from its value
    when: Callable[[Any], bool] | None = None
    # whether the class computes it: it is written for those who read trailers, and checked, but not kept
    derived: bool = False

    @property
    def attribute(self) -> str:
        return self.name or self.key


class Record(Generic[T]):
    """A value that is made of fields.

    Attributes:
        make: The class that is read, or another function that takes the attributes by name.
        fields: Its own fields, in the order in which they are written.
        inner: The attribute that the fields behind them make, with its record.
        elsewhere: The attribute, with its default, that a trailer of its own says.
    """

    name = "a value"

    def __init__(
        self, make: Callable[..., T], *fields: Field, inner: tuple[str, Record[Any]] | None = None, elsewhere: str = ""
    ) -> None:
        self.make, self.fields, self.inner, self.elsewhere = make, fields, inner, elsewhere
        self._keys: tuple[str, ...] = (*(field.key for field in fields), *(inner[1]._keys if inner else ()))  # noqa: SLF001 - of this class
        self._pattern: str = "".join(map(self._one, fields)) + (inner[1]._pattern if inner else "")  # noqa: SLF001 - of this class
        self._match = re.compile(self._pattern).fullmatch
        self._defaults = [(field, self.absent(field)) for field in fields]
        self._read = [(field.attribute, field.kind.value, absent) for field, absent in self._defaults]
        self._computed_names = [field.attribute for field in fields if field.derived]

    def _one(self, field: Field) -> str:
        """Return the pattern of a field with the blank before it."""
        token = f" {_prefix(field)}({field.kind.pattern.pattern})"
        return token if self.absent(field) is NEEDED else f"(?:{token})?"

    def absent(self, field: Field) -> Any:  # noqa: ANN401 - attributes have types of their own
        """Return what the absence of ``field`` means; ``NEEDED`` if it is always there."""
        if field.absent is not AS_THE_CLASS:
            return field.absent
        default = default_of(self.make, field.attribute)
        return "" if default is NEEDED and field.kind is TEXT else default

    def read(self, text: str, *more: object) -> T:
        """Return what the value ``text`` says; ``more`` is the attribute stored elsewhere."""
        match = self._match(f" {text}") or self._match(self._in_order(text))
        try:
            if match is not None:
                return self._made(iter(match.groups()), *more)
        except (ValueError, KeyError):
            pass
        raise TrailerError(self._fault(parse_value(text)), hint="skillgit fsck")

    def _fault(self, tokens: Mapping[str, str]) -> str:
        """Return why these tokens do not make a value."""
        for field in self.fields:
            token = tokens.get(field.key)
            if token is None and self.absent(field) is NEEDED:
                return f"a trailer has no {_prefix(field) or 'word'}"
            try:
                if token is not None:
                    field.kind.read(token)
            except (ValueError, KeyError):
                return f"'{_prefix(field)}{token}' is not {field.kind.name}"
        return self.inner[1]._fault(tokens) if self.inner else "a trailer cannot be read"  # noqa: SLF001 - of this class

    def _in_order(self, text: str) -> str:
        """Return the value with its fields as they would be written, without those of a newer skillgit."""
        tokens = parse_value(text)
        if WORD in tokens and WORD not in self._keys:
            raise TrailerError(f"'{text[:60]}' begins with a word", hint="skillgit fsck")
        return "".join(f" {key}{'=' if key else ''}{tokens[key]}" for key in self._keys if key in tokens)

    def _made(self, tokens: Iterator[str | None], elsewhere: object = ()) -> T:
        """Build the value from the tokens of all fields; ValueError and KeyError if they do not make one."""
        values: dict[str, object] = {self.elsewhere: elsewhere} if self.elsewhere else {}
        # the fields go first, for zip must not take a token after the last of them
        for (name, value, absent), token in zip(self._read, tokens, strict=False):
            values[name] = absent if token is None else value(token)
        for name in self._computed_names:
            del values[name]
        if self.inner is not None:
            name, record = self.inner
            values[name] = record._made(tokens)  # noqa: SLF001 - of this class
        return self.make(**values)

    def write(self, whole: object) -> str:
        """Return the text of ``whole``; empty if the absence of every field says it."""
        tokens = []
        for field, absent in self._defaults:
            value = getattr(whole, field.attribute)
            if field.when(whole) if field.when is not None else value != absent:
                tokens.append(_prefix(field) + field.kind.write(value))
        if self.inner is not None:
            name, record = self.inner
            tokens.append(record.write(getattr(whole, name)))
        return " ".join(tokens)


def _prefix(field: Field) -> str:
    return f"{field.key}=" if field.key else ""


def default_of(make: Callable[..., object], name: str) -> Any:  # noqa: ANN401 - attributes have types of their own
    """Return the default that the dataclass ``make`` has for an attribute; ``NEEDED`` if there is none."""
    if not dataclasses.is_dataclass(make):
        return NEEDED
    entry = next((field for field in dataclasses.fields(make) if field.name == name), None)
    if entry is None:
        return NEEDED
    if entry.default_factory is not dataclasses.MISSING:
        return entry.default_factory()
    return NEEDED if entry.default is dataclasses.MISSING else entry.default


_OF_TYPE: dict[object, TokenKind] = {int: INTEGER, float: NUMBER, str: TEXT}


def record_of(make: type[T], *extra: Field, elsewhere: str = "", **fields: Field) -> Record[T]:
    """Return the record of a dataclass: a field for each attribute, in their order, called like it.

    ``fields`` are those that differ, by attribute, and ``extra`` those that come after all others. An attribute that
    may be None and has no default is None where its field is absent.
    """
    hints = get_type_hints(make)
    derived: list[Field] = []
    for entry in dataclasses.fields(cast("Any", make)):
        if entry.name == elsewhere:
            continue
        hint = hints[entry.name]
        value_type = hint if isinstance(hint, type) else get_args(hint)[0]
        kind = member(value_type) if issubclass(value_type, StrEnum) else _OF_TYPE.get(value_type, TEXT)
        is_optional = type(None) in get_args(hint) and default_of(make, entry.name) is NEEDED
        usual = Field(entry.name.replace("_", "-"), kind, entry.name, absent=None if is_optional else AS_THE_CLASS)
        own = fields.get(entry.name, usual)
        derived.append(own if own.name else replace(own, name=entry.name))
    return Record(make, *derived, *extra, elsewhere=elsewhere)


EDIT = record_of(EditRecord)
PATCH = record_of(PatchCounts, salvaged=Field("salvaged", flag("true", means=True)))
ORIGIN: Record[Mapping[str, Any]] = Record(
    dict,
    Field(WORD, member(Origin), "origin", absent=Origin.STEP),
    Field("number", INTEGER, absent=0),
    Field("of", TEXT),
)
"""The attributes of a candidate that say where it comes from."""
APPENDIX = record_of(AppendixCounts)
LOADS = TokenKind(
    "three integers, as `loaded/ignored/unknown`",
    re.compile(r"[0-9]{1,15}/[0-9]{1,15}/[0-9]{1,15}"),
    lambda token: LoadCounts(*map(int, token.split("/"))),
    lambda loads: f"{loads.loaded}/{loads.ignored}/{loads.unknown}",
)
SUMMARY = Record(
    EvaluationSummary,
    Field("split", member(Split)),
    Field("version", INTEGER),
    Field("set", TEXT, "item_set"),
    Field("n", INTEGER),
    Field("scored", INTEGER),
    Field("hard", NUMBER),
    Field("soft", NUMBER),
    Field("seed", INTEGER),
    Field("stopped", flag("exact", means=True), absent=False, derived=True),
    Field("unneeded", INTEGER),
    Field("spare", INTEGER),
    Field("cut", INTEGER),
    Field("loads", LOADS),
    Field("tokens", NUMBER),
)
_INHERITED = "inherited"
INHERITED = Record(Inherited, Field("from", VERSION, "version"))
GATE = record_of(
    Verdict,
    decision=Field(WORD, member(Decision)),
    policy=Field("policy", TEXT, absent=NEEDED),
    soft_weight=Field("weight", NUMBER, when=lambda verdict: verdict.metric is Metric.MIXED),
    no_regression=Field("guard", member(NoRegression)),
    blocked=Field("blocked", INTEGER, when=lambda verdict: verdict.no_regression is not NoRegression.NONE),
    gated=Field("gated", flag("no", means=False)),
)
SCREENING = record_of(Screening)
GAUGE = record_of(
    Gauge,
    metric=Field(WORD, member(Metric), absent=NEEDED),
    soft_weight=Field("weight", NUMBER, when=lambda gauge: gauge.metric is Metric.MIXED),
)
PLACEBO = record_of(Placebo, Field("rate", NUMBER, derived=True))
MODELS = record_of(Models)
FACTS = TokenKind(
    "facts, as `name:value+name:value`",
    TOKEN,
    lambda token: read_facts(_text(token)),
    lambda facts: format_token(write_facts(facts)),
)
SERVED = Record(
    ServedModel,
    Field(WORD, TEXT, "role", absent=NEEDED),
    Field("backend", TEXT, absent=NEEDED),
    Field("model", TEXT, absent=NEEDED),
    Field("at", TEXT, "address", absent=NEEDED),
    Field("by", TEXT, "variable"),
    Field("pinned", flag("yes", means=True), "is_pinned"),
    Field("facts", FACTS),
)
_AMOUNTS = ("cached", "cache_written", "reasoning", "unpriced", "reused", "unidentified")
COST = record_of(
    Cost,
    elsewhere="parts",
    calls=Field("calls", AMOUNT, absent=NEEDED),
    tokens_in=Field("in", AMOUNT, absent=NEEDED),
    tokens_out=Field("out", AMOUNT, absent=NEEDED),
    usd=Field("usd", NUMBER, absent=NEEDED),
    seconds=Field("seconds", NUMBER, absent=NEEDED),
    **{name: Field(name.replace("_", "-"), AMOUNT) for name in _AMOUNTS},
)
SPENT = Record(CostPart, Field("role", TEXT), Field("stage", TEXT), inner=("cost", COST))


def _write_measurement(measurement: Measurement) -> str:
    if isinstance(measurement, Inherited):
        return f"{_INHERITED} {INHERITED.write(measurement)}"
    return SUMMARY.write(measurement)


def _read_measurement(text: str) -> Measurement:
    word, _, rest = text.partition(" ")
    return INHERITED.read(rest) if word == _INHERITED else SUMMARY.read(text)


MEASUREMENT = ValueForm("an evaluation, or `inherited from=v<N>`", _read_measurement, _write_measurement)


def read_cost(text: str, entries: Iterable[str]) -> Cost:
    """Read a cost, which may be empty, and its parts; a TrailerError if two are of one role in one stage."""
    parts = tuple(map(SPENT.read, entries))
    if len({(part.role, part.stage) for part in parts}) < len(parts):
        raise TrailerError("two trailers Skillgit-Spent tell of one role in one stage", hint="skillgit fsck")
    return COST.read(text, parts) if text else Cost(parts=parts)


KINDS: Final = tuple(kind for kind in EventKind if kind is not EventKind.EDITED)
"""The kinds of events that have trailers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailer:
    key: str  # its key without prefix
    form: ValueForm | TokenKind | Record[Any]
    # the attribute that its value is; empty if the value is written from the whole event and read as a mapping of
    # attributes
    attribute: str = ""
    kinds: frozenset[EventKind]
    meaning: str
    absent: Any  # what its absence says
    needed: frozenset[EventKind] = frozenset()  # the kinds on which it cannot be absent
    many: bool = False  # whether there is one for each element of the attribute
    # whether the events of a run have few different ones, so that it is worth while to keep what was read
    repeats: bool = False

    def said_by_absence(self, kind: EventKind) -> Any:  # noqa: ANN401 - attributes have types of their own
        """Return what its absence means for an event of ``kind``; ``NEEDED`` if it cannot be absent."""
        return NEEDED if kind in self.needed else self.absent


_RECORDS = (EDIT, PATCH, APPENDIX, SUMMARY, GATE, SCREENING, GAUGE, PLACEBO, MODELS, SERVED, COST)
_FORMS: dict[object, ValueForm | TokenKind | Record[Any]] = {
    int: INTEGER,
    str: TEXT,
    **{record.make: record for record in _RECORDS},
}
"""The form of a value, by the type of the fact."""
_REPEATING = (PATCH, MODELS)
_INHERITING = frozenset({EventKind.RUN_STARTED, EventKind.SLOW_MERGED, EventKind.REVERTED})
_SEED = ValueForm("`0`", lambda _: {}, lambda _: "0")
_BARE = {
    "origin": Trailer(
        key="Origin",
        form=ORIGIN,
        kinds=CANDIDATES,
        meaning="Where the candidate comes from, if not from a step's rollouts",
        absent={},
    ),
    "version": Trailer(key="Version", form=_SEED, kinds=START, meaning="The seed skill is version 0", absent={}),
    "base": Trailer(key="Base", form=_SEED, kinds=START, meaning="The seed skill is its own base", absent={}),
}
"""Trailers that are not just a fact, before those of the facts of these names."""


def trailers_of(event_class: type[Event]) -> tuple[Trailer, ...]:
    """Return the trailers of the facts of ``event_class``, in the order in which they are written."""
    name = ValueForm(" ".join(f"`{kind}`" for kind in KINDS), lambda _: {}, attrgetter("kind"))
    every = frozenset(KINDS)
    first = Trailer(key="Event", form=name, kinds=every, meaning="What happened", absent=NEEDED)
    hints, defaults = (
        get_type_hints(event_class),
        {entry.name: entry.default for entry in dataclasses.fields(event_class)},
    )
    rest = (
        trailer
        for attribute, declared in facts_of(event_class).items()
        if declared.trailer
        for trailer in _of_fact(attribute, declared, hints[attribute], defaults[attribute])
    )
    return (first, *rest)


def _of_fact(attribute: str, declared: Fact, hint: object, default: object) -> Iterator[Trailer]:
    kinds = declared.kinds & frozenset(KINDS)
    if (bare := _BARE.get(attribute)) is not None:
        yield bare
        kinds -= bare.kinds
    many = get_origin(hint) is tuple
    value_type = hint if isinstance(hint, type) and not many else get_args(hint)[0]
    form = member(value_type) if issubclass(value_type, StrEnum) else _FORMS[value_type]
    plain = Trailer(
        key=declared.trailer,
        form=form,
        attribute=attribute,
        kinds=kinds,
        meaning=declared.meaning,
        absent="" if default is dataclasses.MISSING else default,
        needed=declared.needed,
        many=many,
        repeats=form in _REPEATING,
    )
    if attribute == "evaluation":
        yield replace(plain, kinds=kinds - _INHERITING)
        yield replace(plain, kinds=kinds & _INHERITING, form=MEASUREMENT)
        return
    yield plain
    if attribute == "cost":
        meaning = "What one role cost in one stage"
        yield replace(plain, key="Spent", form=SPENT, attribute="cost.parts", meaning=meaning, absent=(), many=True)


TRAILERS: Final = trailers_of(Event)
"""In the order in which they are written, between the format and the evidence."""


def bearers(key: str) -> frozenset[EventKind]:
    return frozenset().union(*(trailer.kinds for trailer in TRAILERS if trailer.key == key))
