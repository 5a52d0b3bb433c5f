"""What verbs share that ask models: the work in sight of the user, and the plan of a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ExitCode
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import Answer, TerminalSession, VerbSession
from skillgit.view.json_values import named_values
from skillgit.view.surface import Screen

if TYPE_CHECKING:
    from skillgit.app.setup.plan import Plan
    from skillgit.view.progress import SilentWatcher

with loaded_on_use():
    from skillgit.app.setup import plan as plans
    from skillgit.view import plan as plan_view

R = TypeVar("R")
Q = TypeVar("Q")


def measured(
    session: TerminalSession,
    use_case: Callable[[Workspace, Q, SilentWatcher[Any]], R | Plan],
    request: Q,
    schema: str,
    lines: Callable[[R, Screen], Iterable[str]],
    *,
    ends_with: Callable[[R], ExitCode] = lambda _: ExitCode.OK,
) -> Answer[R | Plan]:
    """Do what measures something, in sight of the user, and return its result; of a dry run, the plan."""
    # a plan is of the moment of the answer; what measures writes, and sees what it wrote
    is_plan = getattr(request, "dry_run", False)
    opened = nullcontext(session.workspace) if is_plan else Workspace(session.context)
    with session.watching("measuring") as watcher, opened as workspace:
        result = use_case(workspace, request, watcher)
    if isinstance(result, plans.Plan):
        return planned(session, result)
    session.note(*getattr(result, "warnings", ()))
    return Answer(schema, result, lines(result, session.screen), exit_code=ends_with(result))


def planned(session: VerbSession, plan: Plan) -> Answer[Plan]:
    """Return what a command would do and spend; every dry run of a command that spends ends so."""
    document = {**named_values(plan), "sentence": plan.sentence}
    return Answer("plan/2", plan, plan_view.planned(plan, session.screen), document=document, exit_code=plan.exit_code)
