"""Owns the decision that a provider is down."""

from __future__ import annotations

from skillgit.calls.refusal import concerns_all_calls
from skillgit.errors import BackendError, ProviderFailureError


class Breaker:
    """Counts calls that failed for good, one after another; a success resets it.

    Only what concerns all calls counts: a question that will never be answered says nothing of the provider.

    An open breaker closes only if a call that was in flight when it opened succeeds.

    Args:
        name: Backend and model, for the message.
        limit: Failures in a row that open it.
    """

    def __init__(self, *, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._failures = 0
        self._last: BackendError | None = None

    def check(self) -> None:
        """Let a call pass.

        Raises:
            ProviderFailureError: The breaker is open.
        """
        if self._failures < self._limit or self._last is None:
            return
        raise ProviderFailureError(
            f"{self._name} failed {self._failures} times in a row, last: {self._last.message}",
            hint=self._last.hint or "check the provider's status, credentials and quota, then resume the run",
        ) from self._last

    @property
    def doubtful(self) -> bool:
        """Whether a call has failed in a way that may befall all, and none has been answered since."""
        return self._last is not None

    def failed(self, error: BackendError) -> None:
        """Note a call that failed after its last attempt."""
        if not concerns_all_calls(error):
            return
        self._failures += 1
        self._last = error

    def succeeded(self) -> None:
        """Note a call that was answered."""
        self._failures = 0
        self._last = None
