from __future__ import annotations

import pytest

from skillgit.calls.retries_and_limits import is_refusal
from skillgit.errors import FatalBackendError, RetryableBackendError


class SdkError(Exception):
    def __init__(self, status_code):
        super().__init__(status_code)
        self.status_code = status_code


def ask_sdk(status):
    raise SdkError(status)


def told(status, retry_after=None, *, hidden=True):
    """Return the error as a backend raises it: with the SDK's error behind it, which may quote keys, out of sight."""
    try:
        try:
            ask_sdk(status)
        except SdkError as error:
            made = RetryableBackendError(str(status), retry_after=retry_after)
            if hidden:
                raise made from None
            raise made from error
    except RetryableBackendError as error:
        return error


@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize(
    ("status", "retry_after", "refused"),
    [
        *((429, None, True), (429, 3.0, True), (529, None, True)),
        *((503, None, False), (503, 3.0, True)),
        *((500, None, False), (500, 3.0, False), (408, None, False)),
    ],
)
def test_a_refusal_is_told_by_its_status(status, retry_after, refused, hidden):
    assert is_refusal(told(status, retry_after, hidden=hidden)) is refused


def test_without_a_status_it_is_told_by_the_time_to_come_back():
    assert is_refusal(RetryableBackendError("quota", retry_after=0.0))
    assert not is_refusal(RetryableBackendError("reset"))


def test_a_fatal_error_is_none():
    error = FatalBackendError("403")
    error.__context__ = SdkError(429)
    assert not is_refusal(error)
