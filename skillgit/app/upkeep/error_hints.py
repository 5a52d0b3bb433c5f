"""What an error means to the user, and what leads out of it."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError, HistoryError, SkillgitError
from skillgit.files import shortage
from skillgit.index import index_check
from skillgit.store.repo import REPAIR, Repo

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context


def explained(error: Exception, context: Context | None) -> SkillgitError | None:
    """Return what ``error``, raised in ``context``, means to the user; None if it can only be a bug.

    An index that is damaged is removed: the next command builds it again.
    """
    lack = shortage(error)
    if lack is not None:
        return lack
    if isinstance(error, OSError) and error.filename is not None:
        return ConflictError(f"{error.filename}: {error.strerror}", hint=f"ls -ld {error.filename}")
    # loaded if it raised anything
    git = sys.modules.get("pygit2")
    if git is not None and isinstance(error, git.GitError):
        error = HistoryError(f"git's objects cannot be read: {' '.join(str(error).split())}", hint=REPAIR)
    if isinstance(error, SkillgitError):
        if error.hint == REPAIR and context is not None:
            with suppress(SkillgitError):
                if Repo.discover(context.directory).is_partial:
                    error.hint = "git fetch --refetch --no-filter brings what this partial clone lacks"
        return error
    if context is not None and isinstance(error, index_check.OF_ROWS):
        with suppress(SkillgitError):
            return index_check.drop_damaged(Repo.discover(context.directory))
    return None
