from __future__ import annotations

import pytest

from skillgit.errors import (
    BadRequestError,
    ContentFilterError,
    FatalBackendError,
    PromptTooLongError,
    RetryableBackendError,
)
from skillgit_backends.openai_wire.endpoint import NO_KEY, Endpoint, ServerFault, clean, embedded, judged
from skillgit_backends.provider_messages import asked_pause

KEY = "sk-PLANTED-0123456789"
HERE = Endpoint(url="https://h.example/v1", key=KEY, key_name="MY_KEY")


def judge(status, said="", code=""):
    return judged(ServerFault(status=status, message=said, code=code), HERE, "openai_chat")


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_what_may_pass_is_tried_again(status):
    assert isinstance(judge(status, "busy"), RetryableBackendError)


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
    error = judge(status, said, code)
    assert isinstance(error, FatalBackendError)
    assert told in error.message
    assert hint in error.hint
    assert KEY not in error.message + error.hint


def test_a_limit_of_the_rate_that_speaks_of_tokens_is_no_overflow():
    assert isinstance(judge(429, "Limit 30000 TPM, too many tokens"), RetryableBackendError)


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
    assert isinstance(embedded(error, HERE, "openai_chat"), kind)


def test_words_of_a_provider_are_shortened_and_hold_no_key():
    assert clean(f"a\n b {KEY} c" + "x" * 1000, HERE).startswith("a b … c")
    assert len(clean("x" * 1000, HERE)) == 400
    assert clean("none of it", Endpoint(url="http://h", key=NO_KEY, key_name="")) == "none of it"


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
    error = judged(
        ServerFault(status=401, message=""), Endpoint(url="http://h", key=NO_KEY, key_name=""), "openai_chat"
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
    error = judged(ServerFault(status=status, message=said, code=code, param=param), HERE, "openai_chat")
    assert type(error) is kind
    assert error.status_code == status
