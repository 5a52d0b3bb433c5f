"""Owns what an agent's failure means: agents tell it in words, some with the status that their provider gave."""

from __future__ import annotations

import re

from skillgit.errors import (
    BackendError,
    BadRequestError,
    FatalBackendError,
    PromptTooLongError,
    RefusalError,
    RetryableBackendError,
)
from skillgit.plugin.backend import Usage
from skillgit.plugin.redaction import redact

LONGEST = 500
BY_HAND = "run the agent by hand to see more"
_STATUS = re.compile(r"(?:status:?|API Error:?|rejected \() ?(?P<status>[45]\d\d)\b", re.IGNORECASE)
_RETRYABLE = frozenset({408, 409, 425, 429})
_SERVER = 500
_REQUEST = frozenset({400, 413, 422})

_LOGIN = re.compile(
    r"not logged in|please (?:run )?/?log ?in|invalid api key|missing bearer|authentication_failed"
    r"|token (?:has )?(?:expired|was revoked)|unauthorized|refresh token",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"prompt is too long|context (?:window|length|limit)|context_length|input exceeds|ran out of room", re.IGNORECASE
)
_QUOTA = re.compile(r"usage limit|quota|credit balance|out of credits|billing", re.IGNORECASE)
_MODEL = re.compile(r"model\b.{0,120}?(?:does not exist|not found|not supported|may not exist)", re.IGNORECASE)
_POLICY = re.compile(r"usage polic|content polic|cyber_policy|flagged|safety reasons|refused to answer", re.IGNORECASE)
_SETUP = re.compile(
    r"missing environment variable|unknown option|unexpected argument|invalid value|cannot be used|error loading config"
    r"|invalid_request|root/sudo|bubblewrap is required",
    re.IGNORECASE,
)
_VERDICTS: tuple[tuple[re.Pattern[str], type[FatalBackendError | RefusalError], str, str], ...] = (
    (
        _OVERFLOW,
        PromptTooLongError,
        "the prompt does not fit into the model's context",
        "shorten the items or the skill",
    ),
    (_POLICY, RefusalError, "the model refuses the request by policy", "this item cannot be asked of this model"),
    (
        _QUOTA,
        FatalBackendError,
        "the account's quota is used up",
        "wait until it is renewed, or use another account or model",
    ),
    (_MODEL, FatalBackendError, "there is no such model", "check model.target and model.optimizer"),
)


def failure(
    name: str, text: str, *, status: int = 0, login: str, sure: bool = False, usage: Usage | None = None
) -> BackendError:
    """Return what the failure ``text`` of ``name`` means; ``status`` is HTTP's, ``sure`` that repeating cannot help."""
    error = _judged(name, text, status=status, login=login, sure=sure)
    error.usage = usage
    return error


def _judged(name: str, text: str, *, status: int, login: str, sure: bool) -> BackendError:
    words = redact(" ".join(text.split()))[:LONGEST] or "it gave no reason"
    match = _STATUS.search(words)
    code = status or (int(match["status"]) if match else 0)
    for pattern, kind, sentence, hint in _VERDICTS:
        if pattern.search(words):
            return kind(f"{name}: {sentence}: {words}", hint=hint)
    if code in (401, 403) or (not code and _LOGIN.search(words)):
        return FatalBackendError(f"{name} is not logged in, or may not do this: {words}", hint=login)
    if code in _RETRYABLE or code >= _SERVER:
        return RetryableBackendError(f"{name}: the provider cannot answer now: {words}", hint="try again later")
    is_setup = sure or _SETUP.search(words)
    kind = BadRequestError if code in _REQUEST and not is_setup else FatalBackendError
    return (kind if code or is_setup else RetryableBackendError)(f"{name} failed: {words}", hint=BY_HAND)
