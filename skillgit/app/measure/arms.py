"""What a measurement compares: versions, other commits, what a pull request changes, and no skill at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from skillgit.app.setup.basis import Lender, find_lender, lender_of
from skillgit.app.setup.measurement import Arm
from skillgit.app.setup.recorded_setup import measuring_setup
from skillgit.app.setup.run_setup import Setup, refuse_samples
from skillgit.app.setup.skill_tasks import TASKS_ENVIRONMENT
from skillgit.app.workspace.request import OnTerms
from skillgit.app.workspace.revision import (
    NO_SKILL,
    WORKTREE,
    Resolved,
    chosen_run,
    resolve,
    text_source,
    work_tree_differs,
)
from skillgit.app.workspace.skill_choice import name_of, only_skill, several_skills
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import SkillError, UsageError
from skillgit.index.queries import runs_of_skill
from skillgit.store.diff import common_ancestor
from skillgit.store.history_reader import skill_at
from skillgit.store.work_tree import differs, skill_trees, skills_at, work_tree_commit

NONE = "none"
"""The arm without a skill: its name and description, and not a word below them."""
_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """All skills to measure, each once."""

    every: tuple[Arm, ...]  # those that were asked for first, then those that they are compared with
    subjects: tuple[Arm, ...]
    against: tuple[Arm, ...]
    same: tuple[str, ...]  # a sentence on each skill that is compared with its own text

    @property
    def pairs(self) -> tuple[tuple[Arm, Arm], ...]:
        """Each skill that was asked for with each other text that it is compared with."""
        pairs = ((arm, base) for arm in self.subjects for base in self.against)
        return tuple(pair for pair in pairs if pair[0].skill.digest != pair[1].skill.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRevisions:
    """Revisions as the user named them, resolved; None means no skill."""

    subjects: tuple[tuple[str, Resolved], ...]
    against: tuple[tuple[str, Resolved | None], ...]

    @property
    def every(self) -> tuple[tuple[str, Resolved | None], ...]:
        return (*self.subjects, *self.against)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that the revisions belong to, each once."""
        resolutions = [resolution for _, resolution in self.every if resolution is not None]
        return tuple(dict.fromkeys(resolution.run for resolution in resolutions if resolution.run))


def resolve_all(workspace: Workspace, revisions: Sequence[str], against: Sequence[str]) -> NamedRevisions:
    """Return what the user named."""
    if not revisions:
        raise UsageError("name a version to measure", hint="skillgit eval best")
    return NamedRevisions(
        subjects=tuple((text, resolve_measured(workspace, text)) for text in revisions),
        against=tuple((text, None if text == NONE else resolve_measured(workspace, text)) for text in against),
    )


def resolve_measured(workspace: Workspace, text: str) -> Resolved:
    """Return what ``text`` names; ``WORKTREE`` is the text of the work tree, committed or not."""
    if text != WORKTREE:
        return resolve(workspace, text)
    commit = work_tree_commit(workspace.repo)
    if commit == workspace.repo.head()[1]:
        return resolve(workspace, "HEAD")
    return Resolved(commit=commit, row=None, run=None, is_uncommitted=True)


def lender_for(workspace: Workspace, names: NamedRevisions, terms: OnTerms) -> Lender | None:
    """Return the run that says how to measure: that of the first revision of a run, else that of the skill."""
    for text, resolution in names.every:
        if resolution is not None and resolution.run:
            return lender_of(text, resolution.run)
    if terms.config is not None:
        return None

    def trained(there: Sequence[str]) -> list[str]:
        paths = [path for path in there if runs_of_skill(workspace.index, path)]
        return paths if len(paths) == 1 else []

    default_run = chosen_run(workspace)
    own = (workspace.index.skill_path(default_run),) if default_run else ()
    return find_lender(workspace, _choose_skill(workspace, names.subjects[0][1], own, trained))


def _choose_skill(
    workspace: Workspace, resolution: Resolved, own: Iterable[str], likely: Callable[[Sequence[str]], Iterable[str]]
) -> str:
    """Return the skill folder that is meant of those in a commit: the named one, one of ``own``, the only, a likely."""
    there = skills_at(workspace.repo, resolution.commit)
    for path in (workspace.skill, *own, only_skill(there), *likely(there)):
        if path in there:
            return path
    where = "the work tree" if resolution.is_uncommitted else f"commit {resolution.commit[:_SHORT]}"
    if not there:
        raise SkillError(f"there is no skill in {where}", hint=NO_SKILL)
    raise several_skills(there, f"{where} has")


