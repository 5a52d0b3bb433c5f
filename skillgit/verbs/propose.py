"""Training that leaves what is better for someone to merge, and what a new model makes of skills."""

from __future__ import annotations

from skillgit.app.proposals.requests import ProposeRequest
from skillgit.app.workspace.request import refuse_together, refuse_without
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import planned
from skillgit.verbs.output_file import clear_outputs
from skillgit.verbs.verb import Answer, Effect, TerminalSession, Verb

with loaded_on_use():
    from skillgit.app.proposals import propose, usefulness
    from skillgit.app.setup import plan as plans
    from skillgit.view import deliveries


def _propose(session: TerminalSession, request: ProposeRequest) -> Answer[object]:
    refuse_without(request, "models", "junit")
    refuse_together(request, "dry_run", "junit")
    if request.models:
        clear_outputs(session, junit=request.junit)
        with session.watching("measuring") as watcher:
            result = usefulness.judge_usefulness(session.context, request, watcher)
        if isinstance(result, plans.Plan):
            return planned(session, result)
        lines = deliveries.usefulness(result, session.screen)
        return Answer("propose-model/1", result, lines, exit_code=result.exit_code)
    if request.dry_run:
        return planned(session, propose.plan_propose(session.context, request))
    with session.watching("training") as watcher:
        report = propose.propose(session.context, request, watcher)
    return Answer("propose/1", report, deliveries.proposed(report, session.screen), exit_code=report.exit_code)


PROPOSE = Verb("propose", ProposeRequest, _propose, Effect.PAYS)
