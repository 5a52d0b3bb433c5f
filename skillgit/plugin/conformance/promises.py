"""Owns the list of broken promises, and the error that tells all of them at once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONG = 300


class ConformanceError(AssertionError):
    """A plug-in breaks promises of its contract."""

    def __init__(self, subject: str, sentences: tuple[str, ...]) -> None:
        promises = "1 promise" if len(sentences) == 1 else f"{len(sentences)} promises"
        super().__init__("\n".join([f"{subject} breaks {promises}:", *(f"- {sentence}" for sentence in sentences)]))
        self.broken = sentences


class Promises:
    """What is broken so far."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._broken: dict[str, None] = {}

    def hold(self, condition: object, sentence: str) -> bool:
        """Note ``sentence`` unless the promise is kept; say whether it is."""
        if not condition:
            self._broken[sentence] = None
        return bool(condition)

    @contextmanager
    def during(self, activity: str) -> Iterator[None]:
        """Note an error that comes out of the block, and go on behind it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the next promise is looked at
            self._broken[f"{activity} raises {described(error)}"] = None

    def settle(self) -> None:
        """Say what is broken.

        Raises:
            ConformanceError: Anything is.
        """
        if self._broken:
            raise ConformanceError(self._subject, tuple(self._broken))


def described(error: BaseException) -> str:
    """Return an error in a few words."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}"[:_LONG] if message else type(error).__name__
