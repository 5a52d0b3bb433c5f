from __future__ import annotations

import pytest

from skillgit.calls.retries_and_limits import Breaker
from skillgit.errors import FatalBackendError, ProviderFailureError, RetryableBackendError


def test_it_opens_at_the_limit_and_tells_the_last_failure():
    breaker = Breaker(name="openai/gpt", limit=2)
    breaker.failed(RetryableBackendError("503"))
    breaker.check()
    breaker.failed(FatalBackendError("bad key", hint="set the key"))
    with pytest.raises(ProviderFailureError, match="openai/gpt failed 2 times in a row, last: bad key") as caught:
        breaker.check()
    assert caught.value.hint == "set the key"


def test_a_success_resets_it():
    breaker = Breaker(name="openai/gpt", limit=2)
    for _ in range(5):
        breaker.failed(RetryableBackendError("503"))
        breaker.succeeded()
    breaker.failed(RetryableBackendError("503"))
    breaker.check()


def test_an_open_one_closes_when_a_call_in_flight_succeeds():
    breaker = Breaker(name="openai/gpt", limit=1)
    breaker.failed(RetryableBackendError("503"))
    breaker.succeeded()
    breaker.check()
