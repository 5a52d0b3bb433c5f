"""Which model at which server answers: what makes the answers of two measurements comparable.

A name alone says little: two servers may call different weights the same, and one server may be restarted with others.
So the identity of a model is its backend, its name, the address that is asked, and what the server says about it.
Providers that fix what a name means are identified by backend and name, wherever they answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from skillgit.domain.ids import short_digest

_PORTS = {"http": 80, "https": 443}
_USUAL_PATHS = ("", "/", "/v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """The identity of the model that answers a role."""

    backend: str
    model: str
    address: str = ""  # as of :func:`normalised`; empty for a backend that asks no server
    facts: tuple[tuple[str, str], ...] = ()  # what the server says about the model, such as its digest and size
    is_pinned: bool = False  # whether the address is that of a provider whose names mean the same everywhere
    variable: str = field(default="", compare=False)  # the environment variable that named the address

    @property
    def digest(self) -> str:
        """Identify address and facts; empty where backend and name identify the model already."""
        if not self.address or self.is_pinned:
            return ""
        return short_digest([self.address, *map(list, self.facts)])

    @property
    def phrase(self) -> str:
        """Describe the model in one phrase, such as ``openai_compatible qwen2.5 at 127.0.0.1:8081``."""
        return f"{self.backend} {self.model}" + (f" at {self.place}" if self.address else "")

    @property
    def place(self) -> str:
        """The address as people say it: host and port, and the path where that is not the usual one."""
        parts = urlsplit(self.address)
        return parts.netloc + ("" if parts.path in _USUAL_PATHS else parts.path)

    @property
    def description(self) -> str:
        """The phrase with what the server says about the model."""
        facts = ", ".join(f"{name} {value}" for name, value in self.facts)
        return f"{self.phrase} ({facts})" if facts else self.phrase


def normalised(url: str) -> str:
    """Return scheme, host, port and path of ``url``: equal for equal addresses, and without user, query or fragment."""
    parts = urlsplit(url.strip())
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    host = "127.0.0.1" if host == "localhost" else f"[{host}]" if ":" in host else host
    try:
        port = parts.port
    except ValueError:  # urlsplit takes any text for a port
        port = None
    place = host if port in (None, _PORTS.get(scheme)) else f"{host}:{port}"
    return f"{scheme}://{place}{parts.path.rstrip('/')}"


def differing_facts(a: ServedModel, b: ServedModel) -> tuple[str, ...]:
    """Return the names of the facts that differ, in the order of ``a``; a fact that one of them lacks differs."""
    first, second = dict(a.facts), dict(b.facts)
    return tuple(name for name in {**first, **second} if first.get(name) != second.get(name))


def sorted_facts(facts: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return what a server says, without what it leaves empty, in an order that is always the same."""
    return tuple((name, str(value)) for name, value in sorted(facts.items()) if value not in (None, ""))
