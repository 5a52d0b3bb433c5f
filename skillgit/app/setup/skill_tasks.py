"""The tasks of a skill, ``tasks/NAME.jsonl`` of its repository, as the data of a configuration that names none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.resolved import ResolvedConfig
from skillgit.app.workspace.skill_choice import name_of
from skillgit.app.workspace.skills_here import ADD, meant_skill, own_tasks, reviewed_tasks
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import NotFoundError, RepositoryNotFoundError, UsageError

TASKS_ENVIRONMENT = "tasks"
"""The environment whose items are the tasks of a skill."""


def tasks_of_skill(workspace: Workspace) -> Path:
    """Return the file of reviewed tasks of the skill that the context names, or of the only one; it may be missing."""
    if workspace.repo.workdir is None:
        raise UsageError("a bare repository has no tasks", hint="clone it")
    file = reviewed_tasks(workspace.repo.workdir.resolve(), name_of(_meant(workspace)))
    file.parent.mkdir(exist_ok=True)
    return file


def name_of_meant(workspace: Workspace) -> str:
    """Return the name of the skill that the context names, or of the only one of the repository."""
    return name_of(_meant(workspace))


def folder_of_meant(workspace: Workspace) -> Path:
    """Return the folder in the work tree of the skill that the context names, or of the only one of the repository."""
    return (workspace.repo.workdir or workspace.context.directory) / _meant(workspace)


def _meant(workspace: Workspace) -> str:
    path = meant_skill(workspace, TASKS_ENVIRONMENT)
    if not path:
        raise NotFoundError("the repository holds no skill", hint="skillgit init --skill PATH adds one")
    return path


def with_own_tasks(
    workspace: Workspace,
    config: ResolvedConfig,
    overrides: Sequence[str],
    find_skill: Callable[[], str],
    *,
    required: bool = False,
) -> tuple[str, ...]:
    """Return ``overrides`` with the reviewed tasks of a skill, where ``config``, loaded with them, wants these as data.

    It does if it is one for tasks and names no data. The skill is the one that the command names, else the one in the
    folder that ``find_skill`` returns. If it has no tasks, a NotFoundError where it is named or they are ``required``.
    """
    if not _wants_tasks(config, workspace.skill) or not (path := workspace.skill or find_skill()):
        return tuple(overrides)
    file = own_tasks(workspace.repo.workdir, name_of(path))
    if file is not None:
        return (f"env.data_path={os.path.relpath(file, workspace.context.directory.resolve())}", *overrides)
    if required or workspace.skill:
        hint = f"{ADD.format(f'--skill {quote(name_of(path))}')}, or -o env.data_path=FILE"
        raise NotFoundError(f"{name_of(path)} has no reviewed tasks", hint=hint)
    return tuple(overrides)


def _wants_tasks(config: ResolvedConfig, skill: str) -> bool:
    """Say whether ``config`` is one for tasks and names neither data nor, where ``skill`` is not named, a skill."""
    env = config.values.env
    return env.name == TASKS_ENVIRONMENT and not (env.data_path or env.split_dir or (env.skill_init and not skill))


def load_for_skill(
    workspace: Workspace, name: str, overrides: Sequence[str] = (), *, skill: str = ""
) -> ResolvedConfig:
    """Return the configuration ``name`` for one skill: where it names no data, they are the skill's reviewed tasks.

    The skill is the one that the context names, else that of the folder ``skill``, else the only one of the repository.
    Every command with a configuration for one skill loads it here, so that all of them mean what ``train`` means. A
    SkillError if it is not clear which skill is meant. Outside of a repository, a configuration is what it is.
    """
    config = load_config(workspace.context, name, overrides)
    if not workspace.context.skill and not _wants_tasks(config, ""):
        return config
    try:
        own = with_own_tasks(workspace, config, overrides, lambda: skill or meant_skill(workspace, TASKS_ENVIRONMENT))
    except RepositoryNotFoundError:
        if workspace.context.skill:
            raise
        return config
    return config if own == tuple(overrides) else load_config(workspace.context, name, own)
