"""Owns what a row of the ledger holds, and how it is read: numbers that no call has cost are damage, not a cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from skillgit.calls.pricing import MOST_USD
from skillgit.calls.retry_policy import FailedAttempt
from skillgit.calls.spending_caps import Charge
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import FailureKind
from skillgit.plugin.backend import Reply, Usage, read_reply, token_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


JSON: TypeAlias = object  # a value that JSON can hold; it is checked when it is recorded

COUNTS = ("tokens_in", "tokens_out", "cached", "cache_written", "reasoning")
CHARGED = ("calls", "tokens_in", "tokens_out", "usd", "seconds", "cached", "cache_written", "reasoning", "unpriced")
"""The numbers of a charge in their order; the charges of a format 2 have the first five."""
FAILED_PREFIX = '{"failed":'  # how the outcome of an item begins that will never be evaluated
_FRACTIONS = frozenset({"usd", "seconds"})


class RowError(ValueError):
    """A row that skillgit cannot have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidReply:
    reply: Reply
    scope: str  # the event in progress that paid for it
    charge: Charge
    request: str = ""  # the digest of the question, by which a record can be replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRollout:
    value: str  # JSON, redacted
    scope: str  # the event in progress that paid for it
    charges: tuple[Charge, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it is that of an item that will never be evaluated: an object whose first key is ``failed``."""
        return self.value.startswith(FAILED_PREFIX)


def read_paid(key: str, row: Sequence[object]) -> PaidReply:
    """Return the reply of the call ``key`` from a row of ``_REPLY_COLUMNS``; a RowError if it is damaged."""
    scope, role, stage, text, request, usd, seconds, unpriced_calls, *counts = cast("Sequence[Any]", row)
    cost = read_cost(("calls", "usd", "seconds", "unpriced", *COUNTS), (1, usd, seconds, unpriced_calls, *counts))
    usage = Usage(**{name: getattr(cost, name) for name in COUNTS})
    try:
        reply = read_reply(_read_json(text), usage)
    except ValueError as error:
        raise RowError(str(error)) from None
    return PaidReply(
        reply=reply, scope=scope, charge=Charge(key=key, role=role, stage=stage, cost=cost), request=request
    )


def read_rollout(row: Sequence[Any]) -> KnownRollout:
    """Return an item outcome from its scope, its value and its charges; a RowError if it is damaged."""
    scope, value, charge_text = row
    _read_json(value)
    charges = _read_json(charge_text)
    if not isinstance(charges, list):
        raise RowError("its charges are not a list")
    return KnownRollout(scope=scope, value=value, charges=tuple(map(_read_charge, charges)))


def read_failure(row: Sequence[Any]) -> FailedAttempt:
    """Return an attempt that failed; a RowError if it is damaged."""
    number, call, scope, kind, reason, hint, final, role, stage, *numbers = row
    return FailedAttempt(
        call=call,
        scope=scope,
        kind=FailureKind.parse(kind),
        reason=reason,
        hint=hint,
        final=bool(final),
        charge=Charge(key=f"{call}#{number}", role=role, stage=stage, cost=read_cost(CHARGED, numbers)),
    )


def read_cost(names: Iterable[str], numbers: Iterable[object]) -> Cost:
    """Return the cost of one call, 0 where there are fewer numbers than names; a RowError if no call has cost that."""
    values = dict(zip(names, numbers, strict=False))
    for name, value in values.items():
        is_amount = isinstance(value, int | float) and 0 <= value <= MOST_USD
        if not (is_amount if name in _FRACTIONS else token_count(value) is not None):
            raise RowError(f"{name} is {str(value)[:40]}")
    return Cost(**cast("dict[str, Any]", values))


def encode_charges(charges: Iterable[Charge]) -> str:
    return encode_json(
        [
            [charge.key, charge.role, charge.stage, *(getattr(charge.cost, name) for name in CHARGED)]
            for charge in charges
        ]
    )


def encode_json(value: JSON) -> str:
    """Return ``value`` as JSON text; a TypeError if JSON cannot hold it, a ValueError if a number is not finite."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _read_charge(value: object) -> Charge:
    match value:
        case [str(key), str(role), str(stage), *numbers]:
            return Charge(key=key, role=role, stage=stage, cost=read_cost(CHARGED, numbers))
    raise RowError("a charge does not begin with its call, role and stage")


def _read_json(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        raise RowError("its text is not JSON") from None
    return value
