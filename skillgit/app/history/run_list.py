"""The runs of a repository, how their scores went, and one of them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.skill_choice import choose_skill
from skillgit.app.workspace.workspace import Workspace
from skillgit.index import queries
from skillgit.index.rows import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListing:
    rows: tuple[RunRow, ...]  # those that are asked for
    total: int  # how many runs there are that can be read
    unreadable: Mapping[str, str]  # run to why its history cannot be read
    environments: tuple[str, ...]
    models: tuple[str, ...]
    skills: tuple[str, ...] = ()  # the folders of skills that runs train


Choice = Callable[[Sequence[RunRow]], tuple[RunRow, ...]]


def run_list(workspace: Workspace, choose: Choice | None = None) -> RunListing:
    """Return the runs, those in training first, or those that ``choose`` returns of them."""
    every = queries.run_rows(workspace.index, workspace.live())
    if workspace.skill:
        every = tuple(row for row in every if row.skill == workspace.skill)
    every = tuple(sorted(every, key=lambda row: row.running_pid is None))
    rows = choose(every) if choose is not None else every
    return RunListing(
        rows=rows,
        total=len(every),
        unreadable={run: str(error) for run, error in sorted(workspace.index.broken.items())},
        skills=tuple(sorted({row.skill for row in every} - {""})),
        environments=tuple(sorted({row.environment for row in every} - {""})),
        models=tuple(sorted({row.target for row in every} - {""})),
    )


def run_of_skill(workspace: Workspace, skill: str) -> str:
    """Return the run that trains the skill ``skill``: the default run, else the newest; a NotFoundError without one."""
    path = choose_skill(skill, workspace.index.column("SELECT DISTINCT skill FROM run"), where="that runs train")
    return find_run(workspace.of_skill(path), None)
