"""Which models a scorer of Inspect's asks for, by its code, so that one that is not played is named before a call.

It finds what is certain: Inspect's own graders, and ``get_model`` with a role that is written there, in the scorer and
in the functions that it uses. A role with a default, a model by its name, and a role in a variable are left to the run.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

_GRADERS = ("model_graded_qa", "model_graded_fact")
_OWN = "inspect_ai"


def is_grader(scorer: object) -> bool:
    """Say whether ``scorer`` is one of Inspect's that ask a grader."""
    return _registered(scorer) in _GRADERS


def asked_roles(scorer: object) -> set[str]:
    """Return the roles that ``scorer`` asks for; an empty one is that of the model that is scored."""
    return set(_roles(scorer, set()))


def _roles(thing: object, seen: set[int]) -> Iterator[str]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if is_grader(thing):
        arguments = getattr(thing, "__registry_params__", {})  # what it was made with
        if arguments.get("model") is None:
            role = arguments.get("model_role", "grader")
            yield from [str(role or "")] if isinstance(role, str | None) else []
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from _roles(part, seen)
    elif isinstance(thing, FunctionType) and not thing.__module__.startswith(_OWN):
        names = set(_names(thing.__code__))
        yield from _written_roles(thing) if names & {"get_model"} else ()
        for cell in thing.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # it is filled later
                continue
            yield from _roles(content, seen)
        for name in sorted(names & thing.__globals__.keys()):
            yield from _roles(thing.__globals__[name], seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _written_roles(function: FunctionType) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("get_model") or node.args:
            continue
        words = {keyword.arg: keyword.value for keyword in node.keywords}
        role: Any = words.get("role", ast.Constant(""))
        if not {"model", "default", None} & words.keys() and isinstance(role, ast.Constant):
            yield str(role.value or "")


def _registered(thing: object) -> str:
    from inspect_ai.util import registry_info  # noqa: PLC0415 - of the extra

    try:
        return str(registry_info(thing).name).rpartition("/")[2]
    except (ValueError, TypeError):
        return ""
