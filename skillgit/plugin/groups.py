"""Items that are not divided: those of one group, and near-duplicates of items that have one.

A group says where items come from, such as one session of use. Two tasks of one source on both sides of a division, or
one task in two wordings, give the answer of a held-out item away.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from skillgit.domain.leaks import SHORTEST_QUOTED, words
from skillgit.plugin.likeness import alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillgit.domain.trajectory import Item

Cluster = list["Item"]  # items that stay together


def clusters(items: Sequence[Item]) -> list[Cluster]:
    """Return the items of each group, and each item without one, in the order of the first of each."""
    by_group: dict[str | int, Cluster] = defaultdict(list)
    for number, item in enumerate(items):
        by_group[item.group or number].append(item)
    return list(by_group.values())


def cut(parts: Sequence[Cluster], counts: Sequence[int]) -> list[list[Cluster]]:
    """Divide clusters, in their order, into shares whose numbers of items are ``counts``, or as near as they come.

    The order is cut where that comes nearest, and then clusters change sides, one at a time or two in exchange, as long
    as that brings the numbers nearer. No share of at least one item stays empty if there are as many clusters.
    """
    shares: list[list[Cluster]] = []
    rest = list(parts)
    for index, count in enumerate(counts[:-1]):
        most = max(0, len(rest) - sum(number > 0 for number in counts[index + 1 :]))
        sizes = [0]
        for cluster in rest[:most]:
            sizes.append(sizes[-1] + len(cluster))
        end = min(range(min(most, int(count > 0)), most + 1), key=lambda number: abs(sizes[number] - count))
        shares.append(rest[:end])
        rest = rest[end:]
    shares.append(rest)
    while exchange := _best_exchange(shares, counts):
        source, target, cluster, back = exchange
        shares[source].remove(cluster)
        shares[target].append(cluster)
        if back is not None:
            shares[target].remove(back)
            shares[source].append(back)
    return shares


class _Exchange(NamedTuple):
    source: int
    target: int
    cluster: Cluster
    back: Cluster | None


def _best_exchange(shares: Sequence[Sequence[Cluster]], counts: Sequence[int]) -> _Exchange | None:
    """Return what brings the numbers of items nearest to ``counts``; None if nothing brings them nearer."""
    excess = [sum(map(len, share)) - count for share, count in zip(shares, counts, strict=True)]
    by_size = [{len(cluster): cluster for cluster in share} for share in shares]
    best, most = None, 0
    for source, target in ((one, two) for one in range(len(shares)) for two in range(len(shares)) if excess[one] > 0):
        may_shrink = len(shares[source]) > 1 or counts[source] <= 0
        for size, cluster in by_size[source].items():
            for back_size, back in [*([(0, None)] if may_shrink else []), *by_size[target].items()]:
                shift = size - back_size
                before, after = abs(excess[source]) + abs(excess[target]), abs(excess[source] - shift)
                gain = before - after - abs(excess[target] + shift) if source != target else 0
                if gain > most:
                    best, most = _Exchange(source, target, cluster, back), gain
    return best


def related(items: Sequence[Item], prompt: Callable[[Item], str]) -> list[Item]:
    """Return ``items``, where what asks nearly the same as an item of a group is of that group too.

    Groups that are related in this way become one, with the least of their names.
    """
    leaders: dict[tuple[bool, str], tuple[bool, str]] = {}

    def leader(item: Item) -> tuple[bool, str]:
        name = (not item.group, item.group or item.id)
        while leaders.setdefault(name, name) != name:
            name = leaders[name]
        return name

    for first, second in related_pairs(items, prompt):
        least, other = sorted((leader(first), leader(second)))
        leaders[other] = least
    groups = [("" if is_alone else name) for is_alone, name in map(leader, items)]
    return [
        item if item.group == group else replace(item, group=group) for item, group in zip(items, groups, strict=True)
    ]


def related_pairs(items: Sequence[Item], prompt: Callable[[Item], str]) -> Iterator[tuple[Item, Item]]:
    """Yield items that ask nearly the same and one of which has a group; of the same question each with one of them."""
    if not any(item.group for item in items):
        return
    by_text: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_text[" ".join(words(prompt(item)))].append(item)
    for same in by_text.values():
        same.sort(key=lambda item: not item.group)
        yield from ((same[0], item) for item in same[1:] if same[0].group)
    # Texts of a few words are like others by chance, unless they are equal.
    texts = [text for text in by_text if text.count(" ") + 1 >= SHORTEST_QUOTED]
    for one, two in alike(texts):
        first, second = by_text[texts[one]][0], by_text[texts[two]][0]
        if first.group or second.group:
            yield first, second
