"""What a person changes in a run or on the trunk."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from shlex import quote
from typing import Annotated, Any

from skillgit.app.interventions.requests import CherryPickRequest, MergeRequest, RevertRequest, ShortenRequest
from skillgit.app.workspace.request import Arg, DryRun, MisuseError, OfSkill, Opt, refuse_together, refuse_without
from skillgit.errors import ExitCode, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import measured
from skillgit.verbs.verb import LIST, Answer, Effect, Form, TerminalSession, Verb
from skillgit.view.lists import LISTS

with loaded_on_use():
    from skillgit.app.interventions import cherry_pick, fork, merge, note, promote, revert, shorten
    from skillgit.view import gate, interventions, rules


def _by_gate(result: Any) -> ExitCode:  # noqa: ANN401 - a decision, or what has one
    return ExitCode.OK if getattr(result, "decided", result).accepted else ExitCode.NO


def _revert(session: TerminalSession, request: RevertRequest) -> Answer[object]:
    refuse_together(request, "revision", "to")
    if request.to is not None and not request.gate:
        result = revert.restore(session.context, request)
        return Answer("restore/1", result, interventions.restored(result, session.screen))
    if request.to is not None:
        restore, lines = revert.restore_by_gate, interventions.restored
        return measured(session, restore, request, "restore/1", lines, ends_with=_by_gate)
    if request.revision is None:
        raise MisuseError("name the version to take back, or the one to go back to with --to")
    if request.gate:
        raise UsageError(
            "revert always asks the gate about the edits that it takes back",
            hint=f"skillgit revert --to {quote(request.revision)} --gate makes its text the newest version",
        )
    return measured(session, revert.revert, request, "revert/2", gate.decided, ends_with=_by_gate)


def _effect_of_revert(request: RevertRequest) -> Effect:
    return Effect.PAYS if request.to is None or request.gate else Effect.HISTORY


REVERT = Verb("revert", RevertRequest, _revert, _effect_of_revert)


def _cherry_pick(session: TerminalSession, request: CherryPickRequest) -> Answer[object]:
    refuse_together(request, "rejected", "revision")
    refuse_without(request, "rejected", "keep", "limit", "model", "split")
    if request.rejected:
        lines = interventions.retry_lines
        return measured(session, cherry_pick.retry, request, "resurrect/1", lines, ends_with=attrgetter("exit_code"))
    if request.revision is None:
        raise MisuseError("name the version or candidate whose edits to take, or --rejected")
    return measured(session, cherry_pick.cherry_pick, request, "cherry-pick/1", gate.decided, ends_with=_by_gate)


CHERRY_PICK = Verb("cherry-pick", CherryPickRequest, _cherry_pick, Effect.PAYS)


def _merge(session: TerminalSession, request: MergeRequest) -> Answer[object]:
    return measured(session, merge.merge, request, "merge/2", interventions.merge_lines, ends_with=_by_gate)


MERGE = Verb("merge", MergeRequest, _merge, Effect.PAYS)


def _shorten(session: TerminalSession, request: ShortenRequest) -> Answer[object]:
    if request.words:
        return measured(session, shorten.compress, request, "compress/1", gate.decided, ends_with=_by_gate)
    return measured(session, shorten.prune, request, "prune/1", rules.pruned, ends_with=_by_gate)


SHORTEN = Verb("shorten", ShortenRequest, _shorten, Effect.PAYS)


@dataclass(frozen=True, kw_only=True)
class ForkRequest(OfSkill):
    """The fork has the text and the score of REV and the configuration of its run. Training continues in it with the
    same CONFIG. Default name: RUN-fork.
    """

    revision: Annotated[str, Arg("REV", words="revisions")]
    name: Annotated[str | None, Arg("[NAME]")] = None
    dry_run: DryRun = False


def _fork(session: TerminalSession, request: ForkRequest) -> Answer[object]:
    result = fork.fork(session.context, request.revision, request.name, dry_run=request.dry_run)
    return Answer("fork/1", result, interventions.forked(result, session.screen))


FORK = Verb("fork", ForkRequest, _fork, Effect.HISTORY)


@dataclass(frozen=True, kw_only=True)
class PromoteRequest(OfSkill):
    """The trunk is the branch that you are on. Only the skill's folder changes there. If someone changed it by hand
    since the run began, nothing is done without --force. A work tree that has the trunk checked out follows as with
    git merge: it loses no changes.

    --release takes a semantic version such as 1.2.0. It is written to metadata.version in the frontmatter of SKILL.md,
    and no other byte of the skill changes; the merge commit gets the tag SKILL/v1.2.0.
    """

    revision: Annotated[str, Arg("REV", words="revisions")]
    force: Annotated[bool, Opt("Also replace manual changes on the trunk")] = False
    release: Annotated[str, Opt("Release it: write metadata.version, and tag SKILL/vVERSION", metavar="VERSION")] = ""
    dry_run: DryRun = False


def _promote(session: TerminalSession, request: PromoteRequest) -> Answer[object]:
    result = promote.promote(
        session.context, request.revision, force=request.force, dry_run=request.dry_run, release=request.release
    )
    return Answer("promote/1", result, interventions.promoted(result, session.screen))


PROMOTE = Verb("promote", PromoteRequest, _promote, Effect.HISTORY)


@dataclass(frozen=True, kw_only=True)
class NoteRequest(OfSkill):
    """The steps that begin after it read the note as advice, and so do forks of the version. It moves no score and no
    gate, and no target model sees it. TEXT may be - for stdin; without it a terminal opens your editor.
    """

    revision: Annotated[str | None, Arg("[REV]", words="revisions")] = None
    text: Annotated[str | None, Arg("[TEXT]")] = None
    message: Annotated[str | None, Opt("The text; REV defaults to head", "-m --message", metavar="TEXT")] = None
    lists: Annotated[bool, Opt("List the notes on REV, or on a run", "--list")] = False
    remove: Annotated[str | None, Opt("Withdraw the note called ID", metavar="ID")] = None


def _note(session: TerminalSession, request: NoteRequest) -> Answer[object]:
    refuse_together(request, "text", "message", "lists", "remove")
    refuse_together(request, "remove", "revision")
    if request.lists:
        notes = note.list_notes(session.workspace, request.revision)
        return Answer(
            table=LISTS["note --list"],
            rows=interventions.note_rows(notes) if session.tabular else notes,
            result={},
            lines=interventions.note_lines(notes, session.screen, session.now),
        )
    if session.form not in {Form.TEXT, Form.JSON}:
        raise MisuseError(f"--{session.form.value} needs --list")
    if request.remove is not None:
        result = note.remove_note(session.context, request.remove)
        return Answer("note/1", result, interventions.unnoted(result))
    text = request.text if request.message is None else request.message
    if request.revision is None and request.message is None:
        raise MisuseError("give either REV and TEXT, --list or --remove ID")
    if text is None and not session.answers:
        raise MisuseError("give TEXT, or - to read it from stdin")
    if text is None:
        text = session.edit("", extension=".md") or ""
    elif text == "-" and request.message is None:
        text = session.stdin()
    result = note.note(session.context, request.revision or "head", text)
    masking = [("something in it looked like a credential and was masked", "")] if result.text != text.strip() else []
    return Answer("note/1", result, interventions.noted(result), notes=masking)


NOTE = Verb(
    "note",
    NoteRequest,
    _note,
    lambda request: Effect.READS if request.lists else Effect.HISTORY,
    forms=LIST,
    warning="It goes into the history, and later steps read it.",
)
