"""From a reply to a command: what stands in the action tags, in the letters that games use."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_ACTION = re.compile(r"<action>(?P<command>.*?)(?:</action>|\n|\Z)", re.DOTALL | re.IGNORECASE)
_WRAPPING = " \t\r\n`'\"*.>-"


def command_in(reply: str) -> str:
    """Return the command of a reply, in lower case with single spaces; empty if it has none.

    The first action counts; one in a closed thought does not. A tag that is not closed ends with its line.
    """
    for match in _ACTION.finditer(_THOUGHT.sub("", reply)):
        command = " ".join(match.group("command").lower().split()).strip(_WRAPPING)
        if command:
            return command
    return ""
