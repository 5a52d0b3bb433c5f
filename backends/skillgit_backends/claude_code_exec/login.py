"""Owns how a call of Claude Code gets at its model: a key or a token in its environment, or a copy of the account."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit_backends.agent_cli.child_environment import child_environment
from skillgit_backends.trusted_hosts import NO_KEY, gets_usual_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.agent_cli.workspace import Workspace
    from skillgit_backends.claude_code_exec.settings import Settings

HOW = "type 'claude auth login', or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in the environment"
KEY = "ANTHROPIC_API_KEY"
TOKENS = ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_BASE_URL = "ANTHROPIC_BASE_URL"
_OWN = "https://api.anthropic.com"
_ACCOUNT = ".credentials.json"


def prepare(settings: Settings, environ: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
    """Furnish the home of a call and return the environment of its process."""
    credential = _credential(settings, environ)
    if not credential:
        _copy_account(environ, workspace)
    variables = {
        _BASE_URL: settings.base_url or environ.get(_BASE_URL, ""),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",  # a title is another request to the model
        "CLAUDE_CODE_MAX_RETRIES": str(settings.request_retries),
        "DISABLE_AUTOUPDATER": "1",
        "MAX_THINKING_TOKENS": str(settings.max_thinking_tokens or ""),
        "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1" if settings.sandbox and "Bash" in settings.tools else "",
        "IS_SANDBOX": "1" if settings.allow_root else "",  # else it refuses to bypass permissions as root
    }
    return child_environment(environ, workspace, names=settings.pass_env, **variables, **credential)


def _credential(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    if not settings.key_named and not gets_usual_key(settings.base_url, (_OWN, environ.get(_BASE_URL, ""))):
        return {KEY: NO_KEY}
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if key:
        return {KEY: key}
    return next(({name: environ[name]} for name in TOKENS if environ.get(name)), {})


def _copy_account(environ: Mapping[str, str], workspace: Workspace) -> None:
    """Copy the account without what renews it, as the program does itself for its helpers."""
    own = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(own) if own else Path(environ.get("HOME") or Path.home()) / ".claude"
    with suppress(OSError, ValueError, AttributeError, KeyError):
        account = json.loads((folder / _ACCOUNT).read_text(encoding="utf-8"))
        account["claudeAiOauth"].pop("refreshToken", None)
        workspace.place_private(workspace.home / ".claude" / _ACCOUNT, json.dumps(account))
