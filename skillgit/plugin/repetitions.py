"""Owns what may not repeat in the splits of an environment: ids, and content that stands in two splits."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.untrusted.names import shortened
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from skillgit.domain.trajectory import Item

_SHOWN = 5


def repetitions(splits: Mapping[Split, Sequence[Item]]) -> Iterator[DataError]:
    """Yield a fault for each kind of repetition, inside of splits and between them."""
    for split, items in splits.items():
        yield from _fault(f"ids occur more than once in the {split} split", _repeated(items))
    for first, second in combinations([split for split in Split if split in splits], 2):
        common = {item.id for item in splits[first]} & {item.id for item in splits[second]}
        yield from _fault(f"ids occur in both the {first} and the {second} split", common)
        ids = {item.digest: item.id for item in splits[first]}
        pairs = [f"{ids[item.digest]} = {item.id}" for item in splits[second] if item.digest in ids]
        yield from _fault(f"the same content stands in both the {first} and the {second} split", pairs)


def named(names: Collection[str]) -> str:
    """Return the first of ``names`` in their order, and how many more there are."""
    sequence = sorted(names)
    more = f" and {len(sequence) - _SHOWN} more" if len(sequence) > _SHOWN else ""
    return f"{', '.join(map(shortened, sequence[:_SHOWN]))}{more}"


def _repeated(items: Sequence[Item]) -> set[str]:
    ids: set[str] = set()
    return {item.id for item in items if item.id in ids or ids.add(item.id)}  # type: ignore[func-returns-value]


def _fault(text: str, names: Collection[str]) -> Iterator[DataError]:
    if names:
        yield DataError(f"{text}: {named(names)}", hint="remove the repetitions, so that no split leaks into another")
