"""Owns what is taken from a provider of any kind: objects of JSON, words for people, and the pause that it asks for."""

from __future__ import annotations

import email.utils
import math
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

from skillgit.errors import behind
from skillgit.plugin.redaction import redact

_UNREACHED = (
    *("ClientConnectorError", "ClientConnectorDNSError", "ClientConnectorCertificateError", "ConnectError"),
    *("ConnectionTimeoutError", "ConnectTimeout"),
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_READ = 8_000  # characters of a provider's words that are looked at


def mapping(value: object) -> Mapping[str, object]:
    """Return ``value`` if it is an object of JSON, else an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def quoted(text: str, *secrets: str, longest: int) -> str:
    """Return a provider's words on one line without ``secrets``, then cut, as half a key would not be recognised."""
    line = " ".join(text[:MOST_READ].split())
    if len(text) > MOST_READ:
        line = line.rpartition(" ")[0]
    for secret in secrets:
        line = line.replace(secret, "…")
    return redact(line)[:longest]


def is_unreached(error: BaseException) -> bool:
    """Say whether ``error`` comes of a connection that was never there, so that nothing was sent."""
    return any(
        isinstance(cause, ConnectionRefusedError) or type(cause).__name__ in _UNREACHED for cause in behind(error)
    )


def lost_connection(error: BaseException, host: str, setting: str) -> tuple[str, str] | None:
    """Return in words why there is no connection, and what helps; None if ``error`` does not come of that.

    The SDKs take some of these for a timeout, which patience would not help.
    """
    causes = list(behind(error))
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"the host {host} is not known", f"check the name in {setting}, and the network"
        if isinstance(cause, ConnectionRefusedError):
            return f"nothing listens at {host}", _start(host, setting)
        if isinstance(cause, ssl.SSLError):
            return f"there is no secure connection to {host}: {cause.reason or cause}", f"check the https of {setting}"
        if isinstance(cause, ConnectionError):
            return f"{host} closed the connection ({type(cause).__name__})", "look at the server's own messages"
    names = {type(cause).__name__ for cause in causes}
    if "ConnectTimeout" in names or "ConnectionTimeoutError" in names:
        return f"no connection to {host} came about in time", _start(host, setting)
    return None


def _start(host: str, setting: str) -> str:
    if host.rpartition(":")[0] in LOOPBACK:
        return f"start it, or check {setting}; skillgit doctor --local lists the servers of this machine"
    return f"check {setting}, and that the server runs"


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, which it writes as a number or as a date; None if it does not."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return _seconds(float(headers.get("retry-after-ms", "")) / 1000)
    with suppress(ValueError):
        return _seconds(float(value))
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        return _seconds((email.utils.parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


def _seconds(value: float) -> float | None:
    return max(0.0, value) if math.isfinite(value) else None
