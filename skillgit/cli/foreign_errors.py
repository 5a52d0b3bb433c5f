"""Errors of other libraries that are no bugs of ours, in a sentence that helps."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING

from skillgit.errors import ConflictError, HistoryError, SkillgitError

if TYPE_CHECKING:
    from skillgit.app.context import Context

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SAID = ("no space left on device", "disk is full", "disk quota exceeded")


def explained(error: Exception, context: Context | None) -> SkillgitError | None:
    """Return what ``error``, raised in ``context``, means to the user; None if it can only be a bug."""
    said = " ".join(str(error).split())
    if (isinstance(error, OSError) and error.errno in _FULL) or any(words in said.lower() for words in _SAID):
        return ConflictError(f"the disk is full: {said}", hint="free some space; what is recorded is not lost")
    if isinstance(error, OSError) and error.filename is not None:
        return ConflictError(f"{error.filename}: {error.strerror}", hint=f"ls -ld {error.filename}")
    # loaded if it raised anything
    git = sys.modules.get("pygit2")
    if git is not None and isinstance(error, git.GitError):
        return HistoryError(f"git's objects cannot be read: {said}", hint="skillgit fsck --repair")
    if context is None:
        return None
    from skillgit.app.reindex import drop_damaged  # noqa: PLC0415 - hardly ever needed

    return drop_damaged(context, error)
