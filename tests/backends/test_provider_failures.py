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
from skillgit_backends.backend_settings import NO_KEY, Endpoint
from skillgit_backends.provider_failures import ServerFault, asked_pause, clean, embedded, failure, judge

KEY = "sk-PLANTED-0123456789"
HERE = Endpoint(backend="openai_chat", url="https://h.example/v1", key=KEY, key_name="MY_KEY")


CLAUDE = Endpoint(
    backend="claude_chat",
    url="https://a.example",
    key=KEY,
    key_name="ANTHROPIC_API_KEY",
    api="Anthropic's Messages API",
)
ASKED = httpx2.Request("POST", "http://localhost/v1/messages")


def failed(status, said="", code=""):
    return judge(ServerFault(status=status, message=said, code=code), HERE)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_tried_again(status):
    assert isinstance(failed(status, "busy"), RetryableBackendError)


@pytest.mark.parametrize(
    ("status", "said", "code", "told", "hint"),
    [
        (
            401,
            f"Incorrect API key provided: {KEY}",
            "invalid_api_key",
            "refused the key (401)",
            "check the key in MY_KEY",
        ),
        (403, "no", "", "refused the key (403)", "MY_KEY"),
        (402, "pay", "", "quota", "billing"),
        (429, "You exceeded your current quota", "insufficient_quota", "quota", "billing"),
        (404, "The model `x` does not exist", "model_not_found", "404", "model's name"),
        (404, "Not Found", "", "404", "with its /v1"),
        (400, "too long", "context_length_exceeded", "does not fit into the model's context", "shorten"),
        (400, "This model's maximum context length is 10 tokens", "", "does not fit", "shorten"),
        (400, "the request exceeds the available context size", "", "does not fit", "shorten"),
        (400, "The response was filtered", "content_filter", "content filter withholds it", "item"),
        (400, "max_tokens is too large: 16384", "", "400", "calls.max_output_tokens"),
        (400, "'temperature' does not support 0.7", "", "400", "calls.temperature"),
        (400, "Unsupported value: reasoning_effort", "", "400", "model.reasoning_effort"),
        (422, "odd", "", "422", "understands"),
    ],
)
def test_what_will_not_pass_ends_the_call_with_a_sentence_of_its_own(status, said, code, told, hint):
    error = failed(status, said, code)
    assert isinstance(error, FatalBackendError)
    assert told in error.message
    assert hint in error.hint
    assert KEY not in error.message + error.hint


def test_a_limit_of_the_rate_that_speaks_of_tokens_is_no_overflow():
    assert isinstance(failed(429, "Limit 30000 TPM, too many tokens"), RetryableBackendError)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "code": 429}, RetryableBackendError),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, RetryableBackendError),
        ({"message": "down", "type": "server_error", "code": None}, RetryableBackendError),
        ({"message": "who are you", "code": 401}, FatalBackendError),
        ("what", FatalBackendError),
    ],
)
def test_errors_inside_answers_of_status_200(error, kind):
    assert isinstance(embedded(error, HERE), kind)


def test_words_of_a_provider_are_shortened_and_hold_no_key():
    assert clean(f"a\n b {KEY} c" + "x" * 1000, HERE).startswith("a b … c")
    assert len(clean("x" * 1000, HERE)) == 400
    assert clean("none of it", Endpoint(backend="openai_chat", url="http://h", key=NO_KEY, key_name="")) == "none of it"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, 0.0),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone(headers, seconds):
    assert asked_pause(headers) == seconds


def test_without_a_key_the_hint_is_where_to_name_one():
    error = judge(
        ServerFault(status=401, message=""), Endpoint(backend="openai_chat", url="http://h", key=NO_KEY, key_name="")
    )
    assert "api_key_env" in error.hint


@pytest.mark.parametrize(
    ("kind", "status", "said", "code", "param"),
    [
        (ContentFilterError, 400, "The response was filtered", "content_filter", "prompt"),
        (PromptTooLongError, 400, "too long", "context_length_exceeded", "messages"),
        (PromptTooLongError, 413, "Request Entity Too Large", "", ""),
        (
            BadRequestError,
            400,
            "Invalid 'messages[1].content': string too long",
            "string_above_max_length",
            "messages[1]",
        ),
        (BadRequestError, 400, "Invalid image", "invalid_image_url", "input[0].content"),
        (BadRequestError, 400, "Could not process the request", "", ""),
        (BadRequestError, 422, "odd", "", ""),
        (FatalBackendError, 400, "Unsupported parameter: 'top_k'", "unsupported_parameter", "top_k"),
        (FatalBackendError, 400, "Invalid value", "invalid_value", "reasoning_effort"),
        (FatalBackendError, 400, "max_tokens is too large: 16384", "", ""),
        (FatalBackendError, 400, "Unrecognized request argument supplied: thinking", "", ""),
        (FatalBackendError, 400, "The model `x` does not exist", "", ""),
        (FatalBackendError, 404, "Not Found", "", ""),
        (FatalBackendError, 405, "Method Not Allowed", "", ""),
    ],
)
def test_what_is_wrong_with_one_question_is_told_from_what_all_have_in_common(kind, status, said, code, param):
    error = judge(ServerFault(status=status, message=said, code=code, param=param), HERE)
    assert type(error) is kind
    assert error.status_code == status


