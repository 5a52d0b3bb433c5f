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
from skillgit.domain.filter_words import condition_of
from skillgit.errors import UsageError
from skillgit.index.log_filter import Number, NumberComparison, Selection

TOKENS: Final = "event: score> step: epoch: item: edit: run: skill: after: before: text:"
"""The tokens, as help lists them."""

_NAMED: Final = re.compile(r"(?P<name>[a-z]+):(?P<value>.*)", re.DOTALL)
_OPERATIONS: Final = ("append", "insert_after", "replace", "delete")
_AGO: Final = re.compile(r"(?P<count>\d+)(?P<unit>[smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def narrowed(base: Selection, text: str, now: datetime) -> Selection:
    """Return ``base`` narrowed by what ``text`` says; ages as in ``after:2h`` are counted from ``now``."""
    selection, words = base, []
    for token in _split(text):
        pair, numbers = _NAMED.fullmatch(token), get_args(Number)
        condition = condition_of(token, numbers) if pair is None or pair["name"] in numbers else None
        if condition is not None and condition.value:
            number = cast("Number", condition.key)
            comparisons = (NumberComparison(number=number, sign=sign, value=at) for sign, at in condition.numbers())
            selection = replace(selection, comparisons=(*selection.comparisons, *comparisons))
        elif pair and pair["name"] != "text":
            selection = _with_token(selection, pair["name"], pair["value"], now)
        else:
            words.append(pair["value"] if pair else token)
    return replace(selection, words=" ".join(words))


def _split(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    lexer.quotes = '"'
    try:
        return list(lexer)
    except ValueError:
        # a quotation that is still being typed
        return text.replace('"', "").split()


def _with_token(selection: Selection, name: str, value: str, now: datetime) -> Selection:
    match name:
        case "event":
            kinds = frozenset(_one_of(kind, EventKind, "event") for kind in value.split(",") if kind)
            return replace(
                selection,
                kinds=selection.kinds | kinds,
                with_rejected=selection.with_rejected or EventKind.REJECTED in kinds,
            )
        case "item":
            return replace(selection, items=(value,) if value else ())
        case "edit":
            return replace(selection, operation=_one_of(value, _OPERATIONS, "edit") if value else "")
        case "run":
            return replace(selection, run="" if value in {"*", "all"} else value)
        case "skill":
            return replace(selection, skill=value.rstrip("/"))
        case "after":
            return replace(selection, since=_moment(value, now))
        case "before":
            return replace(selection, until=_moment(value, now))
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
        raise UsageError(f"'{text}' is not a valid time", hint="after:2h, before:3d, after:2026-11-21") from None
    moment = stamp if stamp.tzinfo else datetime.combine(stamp.date(), stamp.time() or time(), UTC)
    return int(moment.timestamp())
