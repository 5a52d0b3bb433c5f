"""Owns the prices of a backend that costs nothing, and to whom a key may be sent.

A key from a usual variable (``OPENAI_API_KEY``, ``ANTHROPIC_API_KEY`` and the like) goes to the provider's own host, or
to an address that the environment itself names. To a host that a configuration names goes only the key whose variable
the configuration names too (``api_key_env``), else none: configurations are passed on, and may come from anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from skillgit.plugin.backend import Price


class Gratis(Mapping[str, Price]):
    """Has a price of zero for every model, and lists none."""

    def __getitem__(self, model: str) -> Price:
        return Price(usd_in=0.0, usd_out=0.0)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


NO_KEY = "none"  # sent where no key may go or none is known; local servers take anything


def server(url: str) -> str:
    """Return the host of ``url`` with its port, without a user."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def gets_usual_key(base_url: str, own: Iterable[str]) -> bool:
    """Say whether the usual key may go to ``base_url``; ``own`` are the provider's addresses and the environment's."""
    return not base_url or _origin(base_url) in {_origin(url) for url in own if url}


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url).scheme.lower(), server(url)
