"""Owns what a failure of a provider means, whichever SDK, transport or answer says so, and its words for people."""

from __future__ import annotations

import email.utils
import math
import re
import socket
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from skillgit.errors import (
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    FatalBackendError,
    PromptTooLongError,
    RetryableBackendError,
    behind,
)
from skillgit.plugin.backend import Reply, Request
from skillgit.wire import WireFormat
from skillgit.wire.json_values import Fields, fields_at
from skillgit.wire.wire_format import MOST_READ, quoted, withheld
from skillgit_backends.backend_settings import NO_KEY, Endpoint

OVERFLOW = re.compile(
    r"context[_ ](?:length|window|size|limit)|prompt is too long|input is too long|too many (?:input )?tokens|"
    r"exceed\w* (?:the )?(?:available )?context",
    re.IGNORECASE,
)
POLICY = re.compile(
    r"content[_ ](?:filter|policy|management policy)|moderation|safety system|usage polic", re.IGNORECASE
)
NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance)|credit balance|billing_hard_limit|out of credit", re.IGNORECASE
)
UNKNOWN_MODEL = re.compile(
    r"model_not_found|DeploymentNotFound|model\b.{0,80}\b(?:(?:does not|doesn't) exist|not found)|unknown model|"
    r"not_found_error model:",
    re.IGNORECASE,
)
_CONVERSATION = re.compile(r"messages|input|system|prompt|contents?|file|image", re.IGNORECASE)
"""The parameters of a request that differ from call to call, by how their names begin."""
_SHARED = re.compile(
    r"max_(?:completion_|output_)?tokens|temperature|top_p|reasoning|tool[_ ]choice|thinking|response_format|"
    r"(?:unsupported|unknown|unrecognized|unexpected) (?:parameter|value|argument|field|request argument|keyword)|"
    r"extra inputs are not permitted",
    re.IGNORECASE,
)
"""Words of a server that complain of what all requests of a run have in common."""
_SAMPLING = re.compile(r"['\"`](top_p|seed|stop)['\"`]")
_PARAMETER = re.compile(r"([a-z_]+(?:\.\w+)*): ")
"""How Anthropic's API begins what it says of a parameter."""
_REQUEST = frozenset({400, 413, 422})
_TOO_LARGE = 413
_RETRYABLE = frozenset({408, 409, 425, 429})
_CODES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "server_error": 500,
    "api_error": 500,
    "timeout_error": 504,
    "timeout": 408,
    **dict.fromkeys(("overloaded", "overloaded_error"), 529),
    **dict.fromkeys(("invalid_request_error", "invalid_prompt"), 400),
}
_STATUSES = range(100, 600)
_SHORTEST_KEY = 6
_OK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFault:
    """What a server says went wrong; ``status`` is 0 where an answer of status 200 names a fault that is not known."""

    status: int
    message: str
    code: str = ""
    param: str = ""
    retry_after: float | None = None


def failure(error: Exception, endpoint: Endpoint) -> BackendError | None:
    """Return what ``error``, which an SDK or its transport raised, means; None if that is not known.

    The two SDKs come from one generator: they call the same things by the same names.
    """
    name, module = endpoint.backend, type(error).__module__
    sdk = sys.modules.get(module.partition(".")[0])
    if isinstance(error.__cause__, BackendError):
        return error.__cause__  # the client's own refusal, which an SDK takes for a broken connection
    if isinstance(error, getattr(sdk, "APIStatusError", ())):
        return judge(_fault(error), endpoint)
    if (loss := lost_connection(error, endpoint.host, f"model.{name}_base_url")) is not None:
        return RetryableBackendError(f"{name}: {loss[0]}", hint=loss[1], sent=not is_unreached(error))
    if isinstance(error, getattr(sdk, "APITimeoutError", ())) and not is_unreached(error):
        limit = f"model.{name}_timeout_s"
        problem = f"{name}: {endpoint.host} sent nothing for as long as {limit} allows"
        return BackendTimeoutError(problem, hint=f"raise {limit}")
    is_transport = module.startswith(("aiohttp", "httpx2", "httpcore"))
    if is_transport or isinstance(error, (OSError, getattr(sdk, "APIConnectionError", OSError))):
        cause = error.__cause__ or error
        reason = clean(str(cause), endpoint)
        return RetryableBackendError(
            f"{name}: the connection to {endpoint.host} broke: {type(cause).__name__}{f': {reason}' if reason else ''}",
            hint=f"check the network, and model.{name}_base_url where it is set",
            sent=not is_unreached(error),
        )
    if module.startswith("azure."):
        return _sign_in(error, endpoint)
    if isinstance(error, (getattr(sdk, "OpenAIError", ()), getattr(sdk, "AnthropicError", ()))):
        return RetryableBackendError(
            f"{name}: {endpoint.host} gave no usable answer: {clean(str(error), endpoint)}", hint=_address(endpoint)
        )
    return None


