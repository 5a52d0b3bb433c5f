"""Further conditions of tests that take long: ``make soak`` runs them, ``make test`` leaves them out.

``make soak`` also tries every property with more examples than ``make test`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.mark.structures import ParameterSet


def examples(times: float) -> settings:
    """Return how many examples a property is tried with that is worth so many times the usual number."""
    return settings(max_examples=round(times * settings().max_examples))


def sampled(values: Iterable[object], every: int) -> list[object]:
    """Return values of one parameter, of which ``make test`` tries each ``every``-th, the first one included."""
    return [value if number % every == 0 else soak(value) for number, value in enumerate(values)]


def sampled_rows(rows: Iterable[tuple[object, ...]], every: int) -> list[object]:
    """Return sets of several parameters, of which ``make test`` tries each ``every``-th, the first one included."""
    return [row if number % every == 0 else soak(*row) for number, row in enumerate(rows)]


def soak(*values: object) -> ParameterSet:
    """Return a set of parameters that is tried by ``make soak`` only."""
    return pytest.param(*values, marks=pytest.mark.soak)
