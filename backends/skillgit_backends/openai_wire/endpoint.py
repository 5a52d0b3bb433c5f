"""Owns where a call goes and as whom: settings first, then the environment as it is at the time of the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import FatalBackendError
from skillgit_backends.openai_wire.environment_variables import Variables
from skillgit_backends.trusted_hosts import NO_KEY, gets_usual_key, server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit_backends.openai_wire.variant import Settings, Variant

OPENAI = "https://api.openai.com/v1"
AZURE_VERSION = "2024-12-01-preview"
AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
OFFICIAL = ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")
_AZURE_HOSTS = (
    *(".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"),
    *(".openai.azure.us", ".openai.azure.cn"),
)
_AZURE_ENDPOINT, _AZURE_KEY = "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"
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
        key_name: The environment variable that the key came from; empty if there is none.
        source: The setting or the environment variable that says where the API is, or may.
        azure: Whether this is an Azure resource with deployments.
        auth: ``api_key``, ``azure_cli`` or ``managed_identity``.
    """

    url: str
    key: str
    key_name: str
    source: str = ""
    azure: bool = False
    auth: str = "api_key"
    version: str = ""
    scope: str = AZURE_SCOPE
    client_id: str = ""

    @property
    def credential(self) -> str:
        """As whom a call is made, in words without a secret."""
        if self.auth != "api_key":
            return f"signed in by {self.auth}"
        return f"the key in {self.key_name}" if self.key_name else "no key"

    @property
    def host(self) -> str:
        return server(self.url)

    @property
    def official(self) -> bool:
        """Whether OpenAI's own models answer here, which know all of OpenAI's parameters."""
        return self.azure or self.host in OFFICIAL


def find_endpoint(variant: Variant, settings: Settings, environ: Mapping[str, str], role: str = "") -> Endpoint:
    """Return where to call; ``role`` has variables of its own before the shared ones.

    Raises:
        FatalBackendError: A key is needed and not there, or the settings contradict the environment.
    """
    variables = Variables(environ, role)
    if variant.azure and not settings.base_url:
        endpoint = _azure(variant, settings, variables)
        if endpoint is not None:
            return endpoint
    default, env_url = variant.default_url(settings), variables.exactly(variables.first(variant.url_variables))
    url = settings.base_url or env_url or default
    own = [default, env_url, *(f"https://{host}" for host in OFFICIAL if server(default) in OFFICIAL)]
    usual = gets_usual_key(settings.base_url, own)
    name = settings.api_key_env or (variables.first(variant.key_variables) if usual else "")
    key = variables.exactly(name)
    if not key and (settings.api_key_env or (variant.needs_key and url == default)):
        missing = settings.api_key_env or variant.key_variables[0]
        raise FatalBackendError(
            f"{variant.name}: there is no key in the environment variable {missing}",
            hint=f"export {missing}, or name another variable in model.{variant.name}_api_key_env",
        )
    source = variables.first(variant.url_variables) if env_url and not settings.base_url else ""
    return Endpoint(url=url, source=source or f"model.{variant.name}_base_url", key=key or NO_KEY, key_name=name)


def looked_at(variant: Variant) -> tuple[str, ...]:
    """Return the variables that say where ``variant`` calls and as whom."""
    azure = (_AZURE_ENDPOINT, _AZURE_KEY, "AZURE_OPENAI_AUTH_MODE", "AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID")
    return (*variant.url_variables, *variant.key_variables, *(azure if variant.azure else ()))


def _azure(variant: Variant, settings: Settings, variables: Variables) -> Endpoint | None:
    """Return an Azure endpoint, or a compatible one that the variables of Azure name; None if they name nothing."""
    env_url = variables.get(_AZURE_ENDPOINT)
    url = settings.azure_endpoint or ("" if _is_covered(variables) else env_url)
    if not url:
        return None
    source = f"model.{variant.name}_azure_endpoint" if settings.azure_endpoint else variables.name(_AZURE_ENDPOINT)
    usual = gets_usual_key(settings.azure_endpoint, [env_url]) or _is_azure(url)
    name = settings.api_key_env or (variables.name(_AZURE_KEY) if usual else "")
    key = variables.exactly(name)
    mode = _mode(variant, settings, variables, key=key)
    if mode == "openai_compatible":
        return Endpoint(url=url, source=source, key=key or NO_KEY, key_name=name if key else "")
    if not usual and (mode != "api_key" or not settings.api_key_env):
        raise FatalBackendError(
            f"{variant.name}: the configuration names {server(url)}, which is none of Azure's hosts",
            hint=f"name the variable with its key in model.{variant.name}_api_key_env, or export {_AZURE_ENDPOINT}",
        )
    if mode == "api_key" and not key:
        raise FatalBackendError(
            f"{variant.name}: there is no key in the environment variable {name}",
            hint=f"export {name}, or set model.{variant.name}_auth_mode to azure_cli or managed_identity",
        )
    if mode == "api_key" and url.rstrip("/").endswith("/openai/v1"):
        return Endpoint(url=url, source=source, key=key, key_name=name)
    return Endpoint(
        url=url,
        source=source,
        key=key if mode == "api_key" else "",
        key_name=name,
        azure=True,
        auth=mode,
        version=settings.azure_api_version or variables.get("AZURE_OPENAI_API_VERSION") or AZURE_VERSION,
        scope=settings.azure_ad_scope or variables.get("AZURE_OPENAI_AD_SCOPE") or AZURE_SCOPE,
        client_id=settings.azure_client_id or variables.get("AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID"),
    )


def _mode(variant: Variant, settings: Settings, variables: Variables, *, key: str) -> str:
    value = (settings.auth_mode or variables.get("AZURE_OPENAI_AUTH_MODE")).lower()
    mode = _MODES.get(value, value) or ("api_key" if key else "azure_cli")
    if mode not in ("api_key", "azure_cli", "managed_identity", "openai_compatible"):
        raise FatalBackendError(
            f"{variant.name}: AZURE_OPENAI_AUTH_MODE is '{value}'",
            hint="it must be api_key, azure_cli, managed_identity or openai_compatible",
        )
    return mode


def _is_covered(variables: Variables) -> bool:
    """Say whether ``OPENAI_BASE_URL`` goes before Azure; what a role has for itself goes before what is shared."""
    if not variables.get("OPENAI_BASE_URL"):
        return False
    return variables.is_own("OPENAI_BASE_URL") or not variables.is_own(_AZURE_ENDPOINT)


def _is_azure(url: str) -> bool:
    return url.lower().startswith("https://") and server(url).endswith(_AZURE_HOSTS)
