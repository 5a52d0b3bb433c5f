"""``skillgit sql``: a query of the index that can only read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillgit.app.workspace import open_workspace
from skillgit.index.ask import Answer, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.context import Context


@contextmanager
def sql(context: Context, query: str) -> Iterator[Answer]:
    """Run ``query`` on the index; its rows can be read as long as the block lasts.

    Raises:
        UsageError: It is no query, it asks for something that is not there, or it would change something.
    """
    with open_workspace(context) as workspace, ask(workspace.index, query) as answer:
        yield answer
