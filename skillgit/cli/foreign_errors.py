"""Errors of other libraries that are no bugs of ours, in a sentence that helps."""

from __future__ import annotations

import errno
import sys

from skillgit.errors import ConflictError, HistoryError, SkillgitError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SAID = ("no space left on device", "disk is full", "disk quota exceeded")


def explained(error: Exception) -> SkillgitError | None:
    """Return what ``error`` means to the user; None if it can only be a bug."""
    said = " ".join(str(error).split())
    if (isinstance(error, OSError) and error.errno in _FULL) or any(words in said.lower() for words in _SAID):
        return ConflictError(f"the disk is full: {said}", hint="free some space; what is recorded is not lost")
    if isinstance(error, OSError) and error.filename is not None:
        return ConflictError(f"{error.filename}: {error.strerror}", hint=f"ls -ld {error.filename}")
    # loaded if it raised anything
    git = sys.modules.get("pygit2")
    if git is not None and isinstance(error, git.GitError):
        return HistoryError(f"git's objects cannot be read: {said}", hint="skillgit fsck --repair")
    return None
