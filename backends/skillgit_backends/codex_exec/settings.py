"""Owns the settings of the backend; the table is in the package's docstring."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from skillgit.errors import ConfigError
from skillgit_backends.backend_settings import FreeKey, read_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "codex_exec"
DEFAULT_TIMEOUT_S = 600.0
EFFORTS = ("", "none", "minimal", "low", "medium", "high", "xhigh", "max")
_KEYS = {
    "path": FreeKey(default="codex"),
    "sandbox": FreeKey(default="workspace-write", choices=("workspace-write", "read-only")),
    "profile": FreeKey(default=""),
    "reasoning_effort": FreeKey(default="", choices=EFFORTS),
    "timeout_s": FreeKey(default=DEFAULT_TIMEOUT_S),
    "model_provider": FreeKey(default=""),
    "base_url": FreeKey(default=""),
    "api_key_env": FreeKey(default="CODEX_API_KEY"),
    "request_retries": FreeKey(default=2.0),
    "network_access": FreeKey(default=False),
    "web_search": FreeKey(default=False),
    "pass_env": FreeKey(default=""),
    "approval_policy": FreeKey(default="never", choices=("never",)),
    "use_sdk": FreeKey(default="cli", choices=("cli", "auto")),
}
_PLAIN = re.compile(r"[A-Za-z0-9_-]*")
_OWN_PROVIDER = "skillgit"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexSettings:
    """The settings as given, or by default."""

    path: str
    sandbox: str
    profile: str
    reasoning_effort: str
    timeout_s: float
    provider: str
    base_url: str
    api_key_env: str
    key_named: bool
    request_retries: int
    network_access: bool
    web_search: bool
    pass_env: tuple[str, ...]


def read_settings(values: Mapping[str, object]) -> CodexSettings:
    """Return the settings.

    Raises:
        ConfigError: There is no such setting, or its value is not allowed.
    """
    read = read_keys(NAME, _KEYS, values)
    for key in ("profile", "model_provider"):
        if not _PLAIN.fullmatch(str(read[key])):
            raise ConfigError(
                f"model.{NAME}_{key} is '{read[key]}'", hint="a name has letters, digits, hyphens and underscores only"
            )
    if cast("float", read["timeout_s"]) <= 0:
        raise ConfigError(f"model.{NAME}_timeout_s is {read['timeout_s']}", hint="it must be more than 0")
    base_url = str(read["base_url"])
    if base_url and read["model_provider"] == "openai":
        raise ConfigError(
            f"model.{NAME}_base_url has no effect on the provider 'openai'",
            hint=f"give model.{NAME}_model_provider another name, or leave it empty",
        )
    return CodexSettings(
        path=str(read["path"]) or "codex",
        sandbox=str(read["sandbox"]),
        profile=str(read["profile"]),
        reasoning_effort=str(read["reasoning_effort"]),
        timeout_s=cast("float", read["timeout_s"]),
        provider=str(read["model_provider"]) or (_OWN_PROVIDER if base_url else ""),
        base_url=base_url,
        api_key_env=str(read["api_key_env"]),
        key_named="api_key_env" in values,
        request_retries=max(int(cast("float", read["request_retries"])), 0),
        network_access=bool(read["network_access"]),
        web_search=bool(read["web_search"]),
        pass_env=tuple(name.strip() for name in str(read["pass_env"]).split(",") if name.strip()),
    )
