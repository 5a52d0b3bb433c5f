"""The skills that a measurement compares: versions, other commits, what a pull request changes, and no skill at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from skillgit.app.workspace.revision import Resolved, resolve_in
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import SkillError, UsageError
from skillgit.store.diff import common_ancestor
from skillgit.store.history_reader import skill_at
from skillgit.store.work_tree import skill_trees, skills_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.workspace.workspace import Workspace
    from skillgit.index.rows import LogRow


NONE = "none"
"""The arm without a skill: its name and description, and not a word below them."""
_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    name: str  # in tables: `v7`, `r17`, `<run>/v7` among several runs, `none`; unique within a measurement
    commit: str  # its commit; empty for no skill
    row: LogRow | None  # the event that the commit holds; absent for a commit that is no event, and for no skill
    skill: Skill

    @property
    def key(self) -> str:
        """What everything that is kept of the skill goes by: its commit, or ``none``."""
        return self.commit or NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """All skills to measure, each once."""

    every: tuple[Arm, ...]  # those that were asked for first, then those that they are compared with
    subjects: tuple[Arm, ...]
    against: tuple[Arm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRevisions:
    """Revisions as the user named them, resolved; None stands for no skill."""

    subjects: tuple[tuple[str, Resolved], ...]
    against: tuple[tuple[str, Resolved | None], ...]

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that the revisions belong to, each once."""
        resolutions = [resolution for _, resolution in (*self.subjects, *self.against) if resolution is not None]
        return tuple(dict.fromkeys(resolution.run for resolution in resolutions if resolution.run))


def resolve_all(workspace: Workspace, revisions: Sequence[str], against: Sequence[str]) -> NamedRevisions:
    """Return what the user named."""
    if not revisions:
        raise UsageError("name a version to measure", hint="skillgit eval best")
    return NamedRevisions(
        subjects=tuple((text, resolve_in(workspace, text)) for text in revisions),
        against=tuple((text, None if text == NONE else resolve_in(workspace, text)) for text in against),
    )


def read_arms(workspace: Workspace, names: NamedRevisions, environment: str) -> Arms:
    """Read the skills of everything named; what is the same commit is one arm."""
    arms: dict[str, Arm] = {}
    for text, resolution in (*names.subjects, *names.against):
        if resolution is None:
            variant = Arm(name=NONE, commit="", row=None, skill=emptied(next(iter(arms.values())).skill))
        else:
            variant = _arm(workspace, names, text, resolution, environment)
        arms.setdefault(variant.key, variant)
    arms = {arm.key: arm for arm in _told_apart(tuple(arms.values()))}
    commits = dict.fromkeys(resolution.commit for _, resolution in names.subjects)
    against = dict.fromkeys(NONE if base is None else base.commit for _, base in names.against)
    return Arms(
        every=tuple(arms.values()),
        subjects=tuple(arms[key] for key in commits),
        against=tuple(arms[key] for key in against),
    )


def _arm(workspace: Workspace, names: NamedRevisions, text: str, resolution: Resolved, environment: str) -> Arm:
    row = resolution.row
    path = workspace.index.skill_path(row.run) if row is not None else _path(workspace, names, resolution, environment)
    return Arm(
        name=_name(names, text, row),
        commit=resolution.commit,
        row=row,
        skill=skill_at(workspace.repo, resolution.commit, path),
    )


def _name(names: NamedRevisions, text: str, row: LogRow | None) -> str:
    if row is None:
        return text
    return row.label if len(names.runs) == 1 else str(row.address)


def _told_apart(arms: Sequence[Arm]) -> Iterator[Arm]:
    """Yield ``arms`` with the beginnings of their commits behind names that several of them have."""
    counts = Counter(arm.name for arm in arms)
    for arm in arms:
        is_alone = counts[arm.name] == 1 or not arm.commit
        yield arm if is_alone else replace(arm, name=f"{arm.name} ({arm.commit[:_SHORT]})")


def _path(workspace: Workspace, names: NamedRevisions, resolution: Resolved, environment: str) -> str:
    """Return the skill folder of a commit that is no event: the runs' own, the only one, or the environment's."""
    there = skills_at(workspace.repo, resolution.commit)
    paths = [workspace.index.skill_path(run) for run in names.runs]
    matching = [path for path in paths if path in there] or (there if len(there) == 1 else [])
    matching = matching or [path for path in there if path.rpartition("/")[2] == environment]
    if not matching:
        raise SkillError(
            f"it is not clear which skill of commit {resolution.commit[:12]} is meant",
            hint=f"it has {', '.join(there)}" if there else "skills are in skills/<name>/SKILL.md",
        )
    return matching[0]


def emptied(skill: Skill) -> Skill:
    """Return ``skill`` with its name and description, and not a word below them."""
    return Skill(skill.name, {DOCUMENT: frontmatter(skill.document).encode()})


Change = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSkill:
    """One skill that two commits hold different texts of."""

    path: str
    before: str  # the id of its tree at the base; empty if there is none
    after: str  # the id of its tree at the head; empty if there is none
    has_moved: bool  # whether the base changed it too since both were the same

    @property
    def change(self) -> Change:
        if not self.before:
            return "added"
        return "changed" if self.after else "removed"


def changed_skills(workspace: Workspace, base: str, head: str) -> tuple[ChangedSkill, ...]:
    """Return the skills under ``skills/`` that ``head`` changes, by path.

    What only ``base`` changed since the two parted is no change of ``head``, as in ``git diff base...head``. But each
    skill is compared with what is at ``base`` now, for that is what it would replace. Where ``head`` is an ancestor
    of ``base``, or they have nothing in common, every skill that differs is returned.
    """
    before, after = skill_trees(workspace.repo, base), skill_trees(workspace.repo, head)
    ancestor = common_ancestor(workspace.repo, base, head)
    base_trees = before if ancestor in {None, head} else skill_trees(workspace.repo, str(ancestor))
    return tuple(
        ChangedSkill(
            path=path,
            before=before.get(path, ""),
            after=after.get(path, ""),
            has_moved=before.get(path) != base_trees.get(path),
        )
        for path in sorted({*before, *after})
        if after.get(path) not in {before.get(path), base_trees.get(path)}
    )
