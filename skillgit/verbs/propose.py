"""Training on reviewed tasks that leaves what is better for someone to merge."""

from __future__ import annotations

from skillgit.app.proposals.requests import ProposeRequest
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import planned
from skillgit.verbs.verb import Answer, Effect, TerminalSession, Verb

with loaded_on_use():
    from skillgit.app.proposals import propose
    from skillgit.view import deliveries


def _propose(session: TerminalSession, request: ProposeRequest) -> Answer[object]:
    if request.dry_run:
        return planned(session, propose.plan_propose(session.context, request))
    with session.watching("training") as watcher:
        report = propose.propose(session.context, request, watcher)
    return Answer("propose/1", report, deliveries.proposed(report, session.screen), exit_code=report.exit_code)


PROPOSE = Verb("propose", ProposeRequest, _propose, Effect.PAYS)
