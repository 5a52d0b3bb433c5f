from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anthropic
import httpx2
import pytest

from skillgit.errors import (
    BadRequestError,
    ContentFilterError,
    FatalBackendError,
    PromptTooLongError,
    RetryableBackendError,
)
from skillgit_backends.claude_chat import failure
from skillgit_backends.claude_chat.messages import StreamError, read_message

ASKED = httpx2.Request("POST", "http://localhost/v1/messages")


def failed(status, kind="invalid_request_error", message="no", **headers):
    body = {"type": "error", "error": {"type": kind, "message": message}}
    response = httpx2.Response(status, headers={k.replace("_", "-"): v for k, v in headers.items()}, request=ASKED)
    return failure(anthropic.APIStatusError("text", response=response, body=body), "ANTHROPIC_API_KEY")


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass(status):
    assert isinstance(failed(status), RetryableBackendError)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422])
def test_what_does_not_pass(status):
    assert isinstance(failed(status), FatalBackendError)


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (400, "prompt is too long: 250000 tokens > 200000 maximum", "context"),
        (400, "input length and `max_tokens` exceed context limit: 1 + 2 > 2", "context"),
        (413, "Request exceeds the maximum size", "context"),
        (400, "Your credit balance is too low to access the Anthropic API.", "no credit left"),
        (402, "Payment required", "no credit left"),
        (404, "model: claude-none", "model's name"),
    ],
)
def test_hints(status, message, hint):
    error = failed(status, message=message)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        (PromptTooLongError, 400, "prompt is too long: 250000 tokens > 200000 maximum"),
        (PromptTooLongError, 400, "input length and `max_tokens` exceed context limit: 1 + 2 > 2"),
        (PromptTooLongError, 413, "Request exceeds the maximum size"),
        (ContentFilterError, 400, "Output blocked by content filtering policy"),
        (BadRequestError, 400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"),
        (BadRequestError, 400, "Could not process image"),
        (FatalBackendError, 400, "max_tokens: 100000 > 64000, which is the maximum allowed"),
        (FatalBackendError, 400, "`temperature` may only be set to 1 when thinking is enabled"),
        (FatalBackendError, 400, "thinking.budget_tokens: Input should be greater than or equal to 1024"),
        (FatalBackendError, 400, "Your credit balance is too low to access the Anthropic API."),
        (FatalBackendError, 404, "model: claude-none"),
    ],
)
def test_what_is_wrong_with_one_question_is_told_from_what_all_have_in_common(kind, status, message):
    error = failed(status, message=message)
    assert (type(error), error.status_code) == (kind, status)


def test_an_error_in_the_middle_of_a_stream_has_status_200_and_is_known_by_its_type():
    assert isinstance(failed(200, "overloaded_error"), RetryableBackendError)
    assert isinstance(failed(200, "invalid_request_error"), FatalBackendError)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_under_the_status_200_keeps_its_reason(streamed):
    body = b'{"type": "error", "error": {"type": "overloaded_error", "message": "come back later"}}'
    with pytest.raises(StreamError) as caught:
        read_message(body, is_stream=streamed)
    told = failure(caught.value, "")
    assert isinstance(told, RetryableBackendError)
    assert told.message.endswith("it is overloaded: come back later")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry_after": "12"}, 12.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "12", "retry_after_ms": "250"}, 0.25),
        ({"retry_after": "Fri, 01 Jan 2021 00:00:00 GMT"}, 0.0),
    ],
)
def test_how_long_to_wait(headers, seconds):
    assert failed(429, **headers).retry_after == seconds


def test_how_long_to_wait_may_be_a_date():
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=1000), usegmt=True)
    assert 900 < failed(429, retry_after=then).retry_after <= 1000


def test_timeouts_and_connections():
    name = "ANTHROPIC_API_KEY"
    late = anthropic.APITimeoutError(ASKED)
    late.__cause__ = httpx2.ConnectTimeout("")
    error = failure(late, name)
    assert error.message == "the connection to Claude broke: no connection to the server came about in time"
    assert "timeout" not in error.hint, "no setting raises this limit"
    assert not error.sent
    assert "ReadError: reset" in failure(httpx2.ReadError("reset"), name).message
    broken = anthropic.APIConnectionError(request=ASKED)
    broken.__cause__ = httpx2.ConnectError("refused")
    assert "ConnectError: refused" in failure(broken, name).message
