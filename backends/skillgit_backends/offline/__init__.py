"""The ``offline`` backend: three rule-driven models that rehearse a training run without network, key or learning.

``offline/reader`` answers questions from search results, ``offline/agent`` plays household games, ``offline/analyst``
proposes edits to the skills of both. None is a language model; all are deterministic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import BackendInfo, FinishReason, Price, Reply, Usage, flatten
from skillgit_backends.offline import agent, analyst, reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Request


_CHARACTERS_PER_TOKEN = 4
_MODELS = {"reader": reader.complete, "agent": agent.complete, "analyst": analyst.complete}


class OfflineBackend:
    """Answers with fixed rules: a rehearsal instrument, not a language model."""

    info = BackendInfo(
        name="offline",
        summary="Fixed rules without network or key, for rehearsing a run: a rehearsal instrument, not an LLM.",
        models=tuple(_MODELS),
        needs_network=False,
        prices={model: Price(usd_in=0.0, usd_out=0.0) for model in _MODELS},
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        if settings:
            raise ConfigError(
                f"the offline backend has no setting '{min(settings)}'",
                hint="remove the model.offline_* keys",
            )

    async def complete(self, request: Request) -> Reply:
        """Answer ``request``: the same request always gets the same reply.

        Raises:
            FatalBackendError: There is no such model, or it does not understand the prompt.
        """
        model = _MODELS.get(request.model)
        if model is None:
            raise FatalBackendError(
                f"the offline backend has no model '{request.model}'",
                hint="use offline/reader or offline/agent as the target and offline/analyst as the optimizer",
            )
        text = model(request.messages)
        limit = request.max_output_tokens * _CHARACTERS_PER_TOKEN
        finish: FinishReason = "length" if len(text) > limit else "stop"
        usage = Usage(tokens_in=_tokens(flatten(request.messages)), tokens_out=_tokens(text[:limit]))
        return Reply(text=text[:limit], usage=usage, finish_reason=finish)

    async def aclose(self) -> None:
        """Release nothing: there is no connection."""


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


__all__ = ["OfflineBackend"]
