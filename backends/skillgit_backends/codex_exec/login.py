"""Owns how a call of Codex gets at its model: the home it reads, the key in its environment, or the account.

The file of an account is linked and not copied: when Codex renews it, the old one is worth nothing any more.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import FatalBackendError
from skillgit_backends.agent_cli.child_environment import child_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.agent_cli.workspace import Workspace
    from skillgit_backends.codex_exec.settings import Settings

HOW = "type 'codex login', or set CODEX_API_KEY in the environment"
KEY = "CODEX_API_KEY"
OTHER_KEY = "OPENAI_API_KEY"


def codex_home(workspace: Workspace) -> Path:
    """Return the call's own ``CODEX_HOME``."""
    return workspace.home / ".codex"


def prepare(settings: Settings, environ: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
    """Furnish the home of a call and return the environment of its process.

    Raises:
        FatalBackendError: The profile does not exist.
    """
    home, users = codex_home(workspace), users_home(environ)
    home.mkdir()
    account = users / "auth.json"
    keys = _keys(settings, environ, account)
    if not keys and not settings.base_url and account.is_file():
        (home / "auth.json").symlink_to(account.resolve())
    if settings.profile:
        profile = users / f"{settings.profile}.config.toml"
        if not profile.is_file():
            raise FatalBackendError(
                f"there is no profile {profile}", hint="check model.codex_exec_profile and CODEX_HOME"
            )
        workspace.place_private(home / profile.name, profile.read_text(encoding="utf-8"))
    return child_environment(environ, workspace, names=settings.pass_env, CODEX_HOME=str(home), **keys)


def is_missing(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Say whether Codex would call OpenAI with neither a key nor an account."""
    account = users_home(environ) / "auth.json"
    has_provider = settings.provider not in ("", "openai") or settings.profile
    return not has_provider and not account.is_file() and not _keys(settings, environ, account)


def key_name(settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the variable that OpenAI's key comes from, where it comes from one."""
    return settings.api_key_env if environ.get(settings.api_key_env) else OTHER_KEY


def users_home(environ: Mapping[str, str]) -> Path:
    """Return the user's own ``CODEX_HOME``."""
    own = environ.get("CODEX_HOME")
    return Path(own) if own else Path(environ.get("HOME") or Path.home()) / ".codex"


def _keys(settings: Settings, environ: Mapping[str, str], account: Path) -> dict[str, str]:
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if settings.provider not in ("", "openai"):
        # To a host that a configuration names goes only the key whose variable it names too.
        return {settings.api_key_env: key} if key and (settings.key_named or not settings.base_url) else {}
    if key:
        return {KEY: key}
    fallback = environ.get(OTHER_KEY, "")
    return {KEY: fallback} if fallback and not account.is_file() else {}