def _address(endpoint: Endpoint) -> str:
    return f"check that model.{endpoint.backend}_base_url is the address of {endpoint.api}"


def judge(fault: ServerFault, endpoint: Endpoint) -> BackendError:
    """Return what ``fault`` means for the call, and for others."""
    error = _judge(fault, endpoint)
    error.status_code = fault.status or None
    return error


def _judge(fault: ServerFault, endpoint: Endpoint) -> BackendError:
    text, status, where = f"{fault.code} {fault.message}", fault.status, f"{endpoint.backend}: {endpoint.host}"
    reason = clean(fault.message, endpoint)
    if status == 402 or NO_CREDIT.search(text):  # noqa: PLR2004 - payment required
        sentence = f"{endpoint.backend}: the quota at {endpoint.host} is used up: {reason}"
        return FatalBackendError(sentence, hint="check the billing")
    if status == _TOO_LARGE or (OVERFLOW.search(text) and status < 500 and status != 429):  # noqa: PLR2004 - a server's own failures pass
        hint = "shorten the items or the skill, lower calls.max_output_tokens, or take another model"
        sentence = f"{endpoint.backend}: the prompt does not fit into the model's context: {reason}"
        return PromptTooLongError(sentence, hint=hint)
    if POLICY.search(text) and status in (0, 400, 403, 422):
        return withheld(reason, endpoint.backend)
    if status in _RETRYABLE or status >= 500:  # noqa: PLR2004 - the server's own failures
        state = {429: "its rate limit is reached", 529: "it is overloaded"}.get(status, f"it answered {status}")
        return RetryableBackendError(
            f"{where} cannot answer now: {state}{f': {reason}' if reason else ''}",
            hint="lower calls.concurrency, or wait for your quota" if status == 429 else "",  # noqa: PLR2004
            retry_after=fault.retry_after,
        )
    if status in (401, 403):
        # Providers quote keys here, so their words are not repeated.
        return FatalBackendError(f"{where} refused the key ({status})", hint=_whose(endpoint))
    kind = BadRequestError if status in _REQUEST and _is_its_own(fault, text) else FatalBackendError
    sentence = f"{where} refused the request{f' ({status})' if status else ''}: {reason}"
    return kind(sentence, hint=_hint(text, status, endpoint))


def _is_its_own(fault: ServerFault, text: str) -> bool:
    """Say whether a refusal is about the conversation; the caller decides where it may be either."""
    if fault.param:
        return _CONVERSATION.match(fault.param) is not None
    return not _SHARED.search(text) and not UNKNOWN_MODEL.search(text)


def embedded(error: object, endpoint: Endpoint) -> BackendError:
    """Return the error that the ``error`` of a body of status 200 is; gateways pass failures on in this way."""
    fields = fields_at(error) or {"message": str(error)}
    code = fields.get("code") if fields.get("code") is not None else fields.get("type")
    status = code if isinstance(code, int) and code in _STATUSES else _CODES.get(str(code), 0)
    fault = ServerFault(
        status=status, message=_word(fields.get("message")), code=_word(code), param=_word(fields.get("param"))
    )
    return judge(fault, endpoint)


def read_reply(
    wire: WireFormat, document: Fields, request: Request, endpoint: Endpoint, problem: BackendError | None = None
) -> Reply:
    """Return the reply in an answer of status 200, unless that is an error, as in the middle of a stream."""
    if problem is None and document.get("error"):
        problem = embedded(document["error"], endpoint)
    if problem is None:
        return wire.read_reply(document, request, endpoint.backend)
    problem.usage = wire.read_billed(document)
    raise problem


def clean(text: str, endpoint: Endpoint) -> str:
    """Return a provider's words on one line, not too long, and without the key."""
    secrets = (endpoint.key,) if len(endpoint.key) >= _SHORTEST_KEY else ()
    return quoted(text, *secrets)


