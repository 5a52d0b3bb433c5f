"""The skills where a command is typed: which one it means, where the reviewed tasks of each are, what trains one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from skillgit.app.workspace.moment import Moment
from skillgit.app.workspace.shipped_configurations import USUAL, shipped
from skillgit.app.workspace.skill_choice import labels, meant_of, name_of, only_skill
from skillgit.errors import RepositoryNotFoundError, RevisionNotFoundError
from skillgit.store import refs
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk, usual_trunk
from skillgit.store.work_tree import skills_at

TASKS = "tasks"
"""The folder of a repository with the reviewed tasks of its skills."""
ADD = "skillgit tasks add {} --prompt QUESTION --answer ANSWER"
"""The command that begins or lengthens the tasks that its options or its file name."""


def reviewed_tasks(root: Path, skill: str) -> Path:
    """Return the file of reviewed tasks of ``skill`` in the work tree ``root``."""
    return root / TASKS / f"{skill}.jsonl"


def own_tasks(root: Path | None, skill: str) -> Path | None:
    """Return the file of reviewed tasks of ``skill``; None without one. A link may lead to other people's files."""
    file = reviewed_tasks(root.resolve(), skill) if root is not None else None
    return file if file is not None and file.is_file() and not file.is_symlink() else None


def ends(repo: Repo) -> list[tuple[str, str]]:
    """Return where a run may begin, name and commit: HEAD, where it has a commit, then the trunk; at least one."""
    branch, commit = repo.head()
    name = usual_trunk(repo) or trunk(repo)
    main = repo.tip(name)
    places = [(branch or "HEAD", commit)] if commit else []
    if main is not None and main != commit:
        places.append((refs.short(name), main))
    if not places:
        raise RevisionNotFoundError("the repository has no commit to start from", hint="skillgit init")
    return places


def skills_here(repo: Repo) -> tuple[str, ...]:
    """Return the skill folders of HEAD, or where it has none, those of the trunk."""
    try:
        places = ends(repo)
    except RevisionNotFoundError:
        return ()
    return next((paths for _, commit in places if (paths := skills_at(repo, commit))), ())


def meant_skill(workspace: Moment, environment: str) -> str:
    """Return the skill folder that a command about one skill means: the one that is named, or the only one here.

    Empty if there is no skill here; a SkillError if there are several and none bears the name of ``environment``.
    """
    return workspace.skill or meant_of(skills_here(workspace.repo), environment)


def skill_choice(workspace: Moment) -> str:
    """Return the option by which a command about one skill of the repository says which one.

    Where several are there and the context names none, it names the first with tasks. Empty where it needs no option.
    """
    try:
        here, repo = skills_here(workspace.repo), workspace.repo
        paths = [workspace.skill] if workspace.skill else [*here]
    except RepositoryNotFoundError:
        return ""
    return _choice(here, _first(repo, paths)) if paths else ""


def has_tasks(workspace: Moment) -> bool:
    """Say whether the skill that is named, or the only one here, has reviewed tasks."""
    path = workspace.skill or only_skill(skills_here(workspace.repo))
    return bool(path) and own_tasks(workspace.repo.workdir, name_of(path)) is not None


def _first(repo: Repo, paths: Sequence[str]) -> str:
    return next((path for path in paths if own_tasks(repo.workdir, name_of(path))), paths[0])


def _choice(here: Sequence[str], path: str) -> str:
    words = labels({*here, path})
    return f"--skill {quote(words[path])}" if len(words) > 1 else ""


def train_hint(repo: Repo, skill: str = "") -> str:
    """Return the command for a first run of the skill in the folder ``skill``, or of one of the repository.

    It trains on the skill's own tasks; without any, on those that come with skillgit for a skill of its name; without
    these, it is the command that begins its tasks.
    """
    here = skills_here(repo)
    paths = (skill,) if skill else here
    if not paths:
        return "skillgit init"
    path = _first(repo, paths)
    choice = _choice(here, path)
    if own_tasks(repo.workdir, name_of(path)):
        return f"skillgit train {choice}" if choice else "skillgit train"
    own = f"{name_of(path)}/{USUAL.rpartition('/')[2]}"
    if own not in shipped() or own == USUAL:
        return ADD.format(f"--skill {quote(name_of(path))}")
    return f"skillgit train {own} {choice}" if choice else f"skillgit train {own}"
