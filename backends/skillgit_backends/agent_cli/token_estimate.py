"""Owns what a call counts where the agent does not tell: four characters are a token, and that is said."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Usage, flatten

if TYPE_CHECKING:
    from skillgit.plugin.backend import Request

_LOG = logging.getLogger(__name__)
_CHARACTERS_PER_TOKEN = 4


def estimate(name: str, request: Request, text: str) -> Usage:
    """Return about what a call of the agent ``name`` has used."""
    _LOG.warning("%s tells no usage; its tokens are estimated from the length of the texts", name)
    return Usage(tokens_in=_tokens(flatten(request.messages)), tokens_out=_tokens(text))


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
