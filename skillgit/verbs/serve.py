"""The repository for browsers and for agents, and who may look at it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from skillgit.app.workspace.request import Opt, refuse_together, refuse_without
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import Answer, Effect, TerminalSession, Verb
from skillgit.view.json_values import picked

with loaded_on_use():
    from skillgit.app.workspace import invitations
    from skillgit.view import setup

USUAL_PORT: Final = 7421
LARGEST_PORT: Final = 65_535
"""Beyond it Python's ``create_server`` raises an OverflowError and leaves its socket open."""


@dataclass(frozen=True, kw_only=True)
class ServeRequest:
    """The server runs until Ctrl-C and only this machine reaches it. Anyone with the printed link has full access. A
    training that was started from a page continues when the server ends. --invite makes links for others.

    With --mcp it answers agents by the Model Context Protocol, which need no link and can only read.
    """

    port: Annotated[
        int | None, Opt("The port", metavar="N", least=0, default=f"{USUAL_PORT}, or a free one if that is taken")
    ] = None
    host: Annotated[
        str, Opt("Listen on another address than 127.0.0.1; requires --tls-cert or --behind-proxy", metavar="H")
    ] = ""
    tls_cert: Annotated[Path | None, Opt("With --tls-key: encrypt with this certificate", metavar="FILE")] = None
    tls_key: Annotated[Path | None, Opt("The key of the certificate", metavar="FILE")] = None
    behind_proxy: Annotated[
        str, Opt("The origin under which an encrypting proxy publishes the server", metavar="URL")
    ] = ""
    opens: Annotated[bool, Opt("Open the link in the browser", "--open")] = False
    mcp: Annotated[bool, Opt("Answer agents over HTTP instead of browsers")] = False
    invite: Annotated[str, Opt("Print a link for NAME, which is valid until it is revoked", metavar="NAME")] = ""
    role: Annotated[
        str | None, Opt("With --invite: what the link allows", "--as", choices=("viewer", "operator"), default="viewer")
    ] = None
    tokens: Annotated[bool, Opt("List the people who were invited")] = False
    revoke: Annotated[str, Opt("End the link of NAME at once", metavar="NAME")] = ""


def _serve(session: TerminalSession, request: ServeRequest) -> Answer[object]:
    refuse_together(request, "invite", "tokens", "revoke")
    refuse_without(request, "invite", "role")
    for name in ("host", "tls_cert", "tls_key", "behind_proxy", "opens"):
        refuse_together(request, "mcp", name)
    if request.tokens:
        rows = invitations.invitations(session.context)
        public = [picked(row, "name role created used") for row in rows]
        return Answer("serve-tokens/1", {"tokens": public}, setup.invited(rows, session.now))
    if request.revoke:
        row = invitations.revoke(session.context, request.revoke)
        lines = [f"the link of {row.name} leads nowhere from now on"]
        return Answer("serve-revoke/1", {"name": row.name, "role": row.role}, lines)
    if request.invite:
        role = invitations.Role(request.role or "viewer")
        token = invitations.invite(session.context, request.invite, role)
        running = invitations.addresses(session.context)
        link = f"{running[0] if running else f'http://127.0.0.1:{USUAL_PORT}'}/?token={token}"
        notes = [("the link is shown this once; anyone who has it may come in", "")]
        if not running:
            notes.append(("no server runs here now", "skillgit serve"))
        return Answer("serve-invite/1", {"name": request.invite, "role": role, "link": link}, [link], notes=notes)
    session.surface("mcp" if request.mcp else "web").serve(session, request)
    return Answer()


def _effect(request: ServeRequest) -> Effect:
    return Effect.READS if request.tokens else Effect.HISTORY


SERVE = Verb("serve", ServeRequest, _serve, _effect, warning="It decides who may look at this repository.")


@dataclass(frozen=True, kw_only=True)
class McpRequest:
    """An agent starts it and speaks with it on stdin and stdout, as the plug-in of `skillgit export --as plugin` says.
    It only reads, and only the repository that it was started in. `skillgit serve --mcp` answers over HTTP.
    """


def _mcp(session: TerminalSession, request: McpRequest) -> Answer[object]:
    del request
    if session.answers:
        session.note("this waits for an agent, which speaks JSON; Ctrl-D ends it")
    session.surface("mcp").answer_agent(session)
    return Answer()


MCP = Verb("mcp", McpRequest, _mcp, forms=())
