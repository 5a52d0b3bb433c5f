"""Owns the prices of a backend that costs nothing, where a call goes and as whom, and to whom a key may be sent.

A key from a usual variable (``OPENAI_API_KEY``, ``ANTHROPIC_API_KEY`` and the like) goes to the provider's own host, or
to an address that the environment itself names. To a host that a configuration names goes only the key whose variable
the configuration names too (``api_key_env``), else none: configurations are passed on, and may come from anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from skillgit.plugin.backend import Price


class FreePrices(Mapping[str, Price]):
    """Has a price of zero for every model, and lists none."""

    def __getitem__(self, model: str) -> Price:
        return Price(usd_in=0.0, usd_out=0.0)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
OFFICIAL = ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")
NO_KEY = "none"  # sent where no key may go or none is known; local servers take anything


def server(url: str) -> str:
    """Return the host of ``url`` with its port, without a user."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def gets_usual_key(base_url: str, own: Iterable[str]) -> bool:
    """Say whether the usual key may go to ``base_url``; ``own`` are the provider's addresses and the environment's."""
    return not base_url or _origin(base_url) in {_origin(url) for url in own if url}


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url).scheme.lower(), server(url)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Endpoint:
    """Where a call goes, and as whom; it has no repr, because it holds a key."""

    backend: str  # who calls
    url: str  # of the API, or of the Azure resource
    key: str  # empty where tokens are used
    key_name: str  # the environment variable that the key came from; empty if there is none
    api: str = "an OpenAI-compatible API, with its /v1"
    source: str = ""  # the setting or variable that says where the API is, or may
    azure: bool = False  # whether this is an Azure resource with deployments
    auth: str = "api_key"  # or bearer, azure_cli, managed_identity
    version: str = ""
    scope: str = AZURE_SCOPE
    client_id: str = ""

    @property
    def credential(self) -> str:
        if self.auth in ("azure_cli", "managed_identity"):
            return f"signed in by {self.auth}"
        return f"the key in {self.key_name}" if self.key_name else "no key"

    @property
    def host(self) -> str:
        return server(self.url)

    @property
    def official(self) -> bool:
        """Whether OpenAI's own models answer here, which know all of OpenAI's parameters."""
        return self.azure or self.host in OFFICIAL
