"""Which skills a revision changes, as a pull request does: since it left the other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.store.ancestry import common_ancestor
from skillgit.store.skill_trees import skill_trees

if TYPE_CHECKING:
    from skillgit.app.workspace import Workspace

Change = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSkill:
    """One skill that two commits hold different texts of.

    Attributes:
        path: The skill folder.
        before: The id of its tree at the base; empty if there is none.
        after: The id of its tree at the head; empty if there is none.
        moved: Whether the base changed it too since both were the same.
    """

    path: str
    before: str
    after: str
    moved: bool

    @property
    def change(self) -> Change:
        """What the head does to it."""
        if not self.before:
            return "added"
        return "changed" if self.after else "removed"


def changed_skills(workspace: Workspace, base: str, head: str) -> tuple[ChangedSkill, ...]:
    """Return the skills under ``skills/`` that ``head`` changes, by path.

    What only ``base`` changed since the two parted is no change of ``head``, as in ``git diff base...head``. But each
    skill is compared with what stands at ``base`` now, for that is what it would replace. Where ``head`` is an ancestor
    of ``base``, or they have nothing in common, every skill that differs is returned.
    """
    before, after = skill_trees(workspace.repo, base), skill_trees(workspace.repo, head)
    ancestor = common_ancestor(workspace.repo, base, head)
    parted = before if ancestor in {None, head} else skill_trees(workspace.repo, str(ancestor))
    return tuple(
        ChangedSkill(
            path=path,
            before=before.get(path, ""),
            after=after.get(path, ""),
            moved=before.get(path) != parted.get(path),
        )
        for path in sorted({*before, *after})
        if after.get(path) not in {before.get(path), parted.get(path)}
    )