def refused_by_claude(status, kind="invalid_request_error", message="no", **headers):
    """Return what an error of the real SDK means."""
    body = {"type": "error", "error": {"type": kind, "message": message}}
    response = httpx2.Response(status, headers={k.replace("_", "-"): v for k, v in headers.items()}, request=ASKED)
    return failure(anthropic.APIStatusError("text", response=response, body=body), CLAUDE)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_at_claude(status):
    assert isinstance(refused_by_claude(status), RetryableBackendError)


@pytest.mark.parametrize(
    ("kind", "status", "message", "hint"),
    [
        (PromptTooLongError, 400, "prompt is too long: 250000 tokens > 200000 maximum", "shorten"),
        (PromptTooLongError, 400, "input length and `max_tokens` exceed context limit: 1 + 2 > 2", "shorten"),
        (PromptTooLongError, 413, "Request exceeds the maximum size", "shorten"),
        (ContentFilterError, 400, "Output blocked by content filtering policy", "policy"),
        (BadRequestError, 400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum", ""),
        (BadRequestError, 400, "system: text content blocks must contain non-whitespace text", ""),
        (BadRequestError, 400, "Could not process image", ""),
        (FatalBackendError, 400, "max_tokens: 100000 > 64000, which is the maximum allowed", "max_output_tokens"),
        (FatalBackendError, 400, "`temperature` may only be set to 1 when thinking is enabled", "calls.temperature"),
        (FatalBackendError, 400, "thinking.budget_tokens: Input should be greater than or equal to 1024", ""),
        (FatalBackendError, 400, "tools.0.custom.name: String should match pattern", ""),
        (FatalBackendError, 400, "Your credit balance is too low to access the Anthropic API.", "check the billing"),
        (FatalBackendError, 402, "Payment required", "check the billing"),
        (FatalBackendError, 401, "invalid x-api-key", "check the key in ANTHROPIC_API_KEY"),
        (FatalBackendError, 404, "Not Found", "Anthropic's Messages API"),
        (FatalBackendError, 301, "moved", ""),
    ],
)
def test_what_is_wrong_with_one_question_at_claude_is_told_from_what_all_have_in_common(kind, status, message, hint):
    error = refused_by_claude(status, message=message)
    assert (type(error), error.status_code) == (kind, status)
    assert hint in error.hint
    assert "claude_chat_temperature" not in error.hint, "there is no such setting"


def test_a_model_that_claude_does_not_have_is_named():
    error = refused_by_claude(404, "not_found_error", "model: claude-none")
    assert "model: claude-none" in error.message
    assert "model's name" in error.hint


def test_an_error_in_the_middle_of_a_stream_has_status_200_and_is_known_by_its_type():
    assert isinstance(refused_by_claude(200, "overloaded_error"), RetryableBackendError)
    assert isinstance(refused_by_claude(200, "invalid_request_error"), FatalBackendError)
    error = embedded({"type": "overloaded_error", "message": "come back later"}, CLAUDE)
    assert isinstance(error, RetryableBackendError)
    assert error.message.endswith("it is overloaded: come back later")


def test_how_long_to_wait_may_be_a_date():
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=1000), usegmt=True)
    assert 900 < refused_by_claude(429, retry_after=then).retry_after <= 1000


def test_timeouts_and_connections():
    late = anthropic.APITimeoutError(ASKED)
    late.__cause__ = httpx2.ConnectTimeout("")
    error = failure(late, CLAUDE)
    assert error.message == "claude_chat: no connection to a.example came about in time"
    assert "timeout" not in error.hint, "no setting raises this limit"
    assert not error.sent
    assert "ReadError: reset" in failure(httpx2.ReadError("reset"), CLAUDE).message
    broken = anthropic.APIConnectionError(request=ASKED)
    broken.__cause__ = httpx2.ConnectError("refused")
    assert "ConnectError: refused" in failure(broken, CLAUDE).message
