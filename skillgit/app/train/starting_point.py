"""Where a new run begins: on which commit, with which skill folder, with which text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.skill_format.seed import normalise, read_seed
from skillgit.app.workspace.workspace import open_workspace
from skillgit.errors import RepositoryNotFoundError, RevisionNotFoundError, SkillError
from skillgit.store import refs
from skillgit.store.history_reader import skill_at
from skillgit.store.main_branch import skills_at

if TYPE_CHECKING:
    from skillgit.app.setup.config.resolved import ResolvedConfig
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.skill import Skill
    from skillgit.plugin.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a run's first commit is made of.

    Attributes:
        skill: Version 0.
        fork_of: ``<run>/v<N>`` if the parent is a version of another run.
    """

    commit: str
    skill_path: str
    skill: Skill
    fork_of: str = ""


def find_beginning(
    workspace: Workspace, config: ResolvedConfig, environment: Environment, start: str | None
) -> Beginning:
    """Return where a new run begins.

    ``start`` goes before ``env.skill_init``, that before the skill on ``main``, and that before the environment's own
    seed.

    Raises:
        RevisionNotFoundError: There is no such revision, or no ``main``.
        SkillError: It is not clear which of several skills is meant, or the skill is not valid.
    """
    if start is not None:
        return _from_revision(workspace, environment, start)
    commit = workspace.repo.tip(refs.MAIN)
    if commit is None:
        raise RevisionNotFoundError("the repository has no branch main to start from", hint="skillgit init")
    skill_init = config.values.env.skill_init
    if skill_init:
        skill = read_seed(Path(skill_init))
        return Beginning(commit=commit, skill_path=f"skills/{skill.name}", skill=skill)
    path = _only_skill(workspace, environment, commit)
    if path is None:
        skill = normalise(environment.seed_skill())
        return Beginning(commit=commit, skill_path=f"skills/{skill.name}", skill=skill)
    return Beginning(commit=commit, skill_path=path, skill=normalise(skill_at(workspace.repo, commit, path)))


def first_skill(context: Context, config: ResolvedConfig, environment: Environment) -> Skill:
    """Return the skill that a new run would start with, in a repository or outside of one.

    Raises:
        SkillError: It is not clear which of several skills is meant, or the skill is not valid.
    """
    try:
        with open_workspace(context) as workspace:
            return find_beginning(workspace, config, environment, None).skill
    except RepositoryNotFoundError:
        path = config.values.env.skill_init
        return read_seed(Path(path)) if path else normalise(environment.seed_skill())


def _from_revision(workspace: Workspace, environment: Environment, start: str) -> Beginning:
    from skillgit.app.workspace.revision import resolve_in  # noqa: PLC0415 - most runs start from main, and a server waits

    resolution = resolve_in(workspace, start)
    row = resolution.row
    if row is not None and row.version is not None:
        path = workspace.index.skill_path(row.run)
        skill = skill_at(workspace.repo, resolution.commit, path)
        return Beginning(commit=resolution.commit, skill_path=path, skill=skill, fork_of=str(row.address))
    skill_path = _only_skill(workspace, environment, resolution.commit)
    if skill_path is None:
        raise SkillError(f"there is no skill at {start}", hint="skills are in skills/<name>/SKILL.md")
    return Beginning(
        commit=resolution.commit,
        skill_path=skill_path,
        skill=normalise(skill_at(workspace.repo, resolution.commit, skill_path)),
    )


def _only_skill(workspace: Workspace, environment: Environment, commit: str) -> str | None:
    """Return the skill folder that is meant: the only one, or the one that bears the environment's name."""
    paths = skills_at(workspace.repo, commit)
    if len(paths) <= 1:
        return paths[0] if paths else None
    name = environment.info.name
    matching = [path for path in paths if path.rpartition("/")[2] == name]
    if matching:
        return matching[0]
    raise SkillError(
        f"the repository has {len(paths)} skills and none of them is called {name}",
        hint=f"choose one with -o env.skill_init={paths[0]}",
    )
