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
    for one, other in combinations([split for split in Split if split in splits], 2):
        shared = {item.id for item in splits[one]} & {item.id for item in splits[other]}
        yield from _fault(f"ids occur in both the {one} and the {other} split", shared)
        seen = {item.digest: item.id for item in splits[one]}
        pairs = [f"{seen[item.digest]} = {item.id}" for item in splits[other] if item.digest in seen]
        yield from _fault(f"the same content stands in both the {one} and the {other} split", pairs)


def named(names: Collection[str]) -> str:
    """Return the first of ``names`` in their order, and how many more there are."""
    listed = sorted(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"{', '.join(map(shortened, listed[:_SHOWN]))}{more}"


def _repeated(items: Sequence[Item]) -> set[str]:
    seen: set[str] = set()
    return {item.id for item in items if item.id in seen or seen.add(item.id)}  # type: ignore[func-returns-value]


def _fault(what: str, names: Collection[str]) -> Iterator[DataError]:
    if names:
        yield DataError(f"{what}: {named(names)}", hint="remove the repetitions, so that no split leaks into another")
