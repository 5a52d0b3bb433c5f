"""Owns where a call goes and as whom, by settings and then the environment, and what a failure there means."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.errors import (
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    ConfigError,
    FatalBackendError,
    PromptTooLongError,
    RetryableBackendError,
)
from skillgit.plugin.backend import ModelServer
from skillgit_backends.backend_settings import NO_KEY, gets_usual_key, server
from skillgit_backends.openai_wire.dialects import LONGEST, withheld
from skillgit_backends.provider_messages import MOST_READ, asked_pause, is_unreached, lost_connection, mapping, quoted

if TYPE_CHECKING:
    from openai import APIStatusError

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Endpoint:
    """Where a call goes, and as whom; it has no repr, because it holds a key."""

    url: str  # of the API, or of the Azure resource
    key: str  # empty where tokens are used
    key_name: str  # the environment variable that the key came from; empty if there is none
    source: str = ""  # the setting or variable that says where the API is, or may
    azure: bool = False  # whether this is an Azure resource with deployments
    auth: str = "api_key"  # or azure_cli, managed_identity
    version: str = ""
    scope: str = AZURE_SCOPE
    client_id: str = ""

    @property
    def credential(self) -> str:
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


def require_address(variant: Variant, settings: Settings, environ: Mapping[str, str], role: str = "") -> None:
    """Refuse, as a ConfigError, a backend without a provider of its own of which neither says where to call."""
    if settings.base_url or Variables(environ, role).get(variant.url_variable) or variant.default_url(settings):
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
        url=url, source=source or f"model.{variant.name}_base_url", key=key or NO_KEY, key_name=name if key else ""
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
    usual = gets_usual_key(settings.azure_endpoint, [env_url])
    usual = usual or (url.lower().startswith("https://") and server(url).endswith(_AZURE_HOSTS))
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
        hint = f"export {name}, or set model.{variant.name}_auth_mode to azure_cli or managed_identity"
        raise FatalBackendError(f"{variant.name}: there is no key in the environment variable {name}", hint=hint)
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
        hint = "it must be api_key, azure_cli, managed_identity or openai_compatible"
        raise FatalBackendError(f"{variant.name}: AZURE_OPENAI_AUTH_MODE is '{value}'", hint=hint)
    return mode


def _is_covered(variables: Variables) -> bool:
    """Say whether ``OPENAI_BASE_URL`` goes before Azure; what a role has for itself goes before what is shared."""
    if not variables.get("OPENAI_BASE_URL"):
        return False
    return variables.is_own("OPENAI_BASE_URL") or not variables.is_own(_AZURE_ENDPOINT)


OVERFLOW = re.compile(
    r"context[_ ](?:length|window|size|limit)|prompt is too long|input is too long|too many (?:input )?tokens|"
    r"exceed\w* (?:the )?(?:available )?context",
    re.IGNORECASE,
)
POLICY = re.compile(r"content[_ ](?:filter|policy|management policy)|moderation|safety system", re.IGNORECASE)
EMPTY_PURSE = re.compile(
    r"insufficient[_ ](?:quota|balance)|credit balance|billing_hard_limit|out of credit", re.IGNORECASE
)
UNKNOWN_MODEL = re.compile(
    r"model_not_found|DeploymentNotFound|model\b.{0,80}\b(?:(?:does not|doesn't) exist|not found)|unknown model",
    re.IGNORECASE,
)
_CONVERSATION = re.compile(r"messages|input|prompt|contents?|file|image", re.IGNORECASE)
"""The parameters of a request that differ from call to call, by how their names begin."""
_SHARED = re.compile(
    r"max_(?:completion_|output_)?tokens|temperature|top_p|reasoning|tool[_ ]choice|thinking|response_format|"
    r"(?:unsupported|unknown|unrecognized|unexpected) (?:parameter|value|argument|field|request argument|keyword)|"
    r"extra inputs are not permitted",
    re.IGNORECASE,
)
"""Words of a server that complain of what all requests of a run have in common."""
_SAMPLING = re.compile(r"['\"`](top_p|seed|stop)['\"`]")
_REQUEST = frozenset({400, 413, 422})
_TOO_LARGE = 413
_RETRYABLE = frozenset({408, 409, 425, 429})
_CODES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "server_error": 500,
    "overloaded": 529,
    "timeout": 408,
    **dict.fromkeys(("invalid_request_error", "invalid_prompt"), 400),
}
_STATUSES = range(100, 600)
_SHORTEST_KEY = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFault:
    """What a server says went wrong; ``status`` is 0 where an answer of status 200 names a fault that is not known."""

    status: int
    message: str
    code: str = ""
    param: str = ""
    retry_after: float | None = None


def failure(error: Exception, endpoint: Endpoint, name: str) -> BackendError | None:
    """Return what ``error``, which the SDK or its transport raised, means; None if that is not known."""
    import openai  # noqa: PLC0415 - imported already: it raised the error

    if isinstance(error, openai.APIStatusError):
        return judged(_fault(error), endpoint, name)
    if (loss := lost_connection(error, endpoint.host, f"model.{name}_base_url")) is not None:
        return RetryableBackendError(f"{name}: {loss[0]}", hint=loss[1], sent=not is_unreached(error))
    if isinstance(error, openai.APITimeoutError) and not is_unreached(error):
        limit = f"model.{name}_timeout_s"
        problem = f"{name}: {endpoint.host} sent nothing for as long as {limit} allows"
        return BackendTimeoutError(problem, hint=f"raise {limit}")
    if isinstance(error, (openai.APIConnectionError, OSError)) or type(error).__module__.startswith(
        ("aiohttp.", "httpx2.", "httpx2_", "httpcore")
    ):
        cause = error.__cause__ or error
        reason = clean(str(cause), endpoint)
        return RetryableBackendError(
            f"{name}: the connection to {endpoint.host} broke: {type(cause).__name__}{f': {reason}' if reason else ''}",
            hint=f"check the network, and model.{name}_base_url where it is set",
            sent=not is_unreached(error),
        )
    if type(error).__module__.startswith("azure."):
        return _sign_in(error, endpoint, name)
    if isinstance(error, openai.OpenAIError):
        return RetryableBackendError(
            f"{name}: {endpoint.host} gave no usable answer: {clean(str(error), endpoint)}", hint=_ADDRESS.format(name)
        )
    return None


_ADDRESS = "check that model.{}_base_url is the address of an OpenAI-compatible API, with its /v1"


def judged(fault: ServerFault, endpoint: Endpoint, name: str) -> BackendError:
    error = _judged(fault, endpoint, name)
    error.status_code = fault.status or None
    return error


def _judged(fault: ServerFault, endpoint: Endpoint, name: str) -> BackendError:
    text, status = f"{fault.code} {fault.message}", fault.status
    reason = clean(fault.message, endpoint)
    if status == 402 or EMPTY_PURSE.search(text):  # noqa: PLR2004 - payment required
        return FatalBackendError(f"{name}: the quota at {endpoint.host} is used up: {reason}", hint="check the billing")
    if status == _TOO_LARGE or (OVERFLOW.search(text) and status < 500 and status != 429):  # noqa: PLR2004 - a server's own failures pass
        hint = "shorten the items or the skill, lower calls.max_output_tokens, or take another model"
        return PromptTooLongError(f"{name}: the prompt does not fit into the model's context: {reason}", hint=hint)
    if POLICY.search(text) and status in (0, 400, 403):
        return withheld(reason, name)
    if status in _RETRYABLE or status >= 500:  # noqa: PLR2004 - the server's own failures
        state = {429: "its rate limit is reached", 529: "it is overloaded"}.get(status, f"it answered {status}")
        return RetryableBackendError(
            f"{name}: {endpoint.host} cannot answer now: {state}{f': {reason}' if reason else ''}",
            hint="lower calls.concurrency, or wait for your quota" if status == 429 else "",  # noqa: PLR2004
            retry_after=fault.retry_after,
        )
    if status in (401, 403):
        # Providers quote keys here, so their words are not repeated.
        return FatalBackendError(f"{name}: {endpoint.host} refused the key ({status})", hint=_whose(endpoint, name))
    kind = BadRequestError if status in _REQUEST and _is_its_own(fault, text) else FatalBackendError
    return kind(
        f"{name}: {endpoint.host} refused the request{f' ({status})' if status else ''}: {reason}",
        hint=_hint(text, status, name),
    )


def _is_its_own(fault: ServerFault, text: str) -> bool:
    """Say whether a refusal is about the conversation; the caller decides where it may be either."""
    if fault.param:
        return _CONVERSATION.match(fault.param) is not None
    return not _SHARED.search(text) and not UNKNOWN_MODEL.search(text)


def embedded(error: object, endpoint: Endpoint, name: str) -> BackendError:
    """Return the error that the ``error`` of a body of status 200 is; gateways pass failures on in this way."""
    fields = mapping(error) or {"message": str(error)}
    code = fields.get("code") if fields.get("code") is not None else fields.get("type")
    status = code if isinstance(code, int) and code in _STATUSES else _CODES.get(str(code), 0)
    fault = ServerFault(
        status=status, message=_word(fields.get("message")), code=_word(code), param=_word(fields.get("param"))
    )
    return judged(fault, endpoint, name)


def clean(text: str, endpoint: Endpoint) -> str:
    """Return a provider's words on one line, not too long, and without the key."""
    secrets = (endpoint.key,) if len(endpoint.key) >= _SHORTEST_KEY else ()
    return quoted(text, *secrets, longest=LONGEST)


