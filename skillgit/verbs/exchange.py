"""Between repositories: push, pull and clone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from skillgit.app.exchange.requests import PullRequest, PushRequest
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.request import Arg, Opt
from skillgit.errors import RemoteError, SkillgitError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import LIST, Answer, Effect, TerminalSession, Verb
from skillgit.view.lists import LISTS

if TYPE_CHECKING:
    from skillgit.app.exchange.push import Pushed

with loaded_on_use():
    from skillgit.app.exchange import pull, push, push_check, remote
    from skillgit.view import deliveries, findings

Remote: TypeAlias = "remote.Remote"


def _push(session: TerminalSession, request: PushRequest) -> Answer[object]:
    try:
        result = _pushed(session, request)
    except SkillgitError as error:
        if isinstance(error.result, push_check.Scan):
            refusals = (*error.result.stops, *error.result.warnings)
            session.note(*findings.SCAN.lines(refusals, session.notes_screen))
        raise
    session.note(*(f"warning: {warning}" for warning in result.warnings))
    return Answer(
        table=LISTS["push"],
        rows=result.refs,
        result=result,
        lines=deliveries.pushed(result, session.screen),
        error=result.error,
    )


def _pushed(session: TerminalSession, request: PushRequest) -> Pushed:
    """Push; where GitHub has no repository of that name, offer to create it first."""
    try:
        return push.push(session.context, request, session.listener)
    except RemoteError as error:
        repository = None
        if error.missing and not request.dry_run:
            repository = remote.creatable(session.context, request.remote)
        if repository is None:
            raise
        question = f"GitHub has no repository {repository.name}. Create it, private, with gh?"
        # where no one can answer, the answer is no
        if not repository.by_gh or not (request.yes or (session.answers and session.confirm(question))):
            raise RemoteError(error.message, hint=repository.hint) from error
        remote.create(session.context, repository)
        session.note(f"created the private repository {repository.name} on GitHub")
        return push.push(session.context, request, session.listener)


PUSH = Verb("push", PushRequest, _push, Effect.SENDS, forms=LIST)


def _pull(session: TerminalSession, request: PullRequest) -> Answer[object]:
    result = pull.pull(session.context, request, session.listener)
    return Answer("pull/1", result, deliveries.pulled(result, session.screen), error=result.error)


PULL = Verb(
    "pull",
    PullRequest,
    _pull,
    Effect.HISTORY,
    warning="It changes refs of this repository by those of another one.",
)


@dataclass(frozen=True, kw_only=True)
class CloneRequest:
    """DIR defaults to the repository's name. You can look at its runs, continue and fork them; the commands and files
    that their configurations name are never used.
    """

    url: Annotated[str, Arg("URL")]
    directory: Annotated[Path | None, Arg("[DIR]")] = None
    evidence: Annotated[bool, Opt("Bring evidence too")] = False


def _clone(session: TerminalSession, request: CloneRequest) -> Answer[object]:
    result = pull.clone(
        session.context, request.url, request.directory, evidence=request.evidence, listener=session.listener
    )
    return Answer("clone/1", result, deliveries.cloned(result, session.screen))


CLONE = Verb("clone", CloneRequest, _clone, Effect.FILES)


def remotes(context: Context) -> tuple[Remote, ...]:
    """Return what PUSH and PULL may name, as ``git remote -v`` lists it, with addresses that hold no credentials."""
    return remote.remotes(context)
