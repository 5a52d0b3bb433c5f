"""Owns what a failure of a call means: whether it may pass, how long to wait, and what to tell the user."""

from __future__ import annotations

import re

from anthropic import APIStatusError, APITimeoutError

from skillgit.errors import (
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    ContentFilterError,
    FatalBackendError,
    PromptTooLongError,
    RetryableBackendError,
)
from skillgit_backends.claude_chat.messages import StreamError
from skillgit_backends.provider_messages import asked_pause, is_unreached, quoted

_PASSING = {"rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529}
"""Errors in the middle of a stream, whose status was 200."""
_BEGUN = 200
_RETRYABLE = frozenset({408, 409, 425, 429})
_OVERFLOW = re.compile(
    r"prompt is too long|exceed(?:s|ed)? (?:the )?context|context (?:window|length|limit)", re.IGNORECASE
)
_POLICY = re.compile(r"content filter|usage polic", re.IGNORECASE)
_SHARED = re.compile(
    r"`?(?:max_tokens|temperature|top_[pk]|stop_sequences|model|thinking|output_config|tools|tool_choice|cache_control|stream)\b|"
    r"extra inputs are not permitted",
    re.IGNORECASE,
)
"""Complaints of what all requests of a run have in common; the API begins with the parameter that it means."""
_REQUEST = frozenset({400, 422})
_LONG = 500


def failure(error: Exception, key_name: str) -> BackendError:
    """Return what ``error``, which the SDK or its transport raised, means; ``key_name`` is empty if no key was sent."""
    if isinstance(error.__cause__, BackendError):
        return error.__cause__  # the client's own refusal, which the SDK takes for a broken connection
    if isinstance(error, APIStatusError):
        text = str(error.api_message or error.message or "")
        kind, pause = str(error.type), asked_pause(error.response.headers)
        return _refused(error.status_code, kind, text, key_name=key_name, retry_after=pause)
    if isinstance(error, StreamError):
        return _refused(_BEGUN, error.kind, error.message, key_name=key_name)
    if isinstance(error, APITimeoutError):
        return BackendTimeoutError("Claude did not answer in time", hint="raise calls.timeout_s")
    cause = error.__cause__ or error
    return RetryableBackendError(
        f"the connection to Claude broke: {type(cause).__name__}{f': {_cut(str(cause))}' if str(cause) else ''}",
        hint="check the network and model.claude_chat_base_url",
        sent=not is_unreached(error),
    )


def _refused(status: int, kind: str, words: str, *, key_name: str, retry_after: float | None = None) -> BackendError:
    status = _PASSING.get(kind, status) if status < 400 else status  # noqa: PLR2004
    text = _cut(words)
    if status in _RETRYABLE or status >= 500:  # noqa: PLR2004 - the server's own errors
        state = {429: "its rate limit is reached", 529: "it is overloaded"}.get(status, f"it answered {status}")
        return RetryableBackendError(
            f"Claude cannot answer now: {state}: {text}",
            hint="lower calls.concurrency, or wait for your quota" if status == 429 else "",  # noqa: PLR2004
            retry_after=retry_after,
            status_code=status,
        )
    message = f"Claude refused the request ({status}): {text}"
    return _kind(status, text)(message, hint=_hint(status, text, key_name), status_code=status)


def _kind(status: int, text: str) -> type[FatalBackendError]:
    if status == 413 or (status == 400 and _OVERFLOW.search(text)):  # noqa: PLR2004 - too large, bad request
        return PromptTooLongError
    if status not in _REQUEST or _SHARED.match(text) or "credit balance" in text:
        return FatalBackendError
    return ContentFilterError if _POLICY.search(text) else BadRequestError


def _hint(status: int, text: str, key_name: str) -> str:
    if _OVERFLOW.search(text) or status == 413:  # noqa: PLR2004 - too large
        return "the prompt does not fit into the model's context: shorten the items or the skill, or take another model"
    if "credit balance" in text or status == 402:  # noqa: PLR2004 - payment required
        return "the account has no credit left"
    if status in (401, 403) and not key_name:
        return "none was sent: name the environment variable that holds the key in model.claude_chat_api_key_env"
    return {
        401: f"check the key in {key_name}",
        403: f"the key in {key_name} may not use this model or this API",
        404: "check the model's name, and model.claude_chat_base_url",
    }.get(status, "")


def _cut(text: str) -> str:
    return quoted(text, longest=_LONG)