def _fault(error: APIStatusError) -> ServerFault:
    body = mapping(error.body)
    message = body.get("message") or body.get("detail") or body.get("error") or error.message
    return ServerFault(
        status=error.status_code,
        message=_word(message),
        code=_word(body.get("code")),
        param=_word(body.get("param")),
        retry_after=asked_pause(error.response.headers),
    )


def _word(value: object) -> str:
    return str(value or "")[:MOST_READ]


def _whose(endpoint: Endpoint, name: str) -> str:
    if endpoint.auth == "azure_cli":
        return "run 'az login' with an account that may use the deployment"
    if endpoint.auth == "managed_identity":
        return "give the managed identity the role 'Cognitive Services OpenAI User'"
    if endpoint.key == NO_KEY:
        return f"none was sent: name the environment variable that holds the key in model.{name}_api_key_env"
    return f"check the key in {endpoint.key_name} and what it is allowed to do"


def _hint(text: str, status: int, name: str) -> str:
    if UNKNOWN_MODEL.search(text):
        return "check the model's name in model.target or model.optimizer; with Azure it is the deployment's name"
    if status == 404:  # noqa: PLR2004 - not found
        return _ADDRESS.format(name)
    if "max_tokens" in text or "completion tokens" in text:
        return "lower calls.max_output_tokens"
    if "temperature" in text:
        return f"the model takes no such temperature: leave calls.temperature and model.{name}_temperature empty"
    if match := _SAMPLING.search(text):
        return f"the model takes no such {match[1]}: leave model.{match[1]} empty"
    if "reasoning" in text:
        return "the model takes no such reasoning effort: leave model.reasoning_effort empty"
    return "the request is not one that this model or server understands"


def _sign_in(error: Exception, endpoint: Endpoint, name: str) -> BackendError:
    exceptions = sys.modules["azure.core.exceptions"]
    reason = clean(str(error), endpoint)
    if isinstance(error, exceptions.ClientAuthenticationError):
        return FatalBackendError(f"{name}: signing in to Azure failed: {reason}", hint=_whose(endpoint, name))
    return RetryableBackendError(f"{name}: Azure's sign-in gave no answer: {reason}", hint=_whose(endpoint, name))
