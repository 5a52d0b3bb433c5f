"""What the machine lacks is told as that, whoever met it; words of servers and models are not asked."""

from __future__ import annotations

import errno
import os
import sqlite3

import pygit2
import pytest

from skillgit.errors import HistoryError, RetryableBackendError
from skillgit.files import shortage
from skillgit.index.refresh import is_about_access


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENOMEM, errno.EROFS])
def test_a_shortage_is_found_behind_what_it_led_to_and_is_no_damage(number):
    words = os.strerror(number)
    for cause in (
        OSError(number, words),
        pygit2.GitError(f"could not open 'x': {words}"),
        sqlite3.OperationalError(words),
    ):
        error = HistoryError("the history cannot be read")
        error.__cause__ = cause
        assert shortage(error).hint == shortage(cause).hint
        assert words in shortage(error).message
        assert is_about_access(cause)


def test_little_memory_and_a_full_disk_are_shortages():
    assert "memory" in shortage(MemoryError()).message
    assert "disk is full" in shortage(sqlite3.OperationalError("database or disk is full")).message


@pytest.mark.parametrize(
    "error",
    [
        RetryableBackendError("the server answered 500: CUDA out of memory"),
        ValueError("no space left on device"),
        OSError(errno.ENOENT, "no such file"),
        sqlite3.DatabaseError("file is not a database"),
    ],
)
def test_what_is_no_shortage_is_none(error):
    assert shortage(error) is None
    assert not is_about_access(error)