def _fault(error: Any) -> ServerFault:  # noqa: ANN401 - an APIStatusError of either SDK
    body = fields_at(error.body)
    is_anthropic = body.get("type") == "error"
    body = fields_at(body, "error") or body
    message = _word(body.get("message") or body.get("detail") or body.get("error") or error.message)
    begin = _PARAMETER.match(message) if is_anthropic else None
    code, status = _word(body.get("code") or (body.get("type") if is_anthropic else "")), error.status_code
    return ServerFault(
        status=_CODES.get(code, status) if status == _OK else status,  # one in the middle of a stream has no other
        message=message,
        code=code,
        param=_word(body.get("param")) or (begin[1] if begin else ""),
        retry_after=asked_pause(error.response.headers),
    )


def _word(value: object) -> str:
    return str(value or "")[:MOST_READ]


def _whose(endpoint: Endpoint) -> str:
    if endpoint.auth == "azure_cli":
        return "run 'az login' with an account that may use the deployment"
    if endpoint.auth == "managed_identity":
        return "give the managed identity the role 'Cognitive Services OpenAI User'"
    if endpoint.key == NO_KEY:
        name = endpoint.backend
        return f"none was sent: name the environment variable that holds the key in model.{name}_api_key_env"
    return f"check the key in {endpoint.key_name} and what it is allowed to do"


def _hint(text: str, status: int, endpoint: Endpoint) -> str:
    if UNKNOWN_MODEL.search(text):
        return "check the model's name in model.target or model.optimizer; with Azure it is the deployment's name"
    if status == 404:  # noqa: PLR2004 - not found
        return _address(endpoint)
    if "max_tokens" in text or "completion tokens" in text:
        return "lower calls.max_output_tokens"
    if "temperature" in text:
        own = f"model.{endpoint.backend}_temperature"
        keys = "calls.temperature" if endpoint.backend == "claude_chat" else f"calls.temperature and {own}"
        return f"the model takes no such temperature: leave {keys} empty"
    if match := _SAMPLING.search(text):
        return f"the model takes no such {match[1]}: leave model.{match[1]} empty"
    if "reasoning" in text:
        return "the model takes no such reasoning effort: leave model.reasoning_effort empty"
    return "the request is not one that this model or server understands"


def _sign_in(error: Exception, endpoint: Endpoint) -> BackendError:
    exceptions = sys.modules["azure.core.exceptions"]
    name, reason = endpoint.backend, clean(str(error), endpoint)
    if isinstance(error, exceptions.ClientAuthenticationError):
        return FatalBackendError(f"{name}: signing in to Azure failed: {reason}", hint=_whose(endpoint))
    return RetryableBackendError(f"{name}: Azure's sign-in gave no answer: {reason}", hint=_whose(endpoint))


_UNREACHED = (
    *("ClientConnectorError", "ClientConnectorDNSError", "ClientConnectorCertificateError", "ConnectError"),
    *("ConnectionTimeoutError", "ConnectTimeout"),
)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def is_unreached(error: BaseException) -> bool:
    """Say whether ``error`` comes of a connection that was never there, so that nothing was sent."""
    return any(
        isinstance(cause, ConnectionRefusedError) or type(cause).__name__ in _UNREACHED for cause in behind(error)
    )


def lost_connection(error: BaseException, host: str, setting: str) -> tuple[str, str] | None:
    """Return in words why there is no connection, and what helps; None if ``error`` does not come of that.

    The SDKs take some of these for a timeout, which patience would not help.
    """
    causes = list(behind(error))
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"the host {host} is not known", f"check the name in {setting}, and the network"
        if isinstance(cause, ConnectionRefusedError):
            return f"nothing listens at {host}", _start(host, setting)
        if isinstance(cause, ssl.SSLError):
            return f"there is no secure connection to {host}: {cause.reason or cause}", f"check the https of {setting}"
        if isinstance(cause, ConnectionError):
            return f"{host} closed the connection ({type(cause).__name__})", "look at the server's own messages"
    names = {type(cause).__name__ for cause in causes}
    if "ConnectTimeout" in names or "ConnectionTimeoutError" in names:
        return f"no connection to {host} came about in time", _start(host, setting)
    return None


def _start(host: str, setting: str) -> str:
    if host.rpartition(":")[0] in LOOPBACK:
        return f"start it, or check {setting}; skillgit doctor --local lists the servers of this machine"
    return f"check {setting}, and that the server runs"


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, which it writes as a number or as a date; None if it does not."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return _seconds(float(headers.get("retry-after-ms", "")) / 1000)
    with suppress(ValueError):
        return _seconds(float(value))
    with suppress(ValueError, TypeError, OverflowError, IndexError):
        return _seconds((email.utils.parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


def _seconds(value: float) -> float | None:
    return max(0.0, value) if math.isfinite(value) else None
