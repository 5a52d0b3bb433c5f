"""The figures of :mod:`house` keep to their limits."""

from __future__ import annotations

from house import FIGURES


def test_the_source_is_built_as_it_was_or_better():
    values = {name: measure() for name, (measure, _, _) in FIGURES.items()}
    assert {name: value for name, value in values.items() if value > FIGURES[name][1]} == {}
