"""The edit budget as a function of the step index."""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from skillgit.engine.settings import OptimizerSettings


def edit_budget(settings: OptimizerSettings, step: int, steps: int) -> int:
    """Return the most edits that step ``step`` of ``steps`` may make.

    With M and m the largest and smallest budget and t = step / steps:
    constant M; linear M + (m - M) t; cosine m + (M - m) (1 + cos(pi t)) / 2 (Loshchilov and Hutter, arXiv 1608.03983,
    without restarts), rounded half to even and never under m. A run of one step has the budget M.

    Args:
        step: 1-based.
    """
    largest, smallest = settings.learning_rate, settings.min_learning_rate
    if steps <= 1:
        return largest
    share = min(step, steps) / steps
    match settings.lr_scheduler:
        case "constant" | "autonomous":
            # With a schedule that is the optimizer's, this is what holds where its answer cannot be used.
            return largest
        case "linear":
            return max(smallest, round(largest + (smallest - largest) * share))
        case "cosine":
            return max(smallest, round(smallest + 0.5 * (largest - smallest) * (1 + cos(pi * share))))
        case other:
            assert_never(other)
