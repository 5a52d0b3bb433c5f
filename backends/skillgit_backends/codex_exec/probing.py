"""Owns the look at how Codex is logged in, without asking its model anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit_backends.agent_cli.probe import ask
from skillgit_backends.codex_exec import login

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.agent_cli.workspace import Workspace
    from skillgit_backends.codex_exec.settings import Settings


async def tell_login(
    settings: Settings, environ: Mapping[str, str], workspace: Workspace, environment: Mapping[str, str]
) -> tuple[bool, str]:
    """Return whether Codex can get at its model in ``environment``, and how, or what to do about it.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    if settings.base_url:
        key = f"the key in {settings.api_key_env}" if settings.api_key_env in environment else "no key"
        return True, f"{key}, at {settings.base_url}"
    if login.KEY in environment:
        return True, f"the key in {login.key_name(settings, environ)}"
    if settings.provider not in ("", "openai"):
        return True, f"the provider {settings.provider}"
    code, _ = await ask([settings.path, "login", "status"], workspace, environment)
    return code == 0, login.HOW if code else "the account of 'codex login'"
