"""Owns the keys of the ledger: what makes two calls the same call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.ids import digest
from skillgit.plugin.exchange import parameters_json

if TYPE_CHECKING:
    from skillgit.plugin.backend import Request


def reply_key(answerer: str, asked: str, draw: tuple[str | int, ...]) -> str:
    """Return the key of a call.

    Args:
        answerer: The backend's name, with what may change its answers.
        asked: The digest of the question with model and parameters (``skillgit.plugin.exchange``).
        draw: The place in the run that asks; a deliberate second sample has another one.
    """
    return digest(["reply", answerer, asked, *draw])


def answerer_fingerprint(backend: str, request: Request) -> str:
    """Return the digest of who answers: backend, model and parameters; the messages do not matter."""
    return digest({"backend": backend, **parameters_json(request)})
