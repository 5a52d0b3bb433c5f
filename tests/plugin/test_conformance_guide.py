"""The plug-ins of the guide keep every promise, and the tests that the guide shows find that out."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace

import pytest
from documents import code, page

from skillgit.plugin.backend import Usage
from skillgit.testing import ConformanceError, check_backend

CODE = {"sums": "class Sums:", "echo": "class Echo:", "policy": "(Policy):", "shown_tests": "check_backend("}
"""The files of the guide, with words of each."""


@pytest.fixture
def guide(tmp_path, monkeypatch):
    """Write the code of the guide to files that can be imported, and return the one with the tests."""
    for name, words in CODE.items():
        (tmp_path / f"{name}.py").write_text(code("extending.md", words), encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("shown_tests")
    for name in CODE:
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
    assert f"```\n{caught.value}\n```" in page("extending.md")
