"""The pages on which an answer stands, as an item tells them, cut out of documents that mark their pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit_envs.officeqa.corpus import Corpus

PAGE_CHARACTERS = 24_000
ALL_CHARACTERS = 80_000
_MARK = re.compile(r"^[-=]{3,} *PAGE +(\d+) *[-=]{3,}[ \t]*$", re.MULTILINE)
_KEYS = ("page", "pagenum", "page_id")


def pages_of(where: str, sources: Sequence[str], addresses: Sequence[str]) -> list[tuple[str, int]]:
    """Return document and page number of each place that ``addresses`` lead to, in their order.

    There is one address for each document, or any number of them for a single one.

    Args:
        addresses: Addresses with a page number in their query, as ``?page=15``.

    Raises:
        DataError: Addresses and documents do not fit, or an address has no page.
    """
    documents = list(sources) * len(addresses) if len(sources) == 1 else list(sources)
    if not addresses or len(documents) != len(addresses):
        raise DataError(
            f"{where} has {len(addresses)} source_docs for {len(sources)} source_files",
            hint="env.oracle_pages needs one for each",
        )
    return [(document, _page(where, address)) for document, address in zip(documents, addresses, strict=True)]


def _page(where: str, address: str) -> int:
    query = parse_qs(urlsplit(address).query)
    number = next((query[key][0] for key in _KEYS if key in query), "")
    if not (number.isascii() and number.isdigit()):
        raise DataError(f"{where}: {address[:80]} names no page", hint="env.oracle_pages needs ?page=NUMBER")
    return int(number)


def page_text(where: str, corpus: Corpus, document: str, number: int) -> str:
    """Return the text of a page.

    Raises:
        DataError: The document marks no pages, or has no such page.
        EnvironmentFaultError: The document cannot be read.
    """
    pieces = _MARK.split(corpus.text(document))
    pages = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if str(number) not in pages:
        problem = f"has no page {number}" if pages else "does not mark its pages"
        raise DataError(
            f"{where}: {document} {problem}", hint="env.oracle_pages needs texts with lines like '--- PAGE 15 ---'"
        )
    return pages[str(number)].strip()


def oracle(where: str, corpus: Corpus, references: Sequence[tuple[str, int]]) -> str:
    """Return the pages ``references`` as the target reads them, each and all of them cut to their limits.

    Raises:
        DataError: A page is not there.
        EnvironmentFaultError: A document cannot be read.
    """
    sections, budget = [], ALL_CHARACTERS
    for document, number in dict.fromkeys(references):
        text = page_text(where, corpus, document, number)[: min(PAGE_CHARACTERS, budget)]
        budget -= len(text)
        if text:
            sections.append(f'<page document="{document}" number="{number}">\n{text}\n</page>')
    return "\n\n".join(sections)
