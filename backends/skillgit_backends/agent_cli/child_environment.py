"""Owns which variables of this process an agent's process may see: those named here, and what its backend adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit_backends.agent_cli.workspace import CallWorkspace

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
ALLOWED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
)
"""What a program needs to be found, to write text and to reach its provider; credentials are not among it."""
_SHORTEST_SECRET = 8


def child_environment(
    environ: Mapping[str, str], workspace: CallWorkspace, *, names: Sequence[str] = (), **variables: str
) -> dict[str, str]:
    """Return the environment of an agent's process; an empty value of ``variables`` leaves one out."""
    base = {name: environ[name] for name in (*ALLOWED, *names) if name in environ}
    own = {"HOME": str(workspace.home), "TMPDIR": str(workspace.temporary), "TERM": "dumb", "NO_COLOR": "1"}
    return base | own | {name: value for name, value in variables.items() if value}


def without_secrets(text: str, environment: Mapping[str, str], secrets: Sequence[str]) -> str:
    """Return ``text`` without the values of the variables called ``secrets``."""
    for name in secrets:
        value = environment.get(name, "")
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "[redacted]")
    return text
