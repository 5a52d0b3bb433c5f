"""Distinguish words from a random generator from words that people wrote."""

from __future__ import annotations

import re
from itertools import pairwise

_SIGNS = "abcdefghijklmnopqrstuvwxyz0^"
# How rare it is that the sign of a column follows that of a row, in logarithms: counted in the identifiers and words of
# the standard library of Python, with long words of a dozen languages. A digit is 0, a border within a word is ^.
_RARITY = """
7433764948533394923255665854 2656367834826636944638884842 3755368349346626945248996953 3664256828856747954648896941
4743555869844365623385645961 3655337829937727935448896942 4767175439746457933548898861 2776278839665726945358895962
4534454989734134843375959585 3765168947576634773737598962 4755165738856556863647597961 3664266829737736974447895972
2466277839754633874548987962 3733353749667546973255997972 5543755958533243924435469973 2765277549637734825347895862
6676867869935676644606799862 3755265839555536943456894972 4847267439556644673247795971 3756268429866736934558784961
4455355949933263933388989925 2647167829976645965698797953 2766367429667337934688779961 5646358749965763976288865911
5667576869944452963387587760 3867078639865737876568895652 4554449989989989988899939901 4434444547644443743445567743
""".split()  # noqa: SIM905 - a table
_STEPS = {
    first + second: int(_RARITY[row][column])
    for row, first in enumerate(_SIGNS)
    for column, second in enumerate(_SIGNS)
}
_RARE = 3.7
"""Of 1,000 random words 995 are rarer; of 1,000 long identifiers and paths, fewer than ten."""
_RARE_LETTERS = 4.2  # the same for words without a digit, which may be of any language
SHORTEST = 20
_FEWEST_SIGNS = 8
_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]")
_DIGIT = re.compile(r"[0-9]")


def is_random(word: str) -> bool:
    """Say whether a word of 20 characters or more looks as if a generator had made it; not for hex, as of commits."""
    if len(word) < SHORTEST or len(set(word)) < _FEWEST_SIGNS:
        return False
    if sum(ord(second) - ord(first) == 1 for first, second in pairwise(word)) > len(word) // 2:
        return False  # an alphabet
    limit = _RARE if _DIGIT.search(word) else _RARE_LETTERS
    return rarity(word) > limit


def rarity(word: str) -> float:
    """Return how rarely, on average, a sign of ``word`` follows the one before it."""
    signs = f"^{_DIGIT.sub('0', _BORDER.sub('^', word)).lower()}^"
    steps = [_STEPS[pair] for first, second in pairwise(signs) if (pair := first + second) in _STEPS]
    return sum(steps) / max(1, len(steps))
