"""The route table: all that the server answers. A new dialect is a file and a name in this list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wire import anthropic_api, openai_api, responses_api

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wire.dialect import Dialect, Endpoint

SERVED: Sequence[Dialect | Endpoint] = (
    *(openai_api.CHAT, openai_api.MODELS, responses_api.RESPONSES),
    anthropic_api.MESSAGES,
)


def find(method: str, path: str) -> Dialect | Endpoint | None:
    """Return what answers at ``path``."""
    for served in SERVED:
        if any(method == verb and pattern.fullmatch(path) for verb, pattern in served.routes):
            return served
    return None
