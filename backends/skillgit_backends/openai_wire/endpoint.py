"""Owns where a call goes and as whom, by settings and then the environment, in backends of OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import ModelServer
from skillgit.plugin.backend_settings import check_address
from skillgit_backends.backend_settings import AZURE_SCOPE, NO_KEY, OFFICIAL, Endpoint, gets_usual_key, server
from skillgit_backends.openai_wire.variant import Settings, Variant

OPENAI = "https://api.openai.com/v1"
AZURE_VERSION = "2024-12-01-preview"
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


@dataclass(frozen=True, slots=True, repr=False)
class Variables:
    """The environment as one role sees it; it has no repr, because it holds keys."""

    environ: Mapping[str, str]
    role: str = ""  # its variables are TARGET_X before X; empty knows the shared ones only

    def name(self, variable: str) -> str:
        """Return the name under which ``variable`` is set: the role's own, else the shared one."""
        own = f"{self.role.upper()}_{variable}"
        return own if self.role and self.environ.get(own, "").strip() else variable

    def get(self, variable: str) -> str:
        return self.exactly(self.name(variable))

    def exactly(self, name: str) -> str:
        """Return the value of the variable called ``name``, the same for all roles; empty if it is not set."""
        return self.environ.get(name, "").strip()

    def is_own(self, variable: str) -> bool:
        return self.name(variable) != variable


def require_address(variant: Variant, settings: Settings, environ: Mapping[str, str], role: str = "") -> None:
    """Refuse, as a ConfigError, a backend without a provider of its own of which neither says where to call."""
    variables = Variables(environ, role)
    if url := settings.base_url or variables.get(variant.url_variable) or variant.default_url(settings):
        check_address(variables.name(variant.url_variable), url, key=f"model.{variant.name}_api_key_env")
        return
    setting = f"model.{variant.name}_base_url"
    raise ConfigError(
        f"{setting} is not set, and {variant.name} calls no address but the one that you name",
        hint=f"set it, as in -o {setting}=http://127.0.0.1:8080/v1, or export {variant.url_variable}; "
        "skillgit doctor --local finds the servers of this machine",
    )


def find_endpoint(variant: Variant, settings: Settings, environ: Mapping[str, str], role: str = "") -> Endpoint:
    """Return where to call; ``role``'s variables go first. A FatalBackendError for a missing key or a contradiction."""
    variables = Variables(environ, role)
    if variant.azure and not settings.base_url and (endpoint := _azure(variant, settings, variables)) is not None:
        return endpoint
    require_address(variant, settings, environ, role)
    default, env_url = variant.default_url(settings), variables.get(variant.url_variable)
    url = settings.base_url or env_url or default
    own = [default, env_url, *(f"https://{host}" for host in OFFICIAL if server(default) in OFFICIAL)]
    usual = gets_usual_key(settings.base_url, own)
    name = settings.api_key_env or (variables.name(variant.key_variable) if usual else "")
    key = variables.exactly(name)
    if not key and (settings.api_key_env or (default and url == default)):
        missing = settings.api_key_env or variant.key_variable
        hint = f"export {missing}, or name another variable in model.{variant.name}_api_key_env"
        raise FatalBackendError(f"{variant.name}: there is no key in the environment variable {missing}", hint=hint)
    source = variables.name(variant.url_variable) if env_url and not settings.base_url else ""
    return Endpoint(
        backend=variant.name,
        url=url,
        source=source or f"model.{variant.name}_base_url",
        key=key or NO_KEY,
        key_name=name if key else "",
    )


def find_server(variant: Variant, settings: Settings, environ: Mapping[str, str], role: str = "") -> ModelServer | None:
    """Return where :func:`find_endpoint` would call, with or without a key; None if nothing names an address."""
    variables = Variables(environ, role)
    if variant.azure and not settings.base_url:
        env_url = variables.get(_AZURE_ENDPOINT)
        if url := settings.azure_endpoint or ("" if _is_covered(variables) else env_url):
            variable = "" if settings.azure_endpoint else variables.name(_AZURE_ENDPOINT)
            return ModelServer(url=url, variable=variable, names_deployments=True)
    env_url = "" if settings.base_url else variables.get(variant.url_variable)
    url = settings.base_url or env_url or variant.default_url(settings)
    if not url:
        return None
    return ModelServer(
        url=url,
        variable=variables.name(variant.url_variable) if env_url else "",
        is_pinned=server(url) in {*OFFICIAL, *variant.provider_hosts},
        names_deployments=server(url).endswith(_AZURE_HOSTS),
    )


def looked_at(variant: Variant) -> tuple[str, ...]:
    """Return the variables that say where ``variant`` calls and as whom."""
    azure = (_AZURE_ENDPOINT, _AZURE_KEY, "AZURE_OPENAI_AUTH_MODE", "AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID")
    return (variant.url_variable, variant.key_variable, *(azure if variant.azure else ()))


def _azure(variant: Variant, settings: Settings, variables: Variables) -> Endpoint | None:
    """Return an Azure endpoint, or a compatible one that the variables of Azure name; None if they name nothing."""
    env_url = variables.get(_AZURE_ENDPOINT)
    url = settings.azure_endpoint or ("" if _is_covered(variables) else env_url)
    if not url:
        return None
    source = f"model.{variant.name}_azure_endpoint" if settings.azure_endpoint else variables.name(_AZURE_ENDPOINT)
    check_address(source, url, key=f"model.{variant.name}_api_key_env")
    usual = gets_usual_key(settings.azure_endpoint, [env_url])
    usual = usual or (url.lower().startswith("https://") and server(url).endswith(_AZURE_HOSTS))
    name = settings.api_key_env or (variables.name(_AZURE_KEY) if usual else "")
    key = variables.exactly(name)
    mode = _mode(variant, settings, variables, key=key)
    if mode == "openai_compatible":
        return Endpoint(backend=variant.name, url=url, source=source, key=key or NO_KEY, key_name=name if key else "")
    if not usual and (mode != "api_key" or not settings.api_key_env):
        raise FatalBackendError(
            f"{variant.name}: the configuration names {server(url)}, which is none of Azure's hosts",
            hint=f"name the variable with its key in model.{variant.name}_api_key_env, or export {_AZURE_ENDPOINT}",
        )
    if mode == "api_key" and not key:
        hint = f"export {name}, or set model.{variant.name}_auth_mode to azure_cli or managed_identity"
        raise FatalBackendError(f"{variant.name}: there is no key in the environment variable {name}", hint=hint)
    if mode == "api_key" and url.rstrip("/").endswith("/openai/v1"):
        return Endpoint(backend=variant.name, url=url, source=source, key=key, key_name=name)
    return Endpoint(
        backend=variant.name,
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
        hint = "it must be api_key, azure_cli, managed_identity or openai_compatible"
        raise FatalBackendError(f"{variant.name}: AZURE_OPENAI_AUTH_MODE is '{value}'", hint=hint)
    return mode


def _is_covered(variables: Variables) -> bool:
    """Say whether ``OPENAI_BASE_URL`` goes before Azure; what a role has for itself goes before what is shared."""
    if not variables.get("OPENAI_BASE_URL"):
        return False
    return variables.is_own("OPENAI_BASE_URL") or not variables.is_own(_AZURE_ENDPOINT)