def _skill_path(workspace: Workspace, resolution: Resolved, own: Sequence[str], hints: Sequence[str]) -> str:
    """Return the folder of the skill that is meant: that of the event's run, or a likely one of the commit."""
    if resolution.row is not None:
        return workspace.index.skill_path(resolution.row.run)
    return _choose_skill(
        workspace, resolution, own, lambda there: (path for name in hints for path in there if name_of(path) == name)
    )


def read_arms(
    workspace: Workspace, names: NamedRevisions, environment: str, skill_init: str = "", lender: Lender | None = None
) -> Arms:
    """Read the skills of everything named; what is the same commit is one arm.

    Of several skills of a commit, that of the ``lender`` is meant, or ``skill_init`` names it, by its folder or a file
    of it.
    """
    runs = dict.fromkeys((*names.runs, *([lender.run] if lender is not None else ())))
    own = [workspace.index.skill_path(run) for run in runs]
    hints = (Path(skill_init.removesuffix(f"/{DOCUMENT}")).name, environment)
    branch, _ = workspace.repo.head()
    arms: dict[str, Arm] = {}
    keys: list[str] = []
    for text, resolution in names.every:
        if resolution is None:
            first = next(iter(arms.values()))
            source = f"{first.path}/{DOCUMENT} with its name and description alone"
            arm = Arm(name=NONE, skill=emptied(first.skill), path=first.path, text=source)
        else:
            row, path = resolution.row, _skill_path(workspace, resolution, own, hints)
            commit = "" if resolution.is_uncommitted else resolution.commit
            also = str(row.address) if row is not None else branch if text == "HEAD" else ""
            arm = Arm(
                name=text if row is None else row.label if len(names.runs) == 1 else str(row.address),
                commit=commit,
                row=row,
                skill=skill_at(workspace.repo, resolution.commit, path),
                path=path,
                text=text_source(path, text, also, commit),
            )
        arms.setdefault(arm.key, arm)
        keys.append(arm.key)
    counts = Counter(arm.name for arm in arms.values())
    for key, arm in arms.items():
        if counts[arm.name] > 1 and arm.commit:  # several have this name: their commits tell them apart
            arms[key] = replace(arm, name=f"{arm.name} ({arm.commit[:_SHORT]})")
    count = len(names.subjects)
    pairs = [(text, arms[key]) for (text, _), key in zip(names.every, keys, strict=True)]
    return Arms(
        every=tuple(arms.values()),
        subjects=tuple(arms[key] for key in dict.fromkeys(keys[:count])),
        against=tuple(arms[key] for key in dict.fromkeys(keys[count:])),
        same=tuple(
            f"{name} and {base_name} have the same text"
            for name, arm in pairs[:count]
            for base_name, base in pairs[count:]
            if arm.skill.digest == base.skill.digest
        ),
    )


def measured_skill(workspace: Workspace, names: NamedRevisions) -> str:
    """Return the folder of the skill that is measured; empty where only a configuration can say."""
    _, resolution = names.subjects[0]
    own = [workspace.index.skill_path(run) for run in names.runs]
    with suppress(SkillError):
        return _skill_path(workspace, resolution, own, (TASKS_ENVIRONMENT,))
    return ""


def work_tree_remark(workspace: Workspace, resolutions: Iterable[Resolved | None], skills: Iterable[str]) -> str:
    """Say that a commit is measured that HEAD is at, and that the work tree has other texts of some of ``skills``."""
    every = [resolution for resolution in resolutions if resolution is not None]
    _, head = workspace.repo.head()
    if any(each.is_uncommitted for each in every) or head not in {each.commit for each in every}:
        return ""
    paths = [path for path in skills if differs(workspace.repo, path)]
    return work_tree_differs(f"measure {WORKTREE}", paths) if paths else ""


def set_up_arms(workspace: Workspace, names: NamedRevisions, terms: OnTerms) -> tuple[Setup, Arms, str]:
    """Return what to measure with, what to measure, and a remark on the work tree; empty if it has the same texts.

    A UsageError if the items that come with the environment would measure a skill of the user's own.
    """
    lender = lender_for(workspace, names, terms)
    setup = measuring_setup(workspace, lender, terms, skill=measured_skill(workspace, names))
    environment, skill_init = setup.task.environment, setup.config.values.env.skill_init
    arms = read_arms(workspace, names, environment.info.name, skill_init, lender)
    for skill in dict.fromkeys(arm.skill.name for arm in arms.every):
        refuse_samples(setup.config, environment, skill, "measured")
    paths = dict.fromkeys(arm.path for arm in arms.every)
    return setup, arms, work_tree_remark(workspace, [each for _, each in names.every], paths)


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
    """Return the skills that ``head`` changes, by path.

    What only ``base`` changed since the two parted is not a change of ``head``, as in ``git diff base...head``. Each
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
