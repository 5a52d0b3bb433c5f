"""What a person names with a revision: a version to change, or a skill to take out of the repository."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.app.workspace.revision import event_in, find_run, resolve_in
from skillgit.errors import RevisionNotFoundError, SkillError, UsageError
from skillgit.store.history_reader import skill_at
from skillgit.store.main_branch import skills_at

if TYPE_CHECKING:
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow


def version_in(workspace: Workspace, text: str) -> LogRow:
    """Return the event that made the version ``text``."""
    row = event_in(workspace, text)
    if row.version is None:
        raise UsageError(
            f"{text} is no version of run {row.run}",
            hint=f"a candidate becomes one if it passes the gate: skillgit cherry-pick {quote(text)} --run {row.run}",
        )
    return row


def version_of_run(workspace: Workspace, text: str, run: str | None) -> LogRow:
    """Return the event that made the version ``text`` of ``run``; None takes the run that ``text`` belongs to."""
    if run is None:
        return version_in(workspace, text)
    run_name = find_run(workspace, run)
    try:
        row = version_in(workspace, text if "/" in text else f"{run_name}/{text}")
    except RevisionNotFoundError:
        row = version_in(workspace, text)
    if row.run != run_name:
        address = str(row.address)
        raise UsageError(
            f"{address} is no version of run {run_name}", hint=f"skillgit cherry-pick {address} --run {run_name}"
        )
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSkill:
    skill: Skill
    commit: str
    row: LogRow | None  # the event that the commit holds; absent for a commit that is no event


def skill_named(workspace: Workspace, revision: str) -> NamedSkill:
    """Return the skill of ``revision``: that of its run, or the only one of a commit that is no event."""
    resolution = resolve_in(workspace, revision)
    if resolution.row is not None:
        path = workspace.index.skill_path(resolution.row.run)
    else:
        paths = skills_at(workspace.repo, resolution.commit)
        if not paths:
            raise SkillError(f"there is no skill at {revision}", hint="skills are in skills/<name>/SKILL.md")
        if len(paths) > 1:
            raise SkillError(
                f"there are {len(paths)} skills at {revision}: {', '.join(path.rpartition('/')[2] for path in paths)}",
                hint="name a version of a run, such as v3 or RUN/v3",
            )
        path = paths[0]
    return NamedSkill(
        skill=skill_at(workspace.repo, resolution.commit, path), commit=resolution.commit, row=resolution.row
    )
