from __future__ import annotations

import pytest

from skillgit.cli.session import wanted

XTERM = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("choice", "environ", "terminal", "expected"),
    [
        ("auto", XTERM, True, True),
        ("auto", XTERM, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {}, True, False),
        ("auto", XTERM | {"NO_COLOR": "1"}, True, False),
        ("auto", XTERM | {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"FORCE_COLOR": ""}, False, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", XTERM | {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_flag_then_no_color_then_force_then_terminal(choice, environ, terminal, expected):
    assert wanted(choice, environ, terminal=terminal) is expected
