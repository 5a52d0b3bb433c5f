"""``skillgit init``: a repository whose ``main`` holds the seed skill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.skill_format import seed
from skillgit.app.skill_format.frontmatter import skill_name
from skillgit.errors import RepositoryNotFoundError, UsageError
from skillgit.index.refresh import open_index
from skillgit.store import main_branch, refs
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.app.workspace.context import Context
    from skillgit.domain.skill import Skill

SKILLS = "skills"
"""The folder of a repository that holds its skills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """What ``init`` left behind.

    Attributes:
        commit: The commit that ``main`` points at.
        added: Whether the skill was added now; otherwise ``main`` had it already.
    """

    path: Path
    skill_path: str
    commit: str
    created: bool
    added: bool


def init(context: Context, directory: Path | None, skill: Path | None, environment: str | None = None) -> Initialised:
    """Make ``directory`` a repository whose ``main`` holds a seed skill, or add the skill to the one that is there.

    Nothing is overwritten: a skill that ``main`` has already stays as it is, and so does everything uncommitted.

    Args:
        context: Where relative paths begin.
        directory: The folder, which is made if it is missing; None for the context's folder.
        skill: The seed: a skill folder, a ``SKILL.md`` or another Markdown file.
        environment: The environment whose seed to take if ``skill`` is None. Without either, a repository that has no
            skill gets one without rules.

    Raises:
        RepositoryNotFoundError: ``directory`` is a repository that skillgit cannot use.
    """
    if skill is not None and environment is not None:
        raise UsageError("a skill and an environment both name a seed", hint="give one of them")
    folder = (context.directory / directory if directory is not None else context.directory).resolve()
    first = _seed(context, skill, environment)
    repo, is_new = _open(folder)
    if first is None:
        there = main_branch.skills_on_main(repo)
        if there:
            commit = repo.tip(refs.MAIN) or ""
            return Initialised(path=_root(repo), skill_path=there[0], commit=commit, created=is_new, added=False)
        first = seed.starter(skill_name(folder.name))
    path = f"{SKILLS}/{first.name}"
    addition = main_branch.add_skill(repo, path, first, time=context.clock())
    open_index(repo).close()  # now, for whoever makes a repository can wait longer than whoever looks into one
    return Initialised(path=_root(repo), skill_path=path, commit=addition.commit, created=is_new, added=addition.added)


def _seed(context: Context, skill: Path | None, environment: str | None) -> Skill | None:
    """Return the seed that was asked for; read before anything is made, so that a bad one leaves nothing behind."""
    if skill is not None:
        return seed.read_seed(context.directory / skill)
    if environment is None:
        return None
    from skillgit.plugin.registry import load_environment  # noqa: PLC0415 - loads an environment only if one is named

    plugin = load_environment(environment, context.directory)
    defaults = {option.name: option.default for option in plugin.info.options}
    return seed.normalise(plugin(defaults, context.directory).seed_skill())


def _open(folder: Path) -> tuple[Repo, bool]:
    """Return the repository at ``folder``, which is made if it is missing, and whether it was made.

    As for ``git init``, a repository that ``folder`` merely lies in does not count.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        repo = Repo.discover(folder)
    except RepositoryNotFoundError:
        if (folder / ".git").exists():
            raise
        return Repo.init(folder), True
    if _root(repo).resolve() != folder:
        return Repo.init(folder), True
    return repo, False


def _root(repo: Repo) -> Path:
    return repo.workdir or repo.common_dir
