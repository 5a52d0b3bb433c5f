"""What a run has cost, and where it went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from skillgit.app.workspace.request import OfPast, OfRun, OfSkill, Opt, refuse_together
from skillgit.domain.cost import Grouping
from skillgit.lazy import loaded_on_use
from skillgit.verbs.notes import no_runs
from skillgit.verbs.verb import LIST, Answer, Form, Verb, VerbSession
from skillgit.view.plan import COST as COLUMNS
from skillgit.view.plan import cost_lines

with loaded_on_use():
    from skillgit.app.history import cost

Spending: TypeAlias = "cost.Spending"


@dataclass(frozen=True, kw_only=True)
class CostRequest(OfRun, OfSkill, OfPast):
    """A version costs everything since the version before it, rejected candidates included. The time of a role, a stage
    or a model is that of its calls, side by side ones added up; that of a step, a version or a run is wall time. Calls
    whose price is not known are in no sum of dollars, and are named.

    What a stopped run has spent on an event that is not recorded yet is below, apart from the sums.

    It says what the history holds, and not what ablate, cherry-pick --rejected, eval and others measured apart from it,
    or what a merge that brought nothing spent; each of them prints that.
    """

    by: Annotated[
        Grouping | None,
        Opt(f"Add up by WHAT: {' '.join(Grouping)}; by role and stage unless you say", metavar="WHAT", tool="by"),
    ] = None
    all_runs: Annotated[bool, Opt("Show what each run has cost", "--all")] = False


def _cost(session: VerbSession, request: CostRequest) -> Answer[Spending]:
    refuse_together(request, "all_runs", "run")
    refuse_together(request, "all_runs", "by")
    result = cost.cost(session.workspace, request.run, by=request.by, all_runs=request.all_runs)
    if session.form is Form.TEXT and not (result.run or result.rows):
        return Answer(lines=(), notes=[no_runs(session.workspace)])
    return Answer(table=COLUMNS, rows=result.rows, result=result, lines=cost_lines(result, session.screen), pager=True)


COST = Verb("cost", CostRequest, _cost, forms=LIST)
