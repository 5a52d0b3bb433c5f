"""Owns the settings of the backend; the table is in the package's docstring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from skillgit.errors import ConfigError
from skillgit_backends.free_keys import FreeKey, read_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "claude_code_exec"
DEFAULT_TIMEOUT_S = 600.0
MODES = ("dontAsk", "default", "acceptEdits", "auto", "plan", "bypassPermissions")
_KEYS = {
    "path": FreeKey(default="claude"),
    "effort": FreeKey(default="", choices=("", "low", "medium", "high", "xhigh", "max")),
    "timeout_s": FreeKey(default=DEFAULT_TIMEOUT_S),
    "tools": FreeKey(default="Read,Skill"),
    "allowed_tools": FreeKey(default=""),
    "permission_mode": FreeKey(default="dontAsk", choices=MODES),
    "sandbox": FreeKey(default=True),
    "allow_root": FreeKey(default=False),
    "max_thinking_tokens": FreeKey(default=0.0),
    "request_retries": FreeKey(default=2.0),
    "base_url": FreeKey(default=""),
    "api_key_env": FreeKey(default="ANTHROPIC_API_KEY"),
    "pass_env": FreeKey(default=""),
    "use_sdk": FreeKey(default="cli", choices=("cli", "auto")),
    "profile": FreeKey(default="", choices=("",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCodeSettings:
    """The settings as given, or by default."""

    path: str
    effort: str
    timeout_s: float
    tools: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    permission_mode: str
    sandbox: bool
    allow_root: bool
    max_thinking_tokens: int
    request_retries: int
    base_url: str
    api_key_env: str
    key_named: bool
    pass_env: tuple[str, ...]


def read_settings(values: Mapping[str, object]) -> ClaudeCodeSettings:
    """Return the settings.

    Raises:
        ConfigError: There is no such setting, or its value is not allowed.
    """
    read = read_keys(NAME, _KEYS, values)
    if cast("float", read["timeout_s"]) <= 0:
        raise ConfigError(f"model.{NAME}_timeout_s is {read['timeout_s']}", hint="it must be more than 0")
    return ClaudeCodeSettings(
        path=str(read["path"]) or "claude",
        effort=str(read["effort"]),
        timeout_s=cast("float", read["timeout_s"]),
        tools=_names(read["tools"]),
        allowed_tools=_names(read["allowed_tools"]),
        permission_mode=str(read["permission_mode"]),
        sandbox=bool(read["sandbox"]),
        allow_root=bool(read["allow_root"]),
        max_thinking_tokens=max(int(cast("float", read["max_thinking_tokens"])), 0),
        request_retries=max(int(cast("float", read["request_retries"])), 0),
        base_url=str(read["base_url"]),
        api_key_env=str(read["api_key_env"]),
        key_named="api_key_env" in values,
        pass_env=_names(read["pass_env"]),
    )


def _names(value: object) -> tuple[str, ...]:
    return tuple(name.strip() for name in str(value).split(",") if name.strip())
