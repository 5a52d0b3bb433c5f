"""Prose is plain English: no document, docstring or comment has a turn that reads as translated."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest
from house import ROOTS

ROOT = Path(__file__).parents[1]
TURNS = re.compile(
    r"\b(?:somebody|what (?:became|becomes) of|how manieth|whatever befell|hereupon|in the making|"
    r"tells? (?:whether|what|which|how|why|where|when|nothing)|"
    r"stands (?:in|there|at|beside|between|behind))\b(?! for\b)",
    flags=re.IGNORECASE,
)
IN_CODE = re.compile(
    r"\b(?:whoever|anew|mended|goes without|(?:is|are|be) told)\b"
    r"|(?<!there )\b(?:is|are|was|were) no (?!longer|more|fault)\w",
    flags=re.IGNORECASE,
)
PAGES = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
FILES = [path for package, folder in ROOTS.items() for path in (folder / package).rglob("*.py")]


def prose(source: str) -> str:
    """Return the docstrings and comments of a module."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, owners)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return "\n".join([*texts, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_has_a_turn_that_reads_as_translated(path):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert TURNS.findall(text) == []


@pytest.mark.parametrize("pattern", [TURNS, IN_CODE], ids=["pages too", "code"])
def test_no_docstring_or_comment_has_one(pattern):
    sources = {path.name: source for path in FILES if pattern.search(source := path.read_text(encoding="utf-8"))}
    turns = {name: pattern.findall(re.sub(r"`[^`\n]*`", "", prose(source))) for name, source in sources.items()}
    assert {name: found for name, found in turns.items() if found} == {}
