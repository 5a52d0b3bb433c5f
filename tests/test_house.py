"""The figures of :mod:`house` keep to their limits."""

from __future__ import annotations

import pytest
from house import FIGURES


@pytest.mark.parametrize("name", FIGURES)
def test_the_source_is_built_as_it_was_or_better(name):
    measure, limit, _ = FIGURES[name]
    assert measure() <= limit
