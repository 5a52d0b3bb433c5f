"""The marks around a skill in a system message, by which an agent is given it as a file and any other model as text.

An environment puts a skill between ``<skill name="…">`` and ``</skill>``, each on a line of its own (:func:`marked`).
A backend that installs skills takes it out and places it where its agent looks for skills; with ``offered`` behind the
name it is installed as it is, and it is up to the agent to load it. Every other model reads the text without the marks,
as a small one answers worse between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from skillgit.plugin.backend import Message, Text

FORM = "text/1"
"""How a model that installs no skills reads one; it changes whenever :func:`as_text` can change a message."""
_OPENED = re.compile(
    r'^<skill name="(?P<name>[^"\n]*)"(?: lines="(?P<lines>\d{1,9})")?(?P<offered> offered)?>[ \t]*\n', re.MULTILINE
)
_CLOSED = re.compile(r"^</skill>[ \t]*(?:\n|\Z)", re.MULTILINE)


def marked(name: str, text: str, *, offered: bool = False) -> str:
    """Return ``text`` between the marks of the skill ``name``; they count its lines where one of them is like a mark.

    >>> print(marked("x", "- Be brief."))
    <skill name="x">
    - Be brief.
    </skill>
    """
    is_like_marks = _OPENED.search(f"{text}\n") or _CLOSED.search(text)
    lines = f' lines="{text.count(chr(10)) + 1}"' if is_like_marks else ""
    return f'<skill name="{name}"{lines}{" offered" if offered else ""}>\n{text}\n</skill>'


def skill_blocks(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the marks around each skill: the closing one is behind the lines that the opening one counts, if it does.

    Otherwise it is the last one before the next skill, as a skill may speak of marks.
    """
    position = 0
    while opening := _OPENED.search(text, position):
        following = _OPENED.search(text, opening.end())
        limit = following.start() if following else len(text)
        if opening["lines"] is None:
            closing = _last(_CLOSED, text, opening.end(), limit)
        else:
            closing = _CLOSED.match(text, _behind_lines(text, opening.end(), int(opening["lines"])))
        if closing:
            yield opening, closing
        position = closing.end() if closing else opening.end()


def gives_skill(messages: Sequence[Message]) -> bool:
    """Say whether an agent is given a skill to load with ``messages``, and not merely offered some."""
    systems = (message.text for message in messages if message.role == "system")
    return any(not opening["offered"] for text in systems for opening, _ in skill_blocks(text))


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(text, start, end):  # noqa: B007 - the last match is wanted
        pass
    return match


def _behind_lines(text: str, position: int, count: int) -> int:
    while count and position < len(text):
        position, count = text.find("\n", position) + 1 or len(text), count - 1
    return position


def without_marks(text: str) -> str:
    r"""Return ``text`` with its skills as they are; those that are merely offered keep their marks.

    >>> without_marks('Answer.\n\n<skill name="x">\n- Be brief.\n</skill>\n\nNow.')
    'Answer.\n\n- Be brief.\n\nNow.'
    """
    parts, position = list[str](), 0
    for opening, closing in skill_blocks(text):
        if not opening["offered"]:
            skill = text[opening.end() : closing.start()].removesuffix("\n")
            parts += [text[position : opening.start()], skill]
            position = closing.end() - closing.group().endswith("\n")
    return "".join([*parts, text[position:]])


def as_text(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return ``messages`` as a model that installs no skills gets them, without a system message that says nothing."""
    plain = []
    for message in messages:
        if message.role != "system":
            plain.append(message)
        elif (text := without_marks(message.text)).strip():
            plain.append(message if text == message.text else replace(message, parts=(Text(text=text),)))
    return tuple(plain)
