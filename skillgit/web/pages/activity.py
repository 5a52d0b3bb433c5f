"""What operators do besides training: the commands that they ran, who has access, and drafts of tasks to review."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from markupsafe import escape

from skillgit.app.workspace.command_journal import CommandRecord, command, commands
from skillgit.app.workspace.invitations import Role, invitations, invite, revoke
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ConflictError, DataError, SkillgitError, UsageError
from skillgit.verbs.serve import SERVE, ServeRequest
from skillgit.verbs.tasks import (
    TASKS_REVIEW,
    DraftFolder,
    ReviewRequest,
    drafted_skills,
    reviewing,
)
from skillgit.view.surface import Style
from skillgit.view.table import Cell, Column, Table
from skillgit.view.tasks import actions, answer_said, expected_of, facts_of, progress, state_of
from skillgit.view.text import fit
from skillgit.web.rendering import Answer, Page, Stream, Visit, address, fragment, in_shell, page, redirect

ROWS: Final = 50  # commands on a page
DRAFTS: Final = 20  # drafts on a page
FILE_BYTES: Final = 16 << 10  # of a file that a page shows


def _state(record: CommandRecord) -> Cell:
    if record.runs:
        return Cell("running")
    if record.exit_code is None:
        return Cell("ended without an exit code", Style.REJECTED)
    return Cell(f"exit {record.exit_code}", Style.REJECTED) if record.exit_code else Cell("done", Style.ACCEPTED)


COMMANDS: Final[Table[CommandRecord]] = Table(
    columns=(
        Column("time", head="time", show=lambda row: f"{row.time:%Y-%m-%d %H:%M}"),
        Column("by", head="who"),
        Column(
            "words", head="command", show=lambda row: Cell(fit(in_shell(*row.words), 160), link=("activity", row.id))
        ),
        Column("exit_code", head="state", show=_state),
    )
)


@page("/activity")
def activity_page(visit: Visit) -> Answer:
    records, number = commands(visit.context), max(1, visit.number("page", 1))
    return Page(
        "activity.html",
        "Activity",
        SERVE.words(ServeRequest(tokens=True)),
        COMMANDS=COMMANDS,
        rows=records[(number - 1) * ROWS : number * ROWS],
        number=number,
        older=len(records) > number * ROWS,
        invited=invitations(visit.context),
    )


@page("/activity/{id}")
def command_page(visit: Visit) -> Answer:
    record = command(visit.context, visit.parameters["id"])
    return Page("command.html", "Command", record.words, **_printed(record))


@page("/activity/{id}/stream")
def command_stream(visit: Visit) -> Answer:
    """Return the part of :func:`command_page` that changes while the command runs."""
    context, name = visit.context, visit.parameters["id"]
    command(context, name)

    def look(_: Workspace) -> Mapping[str, str]:
        return {"command": fragment("command.html", "command", **_printed(command(context, name)))}

    return Stream(look)


def _printed(record: CommandRecord) -> dict[str, Any]:
    text = record.text()
    hints = [line for line in text.splitlines() if line.startswith("hint: ")]
    state = _state(record)
    tone = {None: "running", Style.ACCEPTED: "done"}.get(state.style, "failed")
    return {"record": record, "output": text, "hint": hints[-1] if hints else "", "state": state.text, "tone": tone}


@page("/activity/{id}/stop", Role.OPERATOR, "POST")
def stop_command(visit: Visit) -> Answer:
    record = command(visit.context, visit.parameters["id"])
    record.interrupt()
    return redirect(address("activity", record.id))


@page("/invite", Role.OPERATOR, "POST")
def invite_someone(visit: Visit) -> Answer:
    """Make a link, to the page that is named or to the first one; it is in this answer, and nowhere else."""
    name, role = visit.value("name").strip(), visit.value("role", Role.VIEWER)
    if role not in set(Role):
        raise UsageError("a link is for a viewer or an operator", hint="choose one of them")
    if role == Role.OPERATOR and not visit.access.owns:
        raise UsageError("only the owner may invite operators", hint="make a link to look")
    # two slashes at the beginning would name another server
    path, mark, query = visit.value("page", "/").partition("?")
    back = f"/{path.lstrip('/')}{mark if query else ''}{query}"
    token = invite(visit.context, name, Role(role))
    link = f"{visit.link}{back}{'&' if query else '?'}token={token}"
    return Page("invited.html", f"A link for {name}", role=role, link=link, back=back)


@page("/revoke", Role.OPERATOR, "POST")
def revoke_someone(visit: Visit) -> Answer:
    revoke(visit.context, visit.value("name"))
    return redirect(address("activity"))


@page("/drafts", Role.OPERATOR)
def skills_page(visit: Visit) -> Answer:
    return Page("drafts.html", "Drafts of tasks", skills=drafted_skills(visit.context))


@page("/drafts/{skill}", Role.OPERATOR)
def drafts_page(visit: Visit) -> Answer:
    with reviewing(visit.context, visit.parameters["skill"]) as folder:
        return _drafts(visit, folder, visit.value("on"))


@page("/drafts/{skill}", Role.OPERATOR, "POST")
def answer_page(visit: Visit) -> Answer:
    """Carry out what the form says about one draft, if it is still what the form showed, and go on to the next one."""
    skill, name, answer = visit.parameters["skill"], visit.value("id"), visit.value("answer")
    with reviewing(visit.context, skill) as folder:
        try:
            if answer == "undo":
                return redirect(address("drafts", skill, on=folder.undo(visit.value("state")).id, undone="1"))
            draft = folder.pending(name, visit.value("state"))
            match answer:
                case "accept":
                    text = visit.value("text", draft.editable)
                    is_edited = text.rstrip() != draft.editable.rstrip()
                    folder.accept(folder.edit(draft, text) if is_edited else draft)
                case "drop":
                    folder.drop(draft)
                case "edit":
                    folder.edit(draft, visit.value("text"))
                case _:
                    raise UsageError("an answer is accept, edit, drop or undo", hint="use the buttons of the page")
        except SkillgitError as error:
            return _drafts(visit, folder, name, error)
    return redirect(address("drafts", skill, on=name))


def _drafts(visit: Visit, folder: DraftFolder, asked: str, error: SkillgitError | None = None) -> Page:
    """Show the drafts around the one that is ``asked`` for, or the next one, which the keys begin with."""
    names, decisions, into = folder.pending_ids(), folder.decisions(), folder.tasks.path.name
    on = folder.waiting_from(asked)
    at = names.index(on) if on else 0
    first = at // DRAFTS * DRAFTS
    drafts = [*folder.drafts(names[first : first + DRAFTS])]
    texts = {draft.id: draft.editable for draft in drafts}
    refused = on if error and on == asked else ""
    if refused and "text" in visit.form and (visit.value("answer") == "edit" or not isinstance(error, ConflictError)):
        texts[refused] = visit.value("text")
    last, later = folder.last()
    is_undone = bool(visit.value("undone")) and on == asked
    return Page(
        "drafts_of_skill.html",
        f"Drafts of {folder.skill}",
        TASKS_REVIEW.words(ReviewRequest(skill=folder.skill)),
        status=400 if isinstance(error, DataError | UsageError) else 409 if error else 200,
        skill=folder.skill,
        drafts=drafts,
        on=on,
        following="".join(names[first + DRAFTS :][:1]),
        at=at,
        first=first,
        progress=partial(progress, rest=len(names), answers=decisions),
        said=f"taken back: {on} waits for an answer again" if is_undone else answer_said(last, later, into),
        last=last,
        state_of=partial(state_of, answers=decisions),
        into=into,
        texts={name: escape(text) for name, text in texts.items()},  # as typed: what is kept is what the box has
        refused=refused,
        error=error,
        expected_of=expected_of,
        facts_of=facts_of,
        actions=actions,
        file_bytes=FILE_BYTES,
    )
