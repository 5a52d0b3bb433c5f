"""Collects every hint of the program with a command, an option or a key in it, from its source."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import skillgit

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(skillgit.__file__).parent.parent
_PACKAGES = ("skillgit", "envs/skillgit_envs", "backends/skillgit_backends")
_TYPED = re.compile(r"\bskillgit [a-z]|(?:^|[\s:;,('])(?:--[a-z]|-[A-Za-z] )|\bgit [a-z]")
_NAMES = re.compile(r"(?:^|_)hint|HINT|^NAME_ONE$|^START$|^BRING$")


@cache
def hints() -> dict[str, str]:
    """Return every hint that can be typed, with ``{}`` for what is put in, and the file that it is in."""
    collected: dict[str, str] = {}
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            in_verbs = path.parent == ROOT / "skillgit" / "verbs" and path.stem != "command_line"
            for text in _of_file(ast.parse(path.read_text(encoding="utf-8")), in_verbs=in_verbs):
                if _TYPED.search(text):
                    collected.setdefault(text, str(path.relative_to(ROOT)))
    return collected


def _of_file(tree: ast.Module, *, in_verbs: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(keywords=keywords):
                for keyword in keywords:
                    if keyword.arg in {"hint", "instead", "otherwise"}:
                        yield from _texts(keyword.value)
                yield from _said(node)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _NAMES.search(name):
                yield from _texts(value)
            case ast.Tuple(elts=[_, hint]) if in_verbs:  # a note of an answer: a sentence and its hint
                yield from _texts(hint)
            case ast.FunctionDef(name=name) if _NAMES.search(name):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield from _texts(inner.value)


def _said(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "hint" and call.args:
        yield from _texts(call.args[0])


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may be, each whole."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body)
            yield from _texts(orelse)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _texts(value)
        case ast.Dict(values=values):
            for value in values:
                yield from _texts(value)


def pattern(template: str) -> re.Pattern[str]:
    """Return what matches the hints that ``template`` becomes."""
    return re.compile(".*?".join(map(re.escape, template.split("{}"))), re.DOTALL)


def commands_in(template: str) -> Iterator[list[str]]:
    """Yield the words after each ``skillgit`` of a hint, up to the next mark."""
    for rest in re.split(r"\bskillgit (?=[a-z-])", template)[1:]:
        yield re.split(r"[;,:()`]|\. |$", rest, maxsplit=1)[0].replace("'", " ").split()
