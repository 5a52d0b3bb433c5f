"""Which model at which server answers: what makes the answers of two measurements comparable.

A name alone says little: two servers may call different weights the same, and one server may be restarted with others.
So the identity of a model is its backend, its name, the address that is asked, and what the server says about it.
Providers that fix what a name means are identified by backend and name, wherever they answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from skillgit.domain.ids import short_digest


class Provenance(StrEnum):
    """Whether what was recorded comes from the model that is asked now."""

    SAME = "same"
    UNKNOWN = "unknown"  # an older skillgit recorded it, without the server
    OTHER = "other"


_PORTS = {"http": 80, "https": 443}
_LONGEST_ADDRESS = 160  # characters, so that a trailer has room for it
_USUAL_PATHS = ("", "/", "/v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """The identity of the model that answers a role.

    Attributes:
        backend: The backend.
        model: Its name, as the configuration has it.
        address: Scheme, host, port and path of the server; empty for a backend that asks none.
        facts: What the server says about the model, such as its digest and size.
        is_pinned: Whether the server is a provider's own, whose names of models mean the same everywhere.
        variable: The environment variable that named the address; empty where a setting or a default did.
        is_assumed: Whether the server does not answer now, so that the facts are those of an earlier time.
        answers_as: The name of the only model that the server has, where that is another one than ``model``.
        names_deployments: Whether a name there says nothing of the model behind it, as a deployment's does not.
        role: What it is asked for: target, optimizer or judge; empty where that does not matter.
    """

    backend: str
    model: str
    address: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    is_pinned: bool = False
    variable: str = field(default="", compare=False)
    is_assumed: bool = field(default=False, compare=False)
    answers_as: str = field(default="", compare=False)
    names_deployments: bool = field(default=False, compare=False)
    role: str = field(default="", compare=False)

    @property
    def digest(self) -> str:
        """Identify address and facts; empty where backend and name identify the model already."""
        if not self.address or self.is_pinned:
            return ""
        return short_digest([self.address, *map(list, self.facts)])

    @property
    def key(self) -> str:
        """Identify the model among all that a ledger has answers of."""
        return short_digest([self.backend, self.model, self.address, *map(list, self.facts)])

    @property
    def phrase(self) -> str:
        """Describe the model in one phrase, such as ``openai_compatible qwen2.5 at 127.0.0.1:8081``."""
        return f"{self.backend} {self.model}" + (f" at {self.place}" if self.address else "")

    @property
    def warning(self) -> str:
        """Say that another model answers than the one that is named; empty where none is known to."""
        return self.surprise(self.answers_as) if self.answers_as else ""

    def surprise(self, answered_as: str) -> str:
        """Say that a reply comes from ``answered_as``; empty where that may be the model that was asked for.

        What a provider of its own calls its models is its affair: it answers by no name that it does not know.
        """
        is_own_name = not self.address or self.is_pinned or self.names_deployments
        if is_own_name or not answered_as or may_be_same_model(self.model, answered_as):
            return ""
        return f"warning: {self.place} answers as {answered_as}, not {self.model}"

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


_LATEST = re.compile(r"[-:@]latest$")
_DATED = re.compile(r"[-:@](?:\d{3,8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{2,4})$")
_MODEL_FILE = re.compile(r"\.(?:gguf|bin|safetensors)$")


def may_be_same_model(name: str, reply_name: str) -> bool:
    """Say whether a server that was asked for one name may mean the same model by the other one.

    A path and a maker in front of a name, ``latest``, the ending of a file, and the date or number of a snapshot that
    only one of them has do not matter, nor does a tag that the answer leaves out. Sizes and other words matter.

    >>> may_be_same_model("gpt-x", "gpt-x-2026-01-01"), may_be_same_model("maker/x-latest", "X-20260101")
    (True, True)
    >>> may_be_same_model("gpt-x", "gpt-x-mini"), may_be_same_model("llama:8b", "llama:70b")
    (False, False)
    """
    bare_name, bare_reply = _bare_name(name), _bare_name(reply_name)
    return bare_reply in {bare_name, bare_name.partition(":")[0], _undated(bare_name)} or bare_name == _undated(
        bare_reply
    )


def _bare_name(name: str) -> str:
    last_part = re.split(r"[/\\]", name.strip().rstrip("/\\"))[-1].lower()
    return _LATEST.sub("", _MODEL_FILE.sub("", last_part))


def _undated(name: str) -> str:
    return _DATED.sub("", name)


def without_credentials(url: str) -> str:
    """Return ``url`` as it was written, or where it has a user, a query or a fragment, without these."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not ("@" in parts.netloc or parts.query or parts.fragment):
        return url
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


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
    path = quote(parts.path.rstrip("/"), safe="/%:~._-+")
    address = f"{scheme}://{place}{path}"
    return (
        address if len(address) <= _LONGEST_ADDRESS else f"{address[: _LONGEST_ADDRESS // 2]}~{short_digest(address)}"
    )


def differing_facts(a: ServedModel, b: ServedModel) -> tuple[str, ...]:
    """Return the names of the facts that differ, in the order of ``a``; a fact that one of them lacks differs."""
    first, second = dict(a.facts), dict(b.facts)
    return tuple(name for name in {**first, **second} if first.get(name) != second.get(name))


_LONGEST_VALUE = 48  # characters of one fact, as a trailer has it
_LONGEST_FACTS = 150  # characters of all facts
_BETWEEN = "+"  # separates facts in a trailer


def compact_facts(facts: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return what a server says, in an order that is always the same, and short enough for a trailer.

    Empty values are not recorded. Of a long value the beginning and a digest remain, and of the facts that have
    no room a digest of them all, so that different facts stay different.
    """
    short_facts: list[tuple[str, str]] = []
    rest: list[list[str]] = []
    for name, value in sorted((name, str(value)) for name, value in facts.items() if value not in (None, "")):
        short_name, short_value = quote(name, safe="")[:20], _short(value)
        if rest or len(write_facts([*short_facts, (short_name, short_value)])) > _LONGEST_FACTS:
            rest.append([name, value])
        else:
            short_facts.append((short_name, short_value))
    return (*short_facts, *([("rest", short_digest(rest))] if rest else []))


def _short(value: str) -> str:
    if len(quote(value, safe="._:/-")) <= _LONGEST_VALUE:
        return value
    beginning = "".join(letter for letter in value[:24] if letter.isascii() and letter.isprintable())
    return f"{beginning}~{short_digest(value)}"


def write_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Return facts as one text, which :func:`read_facts` reads."""
    return _BETWEEN.join(f"{name}:{quote(value, safe='._:/-')}" for name, value in facts)


def read_facts(text: str) -> tuple[tuple[str, str], ...]:
    """Return the facts in ``text``; a ValueError if it has none."""
    pairs = [part.partition(":") for part in text.split(_BETWEEN)]
    if not all(name and colon for name, colon, _ in pairs):
        raise ValueError(text)
    return tuple((name, unquote(value)) for name, _, value in pairs)
