"""Pages of the public web, opened for a model: no private address, no redirection, bounded in size and time."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from html.parser import HTMLParser
from urllib.parse import urlsplit

import aiohttp
from aiohttp.resolver import ThreadedResolver

MOST_BYTES = 1_000_000
_OK = 200
_PLAIN = ("text/", "application/json", "application/xhtml+xml", "application/xml")
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg"})


class _PublicResolver(ThreadedResolver):
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        """Resolve a name; an OSError if it leads to this machine or into a private network."""
        # The connection goes to what is returned here, so that a name cannot lead elsewhere afterwards.
        addresses = await super().resolve(host, port, family)
        if not all(is_public(entry["host"]) for entry in addresses):
            raise OSError("the address is not public")
        return addresses


def is_public(host: str) -> bool:
    """Say whether a numeric address is one of the public net."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    return address.is_global and not address.is_multicast and (inner is None or inner.is_global)


async def fetch(address: str, *, seconds: float) -> str:
    """Return the text of a page; a ValueError for the model if it cannot be had."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host or parts.username or parts.password:
        raise ValueError("only http and https addresses can be opened")
    if re.fullmatch(r"[\d.]+|.*:.*", host) and not is_public(host):
        raise ValueError("this address is not public")
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=_PublicResolver()), timeout=timeout
            ) as session,
            session.get(address, allow_redirects=False) as answer,
        ):
            if answer.status != _OK:
                raise ValueError(f"the page answers with status {answer.status}")
            if not answer.content_type.startswith(_PLAIN):
                raise ValueError(f"the page is not text but {answer.content_type}")
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) >= MOST_BYTES:
                    break
            kind, charset = answer.content_type, answer.charset or "utf-8"
    except TimeoutError as error:
        raise ValueError(f"the page did not answer within {seconds:g} seconds") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ValueError("the page cannot be reached") from error
    return await asyncio.to_thread(_text, bytes(body[:MOST_BYTES]), kind, charset)


def _text(body: bytes, kind: str, charset: str) -> str:
    try:
        text = body.decode(charset, errors="replace")
    except LookupError:
        text = body.decode(errors="replace")
    return visible(text) if kind in ("text/html", "application/xhtml+xml") else text


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self._unseen += tag in _UNSEEN
        self.pieces.append("\n" if tag in {"br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4"} else "")

    def handle_endtag(self, tag: str) -> None:
        self._unseen = max(0, self._unseen - (tag in _UNSEEN))

    def handle_data(self, data: str) -> None:
        self.pieces.append("" if self._unseen else data)


def visible(markup: str) -> str:
    r"""Return the words of a page that a reader sees.

    >>> visible('<h1>Ferry</h1><script>x()</script><p>It has <b>two</b> decks.')
    'Ferry\nIt has two decks.'
    """
    words = _Words()
    words.feed(markup)
    words.close()
    lines = (" ".join(line.split()) for line in "".join(words.pieces).splitlines())
    return "\n".join(line for line in lines if line)
