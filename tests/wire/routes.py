"""The route table: every dialect that the server speaks. A new one is a file and a name in this list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wire import anthropic_api, openai_api, responses_api

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wire.dialect import Dialect

DIALECTS: Sequence[Dialect] = (
    *(openai_api.CHAT, openai_api.MODELS, responses_api.RESPONSES),
    anthropic_api.MESSAGES,
)


def find(method: str, path: str) -> Dialect | None:
    """Return the dialect that answers at ``path``."""
    for dialect in DIALECTS:
        if any(method == verb and pattern.fullmatch(path) for verb, pattern in dialect.routes):
            return dialect
    return None
