from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit_envs.alfworld.engine import ExpressionError, compiled


@dataclass
class Entity:
    name: str
    indefinite: str = "a"
    id: str = "mug_bar_1"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("r.name", "mug 1"),
        ("r.indefinite + ' ' + r.name", "a mug 1"),
        (" r.name or r.id ", "mug 1"),
        ("bare.name or bare.id", "mug_bar_1"),
        ("'on'", "on"),
    ],
)
def test_what_grammars_say_is_evaluated(expression, text):
    assert compiled(expression)({"r": Entity("mug 1"), "bare": Entity("")}) == text


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "r.__class__",
        "r.name.upper",
        "r.name.upper()",
        "[r for r in ()]",
        "(lambda: 1)()",
        "r['name']",
        "1 + 1",
        "f'{r.name}'",
        "r.name * 9",
        "r.name if r.id else r.name",
        "import os",
        "",
    ],
)
def test_anything_else_is_refused(expression):
    with pytest.raises(ExpressionError):
        compiled(expression)


@given(st.text(alphabet="r.name_id or+'()[]1", max_size=24))
def test_whatever_is_understood_has_a_text_as_its_value(expression):
    try:
        evaluate = compiled(expression)
    except ExpressionError:
        return
    known = Entity("mug 1")
    try:
        value = evaluate({"r": known})
    except (KeyError, TypeError):  # another variable, or an entity added to a text
        return
    assert value is known or isinstance(value, str)
