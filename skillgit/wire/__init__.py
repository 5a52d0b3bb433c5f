"""The wire formats in which models are asked: each is written once, question and answer, in and out.

A :class:`WireFormat` writes a request as a backend sends it and reads the answer; it also reads the request as a server
gets it, and writes the answer, whole or as a stream. Backends and the metered endpoint share it, and so may any plug-in
that speaks one of these formats. Addresses, keys and retries are the business of those who use it.
"""

from __future__ import annotations

from typing import Final

from skillgit.wire.chat import Chat
from skillgit.wire.messages import Messages
from skillgit.wire.responses import Responses
from skillgit.wire.wire_format import AgentQuestion, QuestionError, WireFormat

CHAT: Final = Chat()
RESPONSES: Final = Responses()
MESSAGES: Final = Messages()
FORMATS: Final[tuple[WireFormat, ...]] = (MESSAGES, RESPONSES, CHAT)

__all__ = ["CHAT", "FORMATS", "MESSAGES", "RESPONSES", "AgentQuestion", "QuestionError", "WireFormat"]
