"""Owns the look at the installed Claude Code, without asking its model anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Probe
from skillgit_backends.agent_cli.probe import ask, version
from skillgit_backends.agent_cli.workspace import fresh_workspace
from skillgit_backends.claude_code_exec import login

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.claude_code_exec.settings import Settings


async def probe(settings: Settings, environ: Mapping[str, str]) -> Probe:
    """Return the version of Claude Code and whether it is logged in.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    with fresh_workspace() as workspace:
        environment = login.prepare(settings, environ, workspace)
        number = await version(settings.path, workspace, environment)
        for name in (login.KEY, *login.TOKENS):
            if name in environment:
                variable = settings.api_key_env if name == login.KEY else name
                return Probe(place=settings.path, version=number, ready=True, detail=f"the credential in {variable}")
        code, said = await ask([settings.path, "auth", "status"], workspace, environment)
        logged_in = code == 0 and _tells_login(said)
        detail = "the account of 'claude auth login'" if logged_in else login.HOW
        return Probe(place=settings.path, version=number, ready=logged_in, detail=detail)


def _tells_login(said: str) -> bool:
    try:
        status = json.loads(said)
    except ValueError:
        return False
    return isinstance(status, dict) and status.get("loggedIn") is True
