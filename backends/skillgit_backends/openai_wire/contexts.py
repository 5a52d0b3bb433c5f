"""Owns how a server's list of models tells the length of a context; kinds of servers have names of their own for it."""

from __future__ import annotations

from skillgit_backends.openai_wire.reading import count, mapping, mappings

_NAMES = ("max_model_len", "context_length", "context_window")
"""vLLM and SGLang; gateways; others."""


def context_in(document: object, model: str) -> int | None:
    """Return the tokens that ``model`` takes as ``GET /models`` tells them; None if it does not."""
    for entry in mappings(mapping(document).get("data")):
        if entry.get("id") == model:
            return next((told for told in (count(entry.get(name)) for name in _NAMES) if told), None)
    return None
