"""Owns where a call goes and as whom: settings first, then the environment as it is at the time of the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skillgit.errors import FatalBackendError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.openai_wire.variant import Settings, Variant

OPENAI = "https://api.openai.com/v1"
AZURE_VERSION = "2024-12-01-preview"
AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
NO_KEY = "none"
"""Sent where no key is known; local servers take anything."""
_MODES = {
    "key": "api_key",
    **dict.fromkeys(("aad", "azure_ad"), "managed_identity"),
    **dict.fromkeys(("compat", "openai"), "openai_compatible"),
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Endpoint:
    """Where a call goes, and as whom; it shows itself to nobody.

    Attributes:
        url: Address of the API, or of the Azure resource.
        key: The key; empty where tokens are used.
        key_name: The environment variable that the key is looked for in, for messages.
        azure: Whether this is an Azure resource with deployments.
        auth: ``api_key``, ``azure_cli`` or ``managed_identity``.
        version: Version of Azure's API.
        scope: What a token is asked for.
        client_id: The user-assigned managed identity.
    """

    url: str
    key: str
    key_name: str
    azure: bool = False
    auth: str = "api_key"
    version: str = ""
    scope: str = AZURE_SCOPE
    client_id: str = ""

    @property
    def host(self) -> str:
        """The server's name, for messages."""
        return _server(self.url)

    @property
    def official(self) -> bool:
        """Whether OpenAI's own models answer here, which know all of OpenAI's parameters."""
        return self.azure or self.host in ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")


def find_endpoint(variant: Variant, settings: Settings, environ: Mapping[str, str]) -> Endpoint:
    """Return where to call.

    Raises:
        FatalBackendError: A key is needed and not there, or the settings contradict the environment.
    """
    if variant.azure and not settings.base_url:
        endpoint = _azure(variant, settings, environ)
        if endpoint is not None:
            return endpoint
    found = _first(variant.url_variables, environ)
    url = settings.base_url or environ.get(found, "") or variant.default_url(settings)
    # The key of one provider is not sent to another one that a configuration file names.
    own = not settings.base_url or variant.key_travels or _server(url) == _server(variant.default_url(settings))
    name = settings.api_key_env or (_first(variant.key_variables, environ) if own else "")
    key = environ.get(name, "").strip()
    if not key and (settings.api_key_env or (variant.needs_key and url == variant.default_url(settings))):
        missing = settings.api_key_env or variant.key_variables[0]
        raise FatalBackendError(
            f"{variant.name}: there is no key in the environment variable {missing}",
            hint=f"export {missing}, or name another variable in model.{variant.name}_api_key_env",
        )
    return Endpoint(url=url, key=key or NO_KEY, key_name=name)


def _server(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _first(names: tuple[str, ...], environ: Mapping[str, str]) -> str:
    return next((name for name in names if environ.get(name, "").strip()), "")


def _azure(variant: Variant, settings: Settings, environ: Mapping[str, str]) -> Endpoint | None:
    """Return an Azure endpoint, or a compatible one that the variables of Azure name; None if they name nothing."""
    url = settings.azure_endpoint or (
        "" if environ.get("OPENAI_BASE_URL") else environ.get("AZURE_OPENAI_ENDPOINT", "")
    )
    if not url:
        return None
    name = settings.api_key_env or "AZURE_OPENAI_API_KEY"
    key = environ.get(name, "").strip()
    given = (settings.auth_mode or environ.get("AZURE_OPENAI_AUTH_MODE", "")).lower()
    mode = _MODES.get(given, given) or ("api_key" if key else "azure_cli")
    if mode == "openai_compatible":
        return Endpoint(url=url, key=key or NO_KEY, key_name=name)
    if mode not in ("api_key", "azure_cli", "managed_identity"):
        raise FatalBackendError(
            f"{variant.name}: AZURE_OPENAI_AUTH_MODE is '{given}'",
            hint="it must be api_key, azure_cli, managed_identity or openai_compatible",
        )
    if mode == "api_key" and not key:
        raise FatalBackendError(
            f"{variant.name}: there is no key in the environment variable {name}",
            hint=f"export {name}, or set model.{variant.name}_auth_mode to azure_cli or managed_identity",
        )
    if mode == "api_key" and url.rstrip("/").endswith("/openai/v1"):
        return Endpoint(url=url, key=key, key_name=name)
    return Endpoint(
        url=url,
        key=key if mode == "api_key" else "",
        key_name=name,
        azure=True,
        auth=mode,
        version=settings.azure_api_version or environ.get("AZURE_OPENAI_API_VERSION", "") or AZURE_VERSION,
        scope=settings.azure_ad_scope or environ.get("AZURE_OPENAI_AD_SCOPE", "") or AZURE_SCOPE,
        client_id=settings.azure_client_id or environ.get("AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID", ""),
    )
