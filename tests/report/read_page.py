"""Reads a page as strictly as the standard has it, and finds things on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import html5lib

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element


def parsed(content: str) -> Element:
    """Return the page; whatever the standard calls a parse error ends the test."""
    tree = html5lib.getTreeBuilder("etree")
    return html5lib.HTMLParser(strict=True, tree=tree, namespaceHTMLElements=False).parse(content)


def text(element: Element) -> str:
    """Return what is to be read in an element, on one line."""
    return " ".join(" ".join(element.itertext()).split())


def by_id(page: Element, name: str) -> Element:
    """Return the element with that id."""
    return next(element for element in page.iter() if element.get("id") == name)


def section(page: Element, name: str) -> Element:
    """Return the section that is headed by the element of that id."""
    return next(element for element in page.iter("section") if element.get("aria-labelledby") == name)


def rows(element: Element) -> Iterator[list[str]]:
    """Yield the cells of the rows in the bodies of the tables in an element."""
    for body in element.iter("tbody"):
        for row in body.iter("tr"):
            yield [text(cell) for cell in row]


def number(shown: str) -> float:
    """Return a score or a difference as it was before it was shown."""
    return float(shown.replace("\N{MINUS SIGN}", "-").strip("()≤ "))
