from __future__ import annotations

from importlib import import_module

import pytest

from skillgit import testing


@pytest.mark.parametrize(
    ("module", "name"), [("plugin", "check_backend"), ("plugin", "check_environment"), ("strategies", "check_strategy")]
)
def test_the_former_path_of_a_test_kit_says_where_it_is(module, name):
    with pytest.raises(ImportError, match=rf"from skillgit\.testing import {name}$"):
        getattr(import_module(f"skillgit.{module}.conformance"), name)
    assert getattr(testing, name).__module__.startswith("skillgit.testing.")
