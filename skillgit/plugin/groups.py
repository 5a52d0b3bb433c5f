"""Items that are not divided: repetitions, those of one group, and near-duplicates of items that have one.

A group says where items come from, such as one session of use. Two tasks of one source on both sides of a division, or
one task in two wordings, give the answer of a fixed_sides-out item away.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, product
from operator import ne

from skillgit.domain.ids import digest
from skillgit.domain.leaks import words
from skillgit.domain.trajectory import Item
from skillgit.plugin.likeness import alike

Cluster = list["Item"]  # items that stay together


def clusters(items: Sequence[Item]) -> list[Cluster]:
    """Return items that stay together: those of a group, and repetitions; in the order of the first of each."""
    leaders: dict[str, int] = {}
    parents = list(range(len(items)))

    def first(number: int) -> int:
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    for number, item in enumerate(items):
        for key in (f"content {repeated_content(item)}", *([f"group {item.group}"] if item.group else [])):
            lower, upper = sorted((first(number), first(leaders.setdefault(key, number))))
            parents[upper] = lower
    by_first: dict[int, Cluster] = defaultdict(list)
    for number, item in enumerate(items):
        by_first[first(number)].append(item)
    return list(by_first.values())


def repeated_content(item: Item) -> str:
    """Return what items have in common that repeat each other, under any names of their pictures."""
    if "pictures" not in item.content or "images" not in item.content:
        return item.digest
    return digest({name: value for name, value in item.content.items() if name != "images"})[:16]


def cut(parts: Sequence[Cluster], counts: Sequence[int]) -> list[list[Cluster]]:
    """Divide clusters, in their order, into shares whose numbers of items are ``counts``, or as near as they come.

    The order is cut where that comes nearest, and then the clusters next to the cuts are assigned as brings the numbers
    nearest: of up to eight clusters, no division is nearer. No share of at least one item stays empty if there are as
    many clusters.
    """
    sides: list[int] = []
    for share, count in enumerate(counts[:-1]):
        most = max(0, len(parts) - len(sides) - sum(number > 0 for number in counts[share + 1 :]))
        sizes = [0, *accumulate(len(cluster) for cluster in parts[len(sides) : len(sides) + most])]
        end = min(range(min(most, int(count > 0)), most + 1), key=lambda number: abs(sizes[number] - count))
        sides += [share] * end
    sides += [len(counts) - 1] * (len(parts) - len(sides))
    _lay_borders(parts, counts, sides)
    return [
        [cluster for cluster, side in zip(parts, sides, strict=True) if side == share] for share in range(len(counts))
    ]


_BESIDE = 8  # clusters next to the cuts, whose sides are all tried


def _lay_borders(parts: Sequence[Cluster], counts: Sequence[int], sides: list[int]) -> None:
    """Change the sides of clusters next to a cut so that the shares come as near to ``counts`` as they can."""
    numbers = [
        sum(len(cluster) for cluster, side in zip(parts, sides, strict=True) if side == n) for n in range(len(counts))
    ]
    if numbers == list(counts):
        return
    cuts = [position for position in range(1, len(sides)) if sides[position] != sides[position - 1]]
    by_distance = sorted(
        range(len(sides)), key=lambda position: (min(abs(2 * position + 1 - 2 * at) for at in cuts), position)
    )
    beside = by_distance[:_BESIDE]
    sizes, old = [len(parts[position]) for position in beside], tuple(sides[position] for position in beside)
    fixed_sides = Counter(side for position, side in enumerate(sides) if position not in beside)
    for size, side in zip(sizes, old, strict=True):
        numbers[side] -= size

    def cost(choice: tuple[int, ...]) -> tuple[int, int, int]:
        shares = numbers.copy()
        for size, side in zip(sizes, choice, strict=True):
            shares[side] += size
        empty = sum(count > 0 and not fixed_sides[share] and share not in choice for share, count in enumerate(counts))
        distance = sum(abs(share - count) for share, count in zip(shares, counts, strict=True))
        return empty, distance, sum(map(ne, choice, old))

    best = min(product(range(len(counts)), repeat=len(beside)), key=cost)
    for position, side in zip(beside, best, strict=True):
        sides[position] = side


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
        least, larger = sorted((leader(first), leader(second)))
        leaders[larger] = least
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
    texts = list(by_text)
    for first_text, second_text in alike(texts):
        first, second = by_text[texts[first_text]][0], by_text[texts[second_text]][0]
        if first.group or second.group:
            yield first, second
