"""Owns the look at the installed Codex, without asking its model anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.plugin.backend import Probe
from skillgit_backends.agent_cli.probe import ask, version
from skillgit_backends.agent_cli.workspace import fresh_workspace
from skillgit_backends.codex_exec import login

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.codex_exec.settings import Settings


async def probe(settings: Settings, environ: Mapping[str, str]) -> Probe:
    """Return the version of Codex and whether it is logged in.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    with fresh_workspace() as workspace:
        environment = login.prepare(settings, environ, workspace)
        number = await version(settings.path, workspace, environment)
        if settings.base_url:
            key = f"the key in {settings.api_key_env}" if settings.api_key_env in environment else "no key"
            return Probe(place=settings.path, version=number, ready=True, detail=f"{key}, at {settings.base_url}")
        if login.KEY in environment:
            return Probe(
                place=settings.path,
                version=number,
                ready=True,
                detail=f"the key in {login.key_name(settings, environ)}",
            )
        if settings.provider not in ("", "openai"):
            return Probe(place=settings.path, version=number, ready=True, detail=f"the provider {settings.provider}")
        code, _ = await ask([settings.path, "login", "status"], workspace, environment)
        detail = login.HOW if code else "the account of 'codex login'"
        return Probe(place=settings.path, version=number, ready=code == 0, detail=detail)
