"""What the recorded configuration of a run says about its budgets and its gate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.domain.gate import GateRule
from skillgit.domain.untrusted.documents import loads
from skillgit.engine.schedule import edit_budget
from skillgit.index import queries
from skillgit.index.artefacts import CONFIG
from skillgit.store import reader
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.app.workspace import Workspace
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo


def edit_schedule(workspace: Workspace, run: str) -> Callable[[int], int] | None:
    """Return the edit budget of each step as the run's configuration has it; None where that is not known."""
    from pydantic import ValidationError  # noqa: PLC0415 - other verbs that read history do without

    from skillgit.engine.settings import OptimizerSettings  # noqa: PLC0415 - same

    row, first = queries.run_row(workspace.index, run, {}), queries.row_of_version(workspace.index, run, 0)
    if row is None or first is None or not row.total_steps:
        return None
    steps, config = row.total_steps, _config(workspace.repo, first.commit)
    try:
        settings = OptimizerSettings.model_validate_json(json.dumps(config["optimizer"]))
    except (KeyError, TypeError, ValueError, ValidationError):
        return None
    return lambda step: edit_budget(settings, step, steps)


def least_coverage(repo: Repo, records: Sequence[Recorded]) -> float:
    """Return the share of scored items below which the run's gate is indecisive; the usual one if that is not known."""
    section = _config(repo, records[0].commit).get("evaluation")
    found = section.get("min_coverage") if isinstance(section, dict) else None
    return float(found) if isinstance(found, int | float) else GateRule().min_coverage


def _config(repo: Repo, commit: str) -> dict[str, object]:

    try:
        files = read_evidence(repo, reader.read_commit(repo, commit).evidence, [CONFIG]) or {}
        found = loads(files.get(CONFIG, b"null"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
