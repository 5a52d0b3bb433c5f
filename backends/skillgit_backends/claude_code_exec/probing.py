"""Owns the look at how Claude Code is logged in, without asking its model anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit_backends.agent_cli.probe import ask
from skillgit_backends.claude_code_exec import login

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.agent_cli.workspace import Workspace
    from skillgit_backends.claude_code_exec.settings import Settings


async def tell_login(settings: Settings, workspace: Workspace, environment: Mapping[str, str]) -> tuple[bool, str]:
    """Return whether Claude Code can get at its model in ``environment``, and how, or what to do about it.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    for name in (login.KEY, *login.TOKENS):
        if name in environment:
            return True, f"the credential in {settings.api_key_env if name == login.KEY else name}"
    code, said = await ask([settings.path, "auth", "status"], workspace, environment)
    logged_in = code == 0 and _tells_login(said)
    return logged_in, "the account of 'claude auth login'" if logged_in else login.HOW


def _tells_login(said: str) -> bool:
    try:
        status = json.loads(said)
    except ValueError:
        return False
    return isinstance(status, dict) and status.get("loggedIn") is True
