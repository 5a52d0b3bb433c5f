"""Which functions of the program refer to which others, read from the source: enough to see who may ask a model."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import skillgit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(skillgit.__file__).parent
Place = tuple[str, str]
"""A module and a name on its top level."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


class _References(ast.NodeVisitor):
    """The names that run when a definition does; annotations only tell types."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.attributes.add(node.attr)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        del node

    def _function(self, node: Function) -> None:
        for part in (*node.decorator_list, node.args, *node.body):
            self.visit(part)

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815 - ast calls them


def _imports(tree: ast.AST) -> Iterator[tuple[str, Place]]:
    """Yield the local name of everything that is imported anywhere at run time, and what it is."""
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typing:
            for alias in node.names:
                yield alias.asname or alias.name, (node.module, alias.name)


@cache
def _modules() -> Mapping[str, ast.Module]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = (*path.relative_to(ROOT.parent).with_suffix("").parts,)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


@cache
def graph() -> tuple[Mapping[Place, set[Place]], Mapping[Place, set[str]]]:
    """Return each definition with what it refers to, and with the attributes that it asks for."""
    edges: dict[Place, set[Place]] = defaultdict(set)
    attributes: dict[Place, set[str]] = {}
    modules = _modules()
    for module, tree in modules.items():
        imported = dict(_imports(tree))
        for name, place in imported.items():
            edges[module, name].add(place)
        for node in tree.body:
            if not isinstance(node, Function | ast.ClassDef):
                continue
            seen = _References()
            seen.visit(node)
            here = (module, node.name)
            attributes[here] = seen.attributes
            for name in seen.names:
                edges[here].add(imported.get(name, (module, name)))
                # `from package import module`, then `module.name`
                inside = ".".join(imported.get(name, ("", "")))
                if inside in modules:
                    edges[here] |= {(inside, attribute) for attribute in seen.attributes}
    return edges, attributes


def reaching(ends: set[Place]) -> set[Place]:
    """Return every definition from which one of ``ends`` can be reached."""
    edges, _ = graph()
    back: dict[Place, set[Place]] = defaultdict(set)
    for start, targets in edges.items():
        for target in targets:
            back[target].add(start)
    found, left = set(ends), list(ends)
    while left:
        for place in back[left.pop()] - found:
            found.add(place)
            left.append(place)
    return found


def asking() -> set[Place]:
    """Return the definitions that ask models themselves: whoever makes the door, or tries a route past it."""
    _, attributes = graph()
    past = {
        place
        for place, names in attributes.items()
        if names & {"attempt", "complete"} and place[0].startswith(("skillgit.app.", "skillgit.engine."))
    }
    return past | {("skillgit.calls.client", "Calls")}
