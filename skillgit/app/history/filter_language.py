"""What people type to find events, on the screen and on pages, and which events it means.

``event:rejected score>.6 step:3-9 "two words" unit`` are tokens with a name and words of the text. Tokens narrow
further each; words are looked up in titles, reasons and texts. A comparison lists what keeps it for certain: a
candidate known as no higher than .6 is listed by ``score<=.6`` and ``score<.7``, by no ``score>`` and by no range.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Final, cast, get_args

from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.score import Sign
from skillgit.errors import UsageError
from skillgit.index.event_pages import Narrowing, Number, NumberComparison

TOKENS: Final = "event: score> step: epoch: item: edit: run: skill: after: before: text:"
"""The tokens, as help lists them."""

_NUMBERS: Final = get_args(Number)
_COMPARED: Final = re.compile(rf"(?P<what>{'|'.join(_NUMBERS)})(?P<sign>>=|<=|>|<|=|:)(?P<value>.+)")
_RANGE: Final = re.compile(r"(?P<low>[\d.]+)(?:-|\.\.)(?P<high>[\d.]+)")
_NAMED: Final = re.compile(r"(?P<name>[a-z]+):(?P<value>.*)", re.DOTALL)
_OPERATIONS: Final = ("append", "insert_after", "replace", "delete")
_AGO: Final = re.compile(r"(?P<count>\d+)(?P<unit>[smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def narrowed(base: Narrowing, text: str, now: datetime) -> Narrowing:
    """Return ``base`` narrowed by what ``text`` says; ages as in ``after:2h`` are counted from ``now``."""
    narrowing, words = base, []
    for token in _split(text):
        comparison = _COMPARED.fullmatch(token)
        pair = _NAMED.fullmatch(token)
        if comparison:
            narrowing = replace(narrowing, comparisons=(*narrowing.comparisons, *_comparisons(comparison)))
        elif pair and pair["name"] != "text":
            narrowing = _with_token(narrowing, pair["name"], pair["value"], now)
        else:
            words.append(pair["value"] if pair else token)
    return replace(narrowing, words=" ".join(words))


def _split(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    lexer.quotes = '"'
    try:
        return list(lexer)
    except ValueError:
        # a quotation that is still being typed
        return text.replace('"', "").split()


def _comparisons(match: re.Match[str]) -> Iterable[NumberComparison]:
    quantity, sign, value = cast("Number", match["what"]), match["sign"], match["value"]
    between = _RANGE.fullmatch(value)
    if between and sign in {":", "="}:
        yield NumberComparison(number=quantity, sign=">=", value=_number(quantity, between["low"]))
        yield NumberComparison(number=quantity, sign="<=", value=_number(quantity, between["high"]))
    else:
        yield NumberComparison(
            number=quantity, sign="=" if sign == ":" else cast("Sign", sign), value=_number(quantity, value)
        )


def _number(quantity: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"{quantity} is compared with '{text}', and no number", hint=f"{quantity}>0.5, {quantity}:1-3"
        ) from None


def _with_token(narrowing: Narrowing, name: str, value: str, now: datetime) -> Narrowing:
    match name:
        case "event":
            kinds = frozenset(_one_of(kind, EventKind, "event") for kind in value.split(",") if kind)
            return replace(
                narrowing,
                kinds=narrowing.kinds | kinds,
                with_rejected=narrowing.with_rejected or EventKind.REJECTED in kinds,
            )
        case "item":
            return replace(narrowing, item=value)
        case "edit":
            return replace(narrowing, operation=_one_of(value, _OPERATIONS, "edit") if value else "")
        case "run":
            return replace(narrowing, run="" if value in {"*", "all"} else value)
        case "skill":
            return replace(narrowing, skill=value.rstrip("/"))
        case "after":
            return replace(narrowing, since=_moment(value, now))
        case "before":
            return replace(narrowing, until=_moment(value, now))
    hint = did_you_mean(f"{name}:", TOKENS.replace(",", " ").split(), otherwise=f"tokens are {TOKENS}")
    raise UsageError(f"there is no token '{name}:'", hint=hint)


def _one_of(text: str, choices: Iterable[str], kind: str) -> str:
    names = tuple(choices)
    near = [name for name in names if name.startswith(text.replace("-", "_") if "_" in name else text)]
    if text in names or len(near) == 1:
        return text if text in names else near[0]
    hint = did_you_mean(text, names, otherwise=f"it is one of {', '.join(names)}")
    raise UsageError(f"there is no {kind} '{text}'", hint=hint)


def _moment(text: str, now: datetime) -> int | None:
    if not text:
        return None
    age = _AGO.fullmatch(text)
    if age:
        return int((now - timedelta(**{_UNITS[age["unit"]]: int(age["count"])})).timestamp())
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"'{text}' is no time", hint="after:2h, before:3d, after:2026-11-21") from None
    moment = stamp if stamp.tzinfo else datetime.combine(stamp.date(), stamp.time() or time(), UTC)
    return int(moment.timestamp())
