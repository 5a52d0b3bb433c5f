"""The plug-ins of the guide keep every promise, and the tests that the guide shows find that out."""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skillgit.plugin.backend import Usage
from skillgit.plugin.conformance import ConformanceError, check_backend

GUIDE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")


@pytest.fixture
def guide(tmp_path, monkeypatch):
    """Write the code of the guide to files that can be imported, and return the one with the tests."""
    for name, code in zip(
        ("sums", "echo", "policy", "shown_tests"),
        re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL),
        strict=True,
    ):
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("shown_tests")
    for name in ("sums", "echo", "policy", "shown_tests"):
        sys.modules.pop(name, None)


def test_the_tests_of_the_guide_pass(guide):
    guide.test_echo()
    guide.test_sums()


def test_an_error_is_told_as_the_guide_shows_it(guide):
    class Echo(guide.Echo):
        def __init__(self, settings):
            pass

        async def complete(self, request):
            return replace(await super().complete(request), usage=Usage(tokens_in=3, tokens_out=0))

    with pytest.raises(ConformanceError) as caught:
        check_backend(Echo, model="echo", echoes=True)
    assert f"```\n{caught.value}\n```" in GUIDE
