"""Owns the rule to whom a key may be sent, for all chat backends.

A key from a usual variable (``OPENAI_API_KEY``, ``ANTHROPIC_API_KEY`` and the like) goes to the provider's own host, or
to an address that the environment itself names. To a host that a configuration names goes only the key whose variable
the configuration names too (``api_key_env``), else none: configurations are passed on, and may come from anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_KEY = "none"  # sent where no key may go or none is known; local servers take anything


def server(url: str) -> str:
    """Return the host of ``url`` with its port, without a user."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def gets_usual_key(base_url: str, own: Iterable[str]) -> bool:
    """Say whether the key from a usual variable may go where a call goes.

    ``base_url`` is the address in the configuration, if any; ``own`` are the provider's, and those in the environment.
    """
    return not base_url or _origin(base_url) in {_origin(url) for url in own if url}


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url).scheme.lower(), server(url)
