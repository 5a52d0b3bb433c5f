"""How far the target of a world keeps to rules, and how often its optimizer errs.

``recorded`` is fitted to two recorded runs of the task "archive sections": Qwen2.5-Coder 1.5B at temperature 0, with a
capable optimizer, 40 prompts of the optimizer with their answers. A pair is a merged edit and a train item that it was
written for, of which a later rollout with the edit in the text is known. Of 55 pairs 22 were solved in the run without
the leak lint; the run with it has 15 pairs, of which 2 were solved. Of the 14 edits in a pair, 6 solved none of their
items. ``plain`` is the world before there were recorded runs: a rule that is stated is kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

WORLD_FIT = "SEARCH_WORLD_FIT"
"""The variable that names the fit of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What differs between worlds.

    Attributes:
        ignored: Share of the items which need a rule where the target ignores it though the skill states it.
        errs: How likely the optimizer writes a line about a cause that it did not understand.
    """

    ignored: float
    errs: float


FITS = {"recorded": Fit(ignored=0.60, errs=0.25), "plain": Fit(ignored=0.0, errs=0.6)}
RECORDED, PLAIN = FITS["recorded"], FITS["plain"]
USELESS = 6 / 14
"""Share of merged edits that solve none of the items that they were written for, in the recorded runs."""


def chosen() -> Fit:
    """Return the fit of this process."""
    return FITS[os.environ.get(WORLD_FIT, "recorded")]
