from __future__ import annotations

import asyncio

import pytest
from scripted import ScriptedBackend

from skillgit.calls.route import Route
from skillgit.errors import ConfigError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import user


def attempt(answer, timeout_s=600.0):
    route = Route(backend=ScriptedBackend(answer), backend_name="scripted", model="small", timeout_s=timeout_s)
    return asyncio.run(route.attempt(route.request([user("a")])))


def raising(error):
    async def answer(_):
        raise error

    return answer


def test_no_reply_before_the_deadline_is_a_failure_that_may_pass():
    async def never(_):
        await asyncio.Event().wait()
        return ""

    with pytest.raises(RetryableBackendError, match="no reply from scripted/small within 0 s"):
        attempt(never, timeout_s=0)


def test_a_backend_that_breaks_down_is_named():
    with pytest.raises(FatalBackendError, match="backend scripted broke down: KeyError: 'choices'") as caught:
        attempt(raising(KeyError("choices")))
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_a_backend_says_itself_is_passed_on_without_secrets():
    secret = "sk-" + "a1B2" * 8
    error = FatalBackendError(f"incorrect key {secret}", hint="set the key")
    with pytest.raises(FatalBackendError) as caught:
        attempt(raising(error))
    assert caught.value is error
    assert (str(error), error.message, error.hint) == (
        "incorrect key [redacted]",
        "incorrect key [redacted]",
        "set the key",
    )


def test_errors_that_are_not_about_the_call_are_left_alone():
    with pytest.raises(ConfigError, match="no key"):
        attempt(raising(ConfigError("no key")))


def test_a_request_carries_the_parameters_of_the_route():
    route = Route(
        backend=ScriptedBackend(),
        backend_name="scripted",
        model="small",
        max_output_tokens=7,
        temperature=0.5,
        reasoning_effort="low",
    )
    request = route.request([user("a")])
    assert (request.model, request.max_output_tokens, request.temperature, request.reasoning_effort) == (
        *("small", 7),
        *(0.5, "low"),
    )
    assert route.name == "scripted/small"
