"""The tasks of a skill, ``tasks/NAME.jsonl`` of its repository, as the data of a configuration that names none."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.app.setup.config.load import load_config
from skillgit.app.workspace.skill_choice import name_of
from skillgit.app.workspace.workspace import open_workspace
from skillgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.app.workspace.context import Context

TASKS = "tasks"
"""The folder of a repository with the reviewed tasks of its skills."""
USUAL = "tasks/default"
"""The configuration that trains on them."""
_ENVIRONMENT = "tasks"


def reviewed_tasks(root: Path, skill: str) -> Path:
    """Return the file of reviewed tasks of ``skill`` in the work tree ``root``."""
    return root / TASKS / f"{skill}.jsonl"


def own_tasks(root: Path, skill: str) -> Path | None:
    """Return the file of reviewed tasks of ``skill``; None without one. A link may lead to other people's files."""
    file = reviewed_tasks(root, skill)
    return file if file.is_file() and not file.is_symlink() else None


def tasks_of_skill(context: Context) -> Path:
    """Return the file of reviewed tasks of the skill that ``context`` names; it may be missing."""
    with open_workspace(context) as workspace:
        if workspace.repo.workdir is None:
            raise UsageError("a bare repository has no tasks", hint="clone it")
        file = reviewed_tasks(workspace.repo.workdir.resolve(), name_of(workspace.skill))
        file.parent.mkdir(exist_ok=True)
        return file


def on_own_tasks(
    context: Context, config: str, overrides: Sequence[str], skill: str, root: Path | None
) -> tuple[str, ...]:
    """Return ``overrides`` with the reviewed tasks of ``skill`` where the configuration names no data.

    A NotFoundError if it needs them and there are none below ``root``, the top of the work tree.
    """
    env = load_config(context, config, tuple(overrides)).values.env
    if env.name != _ENVIRONMENT or env.data_path or env.split_dir:
        return tuple(overrides)
    file = own_tasks(root.resolve(), skill) if root is not None else None
    if file is None:
        hint = f"skillgit tasks add {quote(f'{TASKS}/{skill}.jsonl')}, or -o env.data_path=FILE"
        raise NotFoundError(f"{skill} has no reviewed tasks", hint=hint)
    return (f"env.data_path={os.path.relpath(file, context.directory.resolve())}", *overrides)
