"""The examples in docstrings are true."""

from __future__ import annotations

import ast
import doctest
import importlib

import pytest
from house import modules

FINDER = doctest.DocTestFinder(exclude_empty=True)
MODULES = [
    name
    for name, tree in modules().items()
    if any(
        ">>>" in node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
]


@pytest.mark.parametrize("name", MODULES)
def test_an_example_prints_what_it_says(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    for example in FINDER.find(module, name):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


def test_what_people_meet_first_has_an_example():
    documented = [text for name in MODULES for text in FINDER.find(importlib.import_module(name), name)]
    assert sum(bool(text.examples) for text in documented) >= 20
