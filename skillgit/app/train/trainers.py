"""Trainings as processes of their own: started from screens and pages, and found again when those are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.processes import DetachedCommand, detached

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.app.workspace.context import Context


def start_training(context: Context, words: Sequence[str], *, options: Sequence[str] = ()) -> DetachedCommand:
    """Start ``skillgit WORDS``, which trains; neither the end of this process nor a closed terminal ends it."""
    options = ("-C", str(context.directory), *options)
    return DetachedCommand.start(_folder(context), words, context.environ, began=context.clock(), options=options)


def trainings(context: Context) -> tuple[DetachedCommand, ...]:
    """Return the trainings that were started so, the newest first."""
    return detached(_folder(context))


def _folder(context: Context) -> Path:
    from skillgit.store.repo import Repo  # noqa: PLC0415 - the screens name this module long before they train

    return Repo.discover(context.directory).private_dir / "trainings"
