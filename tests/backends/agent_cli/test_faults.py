from __future__ import annotations

import pytest

from skillgit.errors import FatalBackendError, RetryableBackendError
from skillgit_backends.agent_cli.error_mapping import failure

FATAL = [
    ("Not logged in · Please run /login", "not logged in"),
    ("unexpected status 401 Unauthorized: Missing bearer or basic authentication in header", "not logged in"),
    ("unexpected status 403 Forbidden: no, url: http://h/v1/responses", "not logged in"),
    ("Codex ran out of room in the model's context window. Start a new thread", "context"),
    ("Prompt is too long · the request is ~300000 tokens (limit 200000)", "context"),
    ("The model x does not exist", "no such model"),
    (
        "There's an issue with the selected model (x). It may not exist or you may not have access to it.",
        "no such model",
    ),
    ("You've hit your usage limit. Try again at 5 pm.", "quota"),
    ("This request was flagged for possible violation of our usage policies", "policy"),
    ("Missing environment variable: `NOPE_KEY`.", "NOPE_KEY"),
    ("unexpected status 400 Bad Request: nonsense", "nonsense"),
]
PASSING = [
    "unexpected status 503 Service Unavailable: {}",
    "exceeded retry limit, last status: 429 Too Many Requests",
    "We’re currently experiencing high demand, which may cause temporary errors.",  # noqa: RUF001 - Codex's own words
    "API Error: Request rejected (429) · slow down",
    "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
    "API Error: Unable to connect to API (ConnectionRefused)",
    "stream disconnected before completion",
    "",
]


@pytest.mark.parametrize(("said", "part"), FATAL)
def test_what_no_repetition_mends(said: str, part: str):
    error = failure("agent", said, login="log in like this")
    assert isinstance(error, FatalBackendError)
    assert part in error.message
    assert error.hint


@pytest.mark.parametrize("said", PASSING)
def test_what_may_pass(said: str):
    assert isinstance(failure("agent", said, login=""), RetryableBackendError)


def test_a_status_that_is_told_apart_decides():
    assert isinstance(failure("agent", "oh", status=529, login=""), RetryableBackendError)
    assert isinstance(failure("agent", "oh", status=404, login=""), FatalBackendError)
    assert failure("agent", "oh", status=401, login="log in like this").hint == "log in like this"


def test_long_words_are_cut():
    assert len(failure("agent", "word " * 10_000, login="").message) < 700
