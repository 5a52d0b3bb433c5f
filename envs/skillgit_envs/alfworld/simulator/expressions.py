"""Expressions in a game's grammar, evaluated without Python's ``eval``: a game file is data and not a program.

The grammars of ALFWorld use names, a few attributes, constant texts, ``+`` and ``or``. Nothing else is understood.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ATTRIBUTES = frozenset({"name", "id", "type", "definite", "indefinite", "adj", "noun", "desc"})
"""What an expression may ask of an entity."""


class ExpressionError(Exception):
    """An expression that is not understood, and therefore not evaluated."""


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return what evaluates ``expression`` with variables.

    Raises:
        ExpressionError: It is more than names, attributes, texts, ``+`` and ``or``.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ExpressionError(f"'{expression}' is no expression") from error
    return _compiled(tree.body, expression)


def _compiled(node: ast.expr, expression: str) -> Callable[[Mapping[str, Any]], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        value = node.value
        return lambda _: value
    if isinstance(node, ast.Name):
        name = node.id
        return lambda variables: variables[name]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in ATTRIBUTES:
        owner, attribute = node.value.id, node.attr
        return lambda variables: getattr(variables[owner], attribute)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        first, second = _compiled(node.left, expression), _compiled(node.right, expression)
        return lambda variables: first(variables) + second(variables)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        options = [_compiled(value, expression) for value in node.values]
        return lambda variables: next((result for option in options if (result := option(variables))), "")
    raise ExpressionError(f"'{expression}' is more than a game's grammar may say")
