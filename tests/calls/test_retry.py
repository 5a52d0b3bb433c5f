from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import chance

from skillgit.calls.retries_and_limits import LAST_CEILING_S, CallPolicy, Retries, pause
from skillgit.errors import FatalBackendError, RefusalError, RetryableBackendError

PATIENCE_S = 600.0


def refusal(retry_after=0.0):
    return RetryableBackendError("429", retry_after=retry_after)


def run(errors, attempts=5, first_ceiling=1.0):
    """Fail with ``errors``; return the answer or the last error, how many attempts there were, and the pauses."""
    retries = Retries(CallPolicy(attempts=attempts, patience_s=PATIENCE_S), chance(1))
    pauses = []
    for number, error in enumerate(errors, 1):
        seconds = retries.pause(error, first_ceiling)
        if seconds is None:
            return error, number, pauses
        pauses.append(seconds)
    return "done", len(errors) + 1, pauses


def test_a_retryable_failure_is_met_with_another_attempt():
    assert run([RetryableBackendError("503")] * 4)[:2] == ("done", 5)


def test_after_the_last_attempt_its_own_error_is_raised():
    errors = [RetryableBackendError(str(n)) for n in range(9)]
    result, made, naps = run(errors, attempts=3)
    assert result is errors[2]
    assert (made, len(naps)) == (3, 2)


@pytest.mark.parametrize("error", [FatalBackendError("400"), RefusalError("no")])
def test_other_failures_are_raised_at_once(error):
    assert run([error]) == (error, 1, [])


def test_one_attempt_is_one_attempt():
    error = RetryableBackendError("503")
    assert run([error], attempts=1) == (error, 1, [])


def test_refusals_are_no_failed_attempts():
    errors = [refusal(), RetryableBackendError("500")] * 4
    assert run([*errors, refusal()])[:2] == ("done", 10)
    assert run([*errors, RetryableBackendError("the fifth")])[1] == 9


def test_refusals_are_repeated_until_the_patience_was_spent_in_pauses():
    result, made, naps = run([refusal() for _ in range(1000)])
    assert result.message == "429"
    assert made == len(naps) + 1
    assert sum(naps[:-1]) < PATIENCE_S <= sum(naps)


def test_a_quota_that_is_used_up_for_today_is_not_waited_for():
    error = refusal(PATIENCE_S + 1)
    assert run([error]) == (error, 1, [])
    assert run([refusal(PATIENCE_S)])[0] == "done"


@given(st.integers(1, 5000), st.one_of(st.none(), st.floats(-5, 500)), st.floats(0.05, 1.0), st.integers())
def test_pauses_lie_between_what_was_asked_for_and_the_ceiling(attempt, retry_after, first_ceiling, seed):
    seconds = pause(attempt, retry_after, chance(seed), first_ceiling=first_ceiling)
    least = max(retry_after or 0.0, 0.0)
    most = least + min(LAST_CEILING_S, first_ceiling * 2.0 ** min(attempt - 1, 16))
    assert least <= seconds <= most
    longest = SimpleNamespace(uniform=lambda _, high: high)
    assert pause(attempt, retry_after, longest, first_ceiling=first_ceiling) == most


def test_pauses_of_equal_calls_differ():
    random = chance(3)
    assert len({pause(3, 10.0, random, first_ceiling=1.0) for _ in range(20)}) == 20
