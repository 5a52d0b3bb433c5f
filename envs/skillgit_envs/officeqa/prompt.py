"""What the target reads of an item: its documents, if it is told them, the pages of the answer, and the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from skillgit_envs.officeqa.pages import oracle, pages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.trajectory import Item
    from skillgit_envs.officeqa.corpus import Corpus


def question(item: Item, *, documents: Sequence[str] = (), pages: str = "") -> str:
    """Return the task of ``item``.

    Args:
        item: The item.
        documents: The documents that the target may look into, if they are to be named.
        pages: The pages on which the answer stands, if they are given away.
    """
    listed = ("<documents>", *documents, "</documents>") if documents else ()
    sections = ("\n".join(listed), pages, f"<question>\n{item.content['question']}\n</question>")
    return "\n\n".join(section for section in sections if section)


def sources(item: Item) -> tuple[str, ...]:
    """Return the documents that ``item`` names."""
    return tuple(cast("Sequence[str]", item.content["source_files"]))


def oracle_pages(item: Item, corpus: Corpus) -> str:
    """Return the pages on which the answer of ``item`` stands.

    Raises:
        DataError: The item does not tell them, or they are not there.
        EnvironmentFaultError: A document cannot be read.
    """
    where = f"item {item.id}"
    addresses = cast("Sequence[str]", item.content["source_docs"])
    return oracle(where, corpus, pages_of(where, sources(item), addresses))
