"""What someone meant who wrote a name that does not exist: the one home of every "did you mean".

A slip is a letter too many, one too few, another one, or two neighbours in the wrong order; each counts as one
(the optimal string alignment distance). Names differ by no case, and ``-``, ``_`` and a space are one letter.
"""

from __future__ import annotations

from collections.abc import Iterable

_LETTERS_PER_SLIP = 3
_MOST_SLIPS = 3
_LEAST_COMMON = 3
"""How many letters the beginning of a name has at least that passes for the name."""
_LONGEST = 200


def slips(first: str, second: str, most: int) -> int:
    """Return how many slips lead from one word to another, or ``most + 1`` where it takes more than ``most``."""
    if abs(len(first) - len(second)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def near_names(word: str, names: Iterable[str], *, most: int = 1) -> tuple[str, ...]:
    """Return those of ``names`` that ``word`` may stand for, the likeliest first, at most so many."""
    plain_word = _plain(word[:_LONGEST])
    ranks: list[tuple[int, int, str]] = []
    for number, name in enumerate(dict.fromkeys(names)):
        plain_name = _plain(name[:_LONGEST])
        limit = min(_MOST_SLIPS, max(1, max(len(plain_word), len(plain_name)) // _LETTERS_PER_SLIP))
        distance = slips(plain_word, plain_name, limit)
        if distance <= limit and min(len(plain_word), len(plain_name)) > distance:
            ranks.append((distance, number, name))
        elif _begins(plain_word, plain_name):
            ranks.append((_LONGEST + abs(len(plain_word) - len(plain_name)), number, name))
    return tuple(name for _, _, name in sorted(ranks)[:most])


def nearest(word: str, names: Iterable[str]) -> str:
    """Return the one of ``names`` that ``word`` stands for most likely; empty if it is like none of them."""
    return next(iter(near_names(word, names)), "")


def did_you_mean(word: str, names: Iterable[str], *, otherwise: str = "", prefix: str = "", most: int = 1) -> str:
    """Return the hint for a name that does not exist; ``prefix`` is what the names begin with where they are typed."""
    near = [f"'{prefix}{name}'" for name in near_names(word, names, most=most)]
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def _begins(word: str, name: str) -> bool:
    short, long = sorted((word, name), key=len)
    return len(short) >= _LEAST_COMMON and (long.startswith(short) or f"_{short}" in long)


def _plain(word: str) -> str:
    return word.casefold().replace("-", "_").replace(" ", "_")
