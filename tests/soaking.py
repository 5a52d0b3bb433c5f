"""Further conditions of tests that take long: ``make soak`` runs them, ``make test`` leaves them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet


def soak(*values: object) -> ParameterSet:
    """Return a set of parameters that is tried by ``make soak`` only."""
    return pytest.param(*values, marks=pytest.mark.soak)
