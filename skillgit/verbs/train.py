"""Training."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

from skillgit.app.train.requests import TrainRequest
from skillgit.errors import SkillgitError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import planned
from skillgit.verbs.verb import Answer, Effect, Form, TerminalSession, Verb

with loaded_on_use():
    from skillgit.app.setup import plan as plans
    from skillgit.app.train import run_report
    from skillgit.app.train import train as training
    from skillgit.view import plan


def _train(session: TerminalSession, request: TrainRequest) -> Answer[run_report.Trained | plans.Plan]:
    if request.dry_run:
        return planned(session, training.plan_train(session.context, request))
    if request.screen:
        words = (*TRAIN.words(replace(request, screen=False)), "--quiet", *session.form_words)
        instead = f"skillgit train {quote(request.config) if request.config else '--run NAME'}"
        return Answer(lines=(), exit_code=session.watch_run(words, instead=instead))
    try:
        with session.watching("training") as watcher:
            result = training.train(session.context, request, watcher)
    except SkillgitError as error:
        if session.form is Form.JSON and error.result is not None:
            session.present(Answer("train/1", error.result))
        elif isinstance(error.result, run_report.Trained):
            session.note(*plan.stopped(error.result, session.notes_screen))
        raise
    result = replace(result, exit_code=run_report.exit_code(result.outcome, strict=request.strict))
    return Answer("train/1", result, plan.trained(result, session.screen), exit_code=result.exit_code)


TRAIN = Verb(
    "train",
    TrainRequest,
    _train,
    Effect.PAYS,
    warning="It may call models, which may cost money. It goes on when the screens are closed; L watches it.",
)
