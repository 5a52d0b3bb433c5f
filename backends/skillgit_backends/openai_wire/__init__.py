"""What all backends share that speak OpenAI's protocol; each of them is a :class:`Variant` in a package of its own.

How an address and a key are found, the connection, the two dialects (chat completions and Responses), and what a
failure means. The SDK is imported at the first call.
"""

from __future__ import annotations

from skillgit_backends.openai_wire.backend import OpenAIWireBackend
from skillgit_backends.openai_wire.variant import Settings, Variant

__all__ = ["OpenAIWireBackend", "Settings", "Variant"]
