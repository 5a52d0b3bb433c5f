"""How the source is built, as figures with limits: ``python tests/house.py`` prints them, ``test_house.py`` holds them.

A limit is what was reached. It goes down, towards the goal beside it; only the lines of the product go up again, by
what a new capability needs.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
ROOTS = {"skillgit": ROOT, "skillgit_envs": ROOT / "envs", "skillgit_backends": ROOT / "backends"}
PRONOUNS = frozenset(
    {"it", "one", "ones", "other", "others", "place", "places", "that", "these", "this", "those", "what"}
)
IRREGULAR = frozenset(
    {
        "begun",
        "broken",
        "brought",
        "built",
        "chosen",
        "done",
        "drawn",
        "fallen",
        "felt",
        "found",
        "given",
        "gone",
        "heard",
        "held",
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "meant",
        "said",
        "seen",
        "sent",
        "shown",
        "spent",
        "taken",
        "thought",
        "told",
        "written",
    }
)
NOUNS = frozenset({"bed", "deed", "embed", "feed", "need", "red", "seed", "shed", "speed", "weed"})
ADDRESS = re.compile(r"""(?<![\w{}\\])(v\{[^}:]*\}|[vrsmeib]\(?(\\d|\[0-9\])[+{])""")
"""An event's address, as text is made of it or a pattern finds it: ``v{number}``, ``r(\\d+)``."""


class Figure(NamedTuple):
    """A row of the table: what is counted, its value, the most that it may be, and the most that it shall be."""

    name: str
    value: float
    limit: float
    goal: float


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


@cache
def modules() -> dict[str, ast.Module]:
    """Return every module of the product by its dotted name."""
    found = {}
    for package, folder in ROOTS.items():
        for path in sorted((folder / package).rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = parsed(path)
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of the product that a module imports, wherever it does."""
    own = next(name for name, module in modules().items() if module is tree)
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            package = own.rsplit(".", node.level)[0] if node.level else ""  # no package here imports relatively itself
            source = ".".join(filter(None, (package, node.module)))
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield name if name in modules() else source


def import_cycles() -> list[list[str]]:
    """Return the modules that import each other, circle by circle; imports for types and those on use count too."""
    graph = {name: {*imported(tree)} - {name} for name, tree in modules().items()}
    while leaves := {name for name, names in graph.items() if not names & graph.keys()}:
        graph = {name: names for name, names in graph.items() if name not in leaves}

    def reached(start: str) -> set[str]:
        names, waiting = set[str](), [start]
        while waiting:
            new = graph[waiting.pop()] & graph.keys() - names
            names |= new
            waiting += new
        return names

    ways = {name: reached(name) for name in graph}
    circles = {tuple(sorted(other for other in ways[name] if name in ways[other])) for name in graph}
    return [list(circle) for circle in sorted(circles - {()})]


def loose_files() -> int:
    """Count the modules of ``app`` that are in no room."""
    return sum(path.name != "__init__.py" for path in (ROOT / "skillgit" / "app").glob("*.py"))


def imports_of_cli() -> int:
    """Count the modules of the command line that screens and pages import."""
    surfaces = ("skillgit.tui.", "skillgit.report.")
    users = [tree for name, tree in modules().items() if name.startswith(surfaces)]
    return sum(name.startswith("skillgit.cli") for tree in users for name in set(imported(tree)))


def shared_class_names() -> int:
    """Count the names that several public classes have."""
    names = Counter(
        node.name for tree in modules().values() for node in nodes(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )  # fmt: skip
    return sum(count > 1 for count in names.values())


def variables() -> Iterator[str]:
    """Yield the name of every variable and parameter, as often as it is bound."""
    for tree in modules().values():
        for node in nodes(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.arg):
                yield node.arg


def says_no_noun(name: str) -> bool:
    """Say whether a variable is named by a pronoun or a participle and not by what it holds."""
    word = name.strip("_")
    return word in PRONOUNS or word in IRREGULAR or (word.endswith("ed") and "_" not in word and word not in NOUNS)


def nameless_variables() -> float:
    """Return the share of variables that are named by a pronoun or a participle, in percent; types are none."""
    names = [name for name in variables() if name.strip("_") not in {"", "self", "cls"} and not name[0].isupper()]
    return 100 * sum(map(says_no_noun, names)) / len(names)


def address_places() -> int:
    """Count the modules that put together or take apart an address of an event."""
    return sum(
        any(
            (isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)))
            and ADDRESS.search(ast.unparse(node))
            for node in nodes(tree)
        )
        for tree in modules().values()
    )


def product_lines() -> int:
    """Count the lines of the product, blank lines and comments included."""
    return sum(len(path.read_text(encoding="utf-8").splitlines())
               for package, folder in ROOTS.items() for path in (folder / package).rglob("*.py"))  # fmt: skip


def lines_of_tests() -> int:
    """Count the lines of the tests and of what they share, blank lines and comments included."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "tests").rglob("*.py"))


def document_pages() -> list[Path]:
    return sorted((ROOT / "docs").glob("*.md"))


def document_words() -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in document_pages())


FIGURES: dict[str, tuple[Callable[[], float], float, float]] = {
    "loose files in app": (loose_files, 0, 0),
    "imports of cli in tui and report": (imports_of_cli, 0, 0),
    "class names used twice": (shared_class_names, 3, 15),
    "pronoun and participle variables, %": (nameless_variables, 1, 1),
    "places that format or parse an address": (address_places, 1, 1),
    "product lines": (product_lines, 117_600, 64_000),
    "test lines": (lines_of_tests, 123_900, 60_000),
    "pages of documents": (lambda: len(document_pages()), 14, 14),
    "words of documents": (document_words, 40_000, 40_000),
    "lines of the README": (lambda: len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()), 100, 100),
}


def table() -> list[Figure]:
    """Return the table."""
    return [Figure(name, measure(), limit, goal) for name, (measure, limit, goal) in FIGURES.items()]


if __name__ == "__main__":
    for figure in table():
        print(f"{figure.name:<42}{figure.value:>10,.1f}{figure.limit:>10,.1f}{figure.goal:>10,.0f}")  # noqa: T201 - a program
