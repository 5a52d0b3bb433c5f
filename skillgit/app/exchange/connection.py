"""How a use case talks to another repository: who is there to answer git's questions, and to watch it work."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from skillgit.app.workspace.context import Context
from skillgit.errors import UsageError
from skillgit.plugin.redaction import redact
from skillgit.store.exchange.transport import RemoteConnection, unheard


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """The person at the other end of the program, if there is one."""

    answers: bool = False  # whether someone is there to type a password
    watches: bool = False  # whether someone watches, so that git shall report progress
    # is given each line of git or the host, with the sign that ends it; a carriage return for one that the next
    # one replaces
    tell: Callable[[str, str], None] = field(default=unheard)


def line_for(context: Context, listener: Listener) -> RemoteConnection:
    return RemoteConnection(environ=context.environ, asks=listener.answers, shows=listener.watches, tell=listener.tell)


_HELPER = re.compile(r"[A-Za-z0-9-]+::")
"""How an address begins that git hands to a remote helper."""


def check_address(url: str) -> None:
    """Refuse an address that git would write into its configuration together with a credential."""
    if _HELPER.match(url):
        raise UsageError(
            f"the address '{redact(url)}' names a program instead of a host",
            hint="skillgit takes what git itself reaches: https, ssh, file, or a path",
        )
    if holds_credential(url):
        raise UsageError(
            "the address holds a password or a token, which git would keep in its configuration",
            hint="leave it out: git asks for it, and git help credentials says how it is remembered safely",
        )


def holds_credential(url: str) -> bool:
    try:
        password = urlsplit(url).password if "://" in url else None
    except ValueError:
        password = None
    return bool(password) or redact(url) != url
