"""The skill that a person names with a revision, to take it out of the repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.revision import resolve_in
from skillgit.errors import SkillError
from skillgit.store.mainline import skills_at
from skillgit.store.reader import skill_at

if TYPE_CHECKING:
    from skillgit.app.workspace import Workspace
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSkill:
    """A skill at a revision.

    Attributes:
        skill: Its files.
        commit: The commit.
        row: The event that the commit holds; absent for a commit that is no event.
    """

    skill: Skill
    commit: str
    row: LogRow | None


def skill_named(workspace: Workspace, revision: str) -> NamedSkill:
    """Return the skill of ``revision``: that of its run, or the only one of a commit that is no event.

    Raises:
        RevisionNotFoundError: It names nothing.
        SkillError: The commit has no skill, or several.
    """
    found = resolve_in(workspace, revision)
    if found.row is not None:
        path = workspace.index.skill_path(found.row.run)
    else:
        paths = skills_at(workspace.repo, found.commit)
        if not paths:
            raise SkillError(f"there is no skill at {revision}", hint="skills stand in skills/<name>/SKILL.md")
        if len(paths) > 1:
            raise SkillError(
                f"there are {len(paths)} skills at {revision}: {', '.join(path.rpartition('/')[2] for path in paths)}",
                hint="name a version of a run, such as v3 or RUN/v3",
            )
        path = paths[0]
    return NamedSkill(skill=skill_at(workspace.repo, found.commit, path), commit=found.commit, row=found.row)
