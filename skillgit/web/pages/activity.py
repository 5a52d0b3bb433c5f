"""What operators ran, and who has access."""

from __future__ import annotations

from collections.abc import Mapping

from skillgit.app.workspace.command_journal import CommandRecord, command, commands
from skillgit.app.workspace.invitations import Role, invitations, invite, revoke
from skillgit.errors import UsageError
from skillgit.web.rendering import Page, PageRoute, Redirect, Stream, Visit, address, fragment

_ROWS = 50  # commands on a page


def activity_page(visit: Visit) -> Page:
    rows = commands(visit.context)
    page = max(1, visit.number("page", 1))
    section = rows[(page - 1) * _ROWS : page * _ROWS]
    return Page(
        template="activity.html",
        title="Activity",
        command=("serve", "--tokens"),
        values={
            "rows": section,
            "number": page,
            "older": len(rows) > page * _ROWS,
            "invited": invitations(visit.context),
        },
    )


def command_page(visit: Visit) -> Page:
    record = command(visit.context, visit.parameters["id"])
    return Page(template="command.html", title="Command", command=record.words, values=_values(record))


def command_stream(visit: Visit) -> Stream:
    """Return the part of :func:`command_page` that changes while the command runs."""
    context, name = visit.context, visit.parameters["id"]
    command(context, name)

    def look() -> Mapping[str, str]:
        return {"command": fragment("command_part.html", **_values(command(context, name)))}

    return Stream(look=look)


def _values(record: CommandRecord) -> dict[str, object]:
    text = record.text()
    return {"record": record, "output": text, "last": _last(text)}


def invite_someone(visit: Visit) -> Page:
    """Make a link, to the page that is named or to the first one; it is in this answer, and nowhere else."""
    name, role = visit.value("name").strip(), visit.value("role", Role.VIEWER)
    page = visit.value("page", "/")
    if role not in set(Role):
        raise UsageError("a link is for a viewer or an operator", hint="choose one of them")
    if role == Role.OPERATOR and not visit.access.owns:
        raise UsageError("only whoever started the server lets operators in", hint="make a link to look")
    # two slashes at the beginning would name another server
    path, _, query = page.partition("?")
    token = invite(visit.context, name, Role(role))
    link = f"{visit.link}/{path.lstrip('/')}?{f'{query}&' if query else ''}token={token}"
    values = {"name": name, "role": role, "link": link, "back": f"/{path.lstrip('/')}{'?' if query else ''}{query}"}
    return Page(template="invited.html", title=f"A link for {name}", values=values)


def revoke_someone(visit: Visit) -> Redirect:
    revoke(visit.context, visit.value("name"))
    return Redirect(address=address("activity"))


def stop_command(visit: Visit) -> Redirect:
    record = command(visit.context, visit.parameters["id"])
    record.interrupt()
    return Redirect(address=address("activity", record.id))


def _last(text: str) -> str:
    """Return the hint of a command that failed."""
    return next((line for line in reversed(text.splitlines()) if line.startswith("hint: ")), "")


ROUTES = (
    PageRoute(path="/activity", page=activity_page),
    PageRoute(path="/invite", page=invite_someone, role=Role.OPERATOR, method="POST"),
    PageRoute(path="/revoke", page=revoke_someone, role=Role.OPERATOR, method="POST"),
    PageRoute(path="/activity/{id}", page=command_page),
    PageRoute(path="/activity/{id}/stream", page=command_stream),
    PageRoute(path="/activity/{id}/stop", page=stop_command, role=Role.OPERATOR, method="POST"),
)
