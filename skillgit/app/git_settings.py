"""What git's configuration says about this program."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.app.context import Context


def git_settings(context: Context, names: Iterable[str]) -> dict[str, str]:
    """Return those of ``names`` that git's configuration has a value for.

    Raises:
        RepositoryNotFoundError: There is no repository.
    """
    from skillgit.store.repo import Repo  # noqa: PLC0415 - screens that were given their settings need none

    repo = Repo.discover(context.directory)
    return {name: value for name in names if (value := repo.config(name))}
