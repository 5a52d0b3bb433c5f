"""How rows are checked before they stand in a task file: by the environment that will read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from skillgit.errors import UsageError
from skillgit.plugin.registry import load_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillgit.app.context import Context
    from skillgit.domain.trajectory import Item

ENVIRONMENT = "tasks"


@runtime_checkable
class ReadsTasks(Protocol):
    """An environment that reads tasks from rows."""

    def task(self, where: str, row: Mapping[str, object], path: Path) -> Item:
        """Return the item that ``row`` of the file ``path`` stands for, be it a draft or not.

        Raises:
            DataError: It is no task; the message begins with ``where``.
        """
        ...


def reader_of_tasks(context: Context) -> ReadsTasks:
    """Return the environment ``tasks``.

    Raises:
        UsageError: What is installed under this name reads no tasks.
    """
    found = load_environment(ENVIRONMENT, context.directory)
    environment = found({option.name: option.default for option in found.info.options}, context.directory)
    if not isinstance(environment, ReadsTasks):
        raise UsageError(f"the environment '{ENVIRONMENT}' that is installed reads no task files", hint="remove it")
    return environment
