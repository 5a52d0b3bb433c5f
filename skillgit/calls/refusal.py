"""Owns what a refusal is: the provider works, and has no room or no quota for this call now."""

from __future__ import annotations

from skillgit.errors import BackendError, RetryableBackendError, UnanswerableError

_TOO_MANY = frozenset({429, 529})
_UNAVAILABLE = 503
_UNREAD = frozenset({401, 402, 403, 404})


def is_refusal(error: BaseException) -> bool:
    """Say whether ``error`` asks for fewer calls: status 429 or 529 (overloaded), or 503 with a time to come back.

    Backends raise their SDK's error again as one of ours, which remembers it. Where no status is known, a provider that
    says when to come back has refused.
    """
    if not isinstance(error, RetryableBackendError):
        return False
    status = status_of(error)
    if status is None or status == _UNAVAILABLE:
        return error.retry_after is not None
    return status in _TOO_MANY


def concerns_all_calls(error: BaseException) -> bool:
    """Say whether ``error`` says more of the provider, the key or the model than of the call that met it."""
    return not isinstance(error, UnanswerableError)


def was_taken(error: BackendError) -> bool:
    """Say whether the provider took the question, so that it may bill it: it neither turned it away nor missed it."""
    if error.usage is not None:
        return True
    status = status_of(error)
    if status is not None:
        return status not in _UNREAD and not is_refusal(error)
    return isinstance(error, RetryableBackendError) and error.sent and not is_refusal(error)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status behind ``error``, by the name that the providers' SDKs give it."""
    behind: BaseException | None = error
    while behind is not None:
        status = getattr(behind, "status_code", None)
        if isinstance(status, int):
            return status
        behind = behind.__cause__ or behind.__context__
    return None
