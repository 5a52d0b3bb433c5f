"""``skillgit fsck``: whether history keeps its invariants."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.revision import find_run
from skillgit.app.workspace import Workspace, open_workspace
from skillgit.engine.schedule import edit_budget
from skillgit.index import comparison, queries
from skillgit.index.artefacts import CONFIG
from skillgit.store import checks, reader
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong with a run.

    Attributes:
        run: The run.
        commit: The commit; empty if the problem lies in no commit.
        sentence: What is wrong.
        repairable: Whether it can be mended without losing a fact.
    """

    run: str
    commit: str
    sentence: str
    repairable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was checked and what was found.

    Attributes:
        runs: Number of runs.
        commits: Number of events.
        problems: What is wrong.
    """

    runs: int
    commits: int
    problems: tuple[Problem, ...]


def fsck(context: Context, run: str | None, deep: bool = False) -> Checked:  # noqa: FBT001, FBT002 - as agreed
    """Check the invariants of a run, or of all.

    Args:
        context: Where to look.
        run: The run; None for all.
        deep: Whether to compare the index with one that is built anew.

    Raises:
        RevisionNotFoundError: There is no such run.
    """
    with open_workspace(context) as workspace:
        names = reader.runs(workspace.repo) if run is None else [_known(workspace, run)]
        problems = [problem for name in names for problem in _problems(workspace, name)]
        if deep:
            problems.extend(_index_problems(workspace, names))
        commits = sum(queries.events_of(workspace.index, name) for name in names)
        return Checked(runs=len(names), commits=commits, problems=tuple(problems))


def _known(workspace: Workspace, run: str) -> str:
    return run if run in workspace.index.broken else find_run(workspace, run)


def _problems(workspace: Workspace, run: str) -> list[Problem]:
    return [
        Problem(run=run, commit=found.commit, sentence=found.sentence, repairable=found.repairable)
        for found in checks.check_run(workspace.repo, run, budget=_schedule(workspace, run))
    ]


def _schedule(workspace: Workspace, run: str) -> Callable[[int], int] | None:
    """Return the edit budget of each step as the run's configuration has it; None where that is not known."""
    from pydantic import ValidationError  # noqa: PLC0415 - other verbs that read history do without

    from skillgit.engine.settings import OptimizerSettings  # noqa: PLC0415 - same

    row, first = queries.run_row(workspace.index, run, {}), queries.row_of_version(workspace.index, run, 0)
    if row is None or first is None or not row.total_steps:
        return None
    steps, tree = row.total_steps, reader.read_commit(workspace.repo, first.commit).evidence
    try:
        config = json.loads((read_evidence(workspace.repo, tree, [CONFIG]) or {})[CONFIG])
        settings = OptimizerSettings.model_validate_json(json.dumps(config["optimizer"]))
    except (KeyError, TypeError, ValueError, ValidationError):
        return None
    return lambda step: edit_budget(settings, step, steps)


def _index_problems(workspace: Workspace, runs: list[str]) -> list[Problem]:
    differing = comparison.differing_runs(workspace.index)
    sentence = "the index differs from one that is built anew; skillgit reindex"
    return [Problem(run=run, commit="", sentence=sentence, repairable=True) for run in runs if run in differing]
