"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest
from house import ROOTS

FINDER = doctest.DocTestFinder(exclude_empty=True)
MODULES = [
    ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    for package, folder in ROOTS.items()
    for path in sorted((folder / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
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
