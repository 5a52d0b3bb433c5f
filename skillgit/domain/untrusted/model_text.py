"""Text of models and of other programs: what of it may be in a skill or a commit, and how it is shown.

Text enters a skill as ``SkillText``, which only this module makes. ``clean`` makes it of what a model or another
program wrote: line ends become LF, and invisible characters and those that act on a terminal, an editor or git, are
removed. ``verbatim`` makes it of what people wrote and of what is in the history already; it changes nothing.

The patterns list code points instead of asking for categories, so that every version of Unicode cleans alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_CONTROL = r"\x00-\x08\x0e-\x1f\x7f-\x9f"
_BIDI = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f"
)
_HIDDEN = re.compile(f"[{_CONTROL}{_BIDI}{_INVISIBLE}]")
# A selector picks the form of the sign before it. Behind a letter, or in a row, it says nothing that a reader sees.
_SELECTOR = re.compile(
    r"(?<![0-9#*\u00a9\u00ae\u1000-\u109f\u1800-\u18af\u2010-\u2bff\u3001-\u9fff\uf900-\ufaff"
    r"\U0001f000-\U0001faff\U00020000-\U0003ffff])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
# Scripts from Hebrew to Vedic, their extensions and presentation forms, and emoji: what joiners join and part.
_JOINER = re.compile(
    r"(?<![\u0590-\u1cff\u2190-\u2bff\u3030\u303d\u3297\u3299\ua800-\uabff\ufb1d-\ufdff\ufe0f\ufe70-\ufefc"
    r"\U00010a00-\U00011fff\U0001e900-\U0001e95f\U0001f000-\U0001faff])[\u200c\u200d]"
    # Scripts that are written without spaces mark where a line may break.
    r"|(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b"
)
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\u2028\u2029]")
# Whole sequences, so that none leaves its parameters behind; one that never ends loses its escape alone.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\))")
_STEPS = ((_LINE_END, "\n"), (_SEQUENCE, ""), (_HIDDEN, ""), (_SELECTOR, ""), (_JOINER, ""))
"""The order matters: what a step leaves in place is left in place by those after it, so that cleaning is idempotent."""
_SUSPECT = re.compile(
    rf"[\x0b-\r\ud800-\udfff\u2028\u2029\u200b-\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef{_CONTROL}{_BIDI}{_INVISIBLE}]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ACTIVE = re.compile(rf"[\x0b-\r\ud800-\udfff\u2028\u2029]|{_HIDDEN.pattern}|{_SELECTOR.pattern}|{_JOINER.pattern}")
# Printed in JSON, where C0 has escapes of its own.
_UNPRINTED = re.compile(rf"[\x7f-\x9f\u200b\u2028\u2029{_BIDI}{_INVISIBLE}]|[\ud800-\udfff]")


class SkillText(str):
    """Text that may be in a skill; see ``clean`` and ``verbatim``."""

    __slots__ = ("removed",)

    removed: int  # how many characters were removed when it was cleaned, line ends not counted

    def __new__(cls, text: str) -> SkillText:  # noqa: PYI034 - it has no subclasses
        return clean(text)

    def __reduce__(self) -> tuple[Callable[[str, int], SkillText], tuple[str, int]]:
        return _made, (str(self), self.removed)

    def reworded(self, text: str) -> SkillText:
        """Return ``text``, which was made of this one, cleaned; it counts what was removed from either."""
        result = clean(text)
        return _made(result, self.removed + result.removed)


def clean(text: str) -> SkillText:
    r"""Return ``text`` as it may enter a skill: one kind of line end, and nothing that hides or acts.

    Removed are control characters but tab and line feed, controls of writing direction, tags and other invisible
    characters. Joiners and variation selectors stay where emoji and scripts need them. Half of a surrogate pair
    becomes U+FFFD. Clean text comes back unchanged, and so does what was cleaned before.

    >>> clean('Answer\u202e in\x1b few words.\r\n')
    'Answer in few words.\n'
    """
    count = 0
    if _SURROGATE.search(text):
        whole = storable(text)
        count += whole.count("\ufffd") - text.count("\ufffd")
        text = whole
    if _SUSPECT.search(text):
        for pattern, replacement in _STEPS:
            shorter = pattern.sub(replacement, text)
            count += 0 if replacement else len(text) - len(shorter)
            text = shorter
    return _made(text, count)


def verbatim(text: str) -> SkillText:
    """Return ``text``, which people wrote or the history holds, as it is."""
    return _made(text, 0)


def _made(text: str, count: int) -> SkillText:
    instance = str.__new__(SkillText, text)
    instance.removed = count
    return instance


EMPTY = verbatim("")


def removed_from(value: object) -> int:
    """Return how many characters were removed from all the texts in a JSON value."""
    if isinstance(value, SkillText):
        return value.removed
    if isinstance(value, dict):
        return sum(removed_from(part) for pair in value.items() for part in pair)
    return sum(map(removed_from, value)) if isinstance(value, list | tuple) else 0


def clean_json(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_json(part) for key, part in value.items()}
    return [clean_json(part) for part in value] if isinstance(value, list | tuple) else value


def aligned(text: str) -> tuple[str, list[int]]:
    """Return ``text`` cleaned, and the position in ``text`` of each of its characters and of its end."""
    starts = list(range(len(text) + 1))
    for pattern, replacement in _STEPS:
        parts, positions, at = list[str](), list[int](), 0
        for match in pattern.finditer(text):
            parts += text[at : match.start()], replacement
            positions += starts[at : match.start()] + starts[match.start() : match.start() + len(replacement)]
            at = match.end()
        text, starts = "".join([*parts, text[at:]]), positions + starts[at:]
    return text, starts


def hidden_in(text: str) -> list[tuple[int, str]]:
    """Return place and character of controls, direction marks and invisible signs, but not joiners or a leading BOM."""
    return [(match.start(), match[0]) for match in _HIDDEN.finditer(text, 1 if text.startswith("\ufeff") else 0)]


def name_of(character: str) -> str:
    """Return a character's number as people write it: ``U+202E``."""
    return f"U+{ord(character):04X}"


def visible(text: str) -> str:
    r"""Return ``text`` with every character shown that is hidden or acts: ``^[``, ``<U+202E>``.

    Line feeds and tabs stay. ASCII controls are written in caret notation, all others by their numbers.

    >>> visible('red\x1b[31m')
    'red^[[31m'
    """
    return _ACTIVE.sub(_shown, text) if _SUSPECT.search(text) else text


def visible_characters(text: str) -> list[str]:
    """Return how ``visible`` shows each character of ``text``."""
    characters = list(text)
    if _SUSPECT.search(text):
        for match in _ACTIVE.finditer(text):
            characters[match.start()] = _shown(match)
    return characters


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if _SURROGATE.match(match[0]):
        return "\ufffd"
    return f"^{chr(code ^ 0x40)}" if code <= 0x7F else f"<{name_of(match[0])}>"  # noqa: PLR2004 - the end of ASCII


def escaped_json(text: str) -> str:
    """Return JSON text with hidden characters, surrogates and C1 controls in its strings as JSON escapes them."""
    return text if text.isascii() and "\x7f" not in text else _UNPRINTED.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def storable(text: str) -> str:
    """Return ``text`` with lone surrogates, which no encoding can hold, replaced by U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def storable_json(value: object) -> object:
    """Return a copy of a JSON value whose texts are storable, for JSON can escape half of a surrogate pair."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): storable_json(part) for key, part in value.items()}
    return [storable_json(part) for part in value] if isinstance(value, list) else value


def unstorable_place(value: object) -> str | None:
    """Return where a JSON value holds half of a surrogate pair: ``answers.2``; empty for itself, None for nowhere."""
    if isinstance(value, str):
        return "" if _SURROGATE.search(value) else None
    if isinstance(value, dict):
        pairs = [(str(key), part) for key, part in value.items()]
        if any(_SURROGATE.search(key) for key, _ in pairs):
            return "the name of a key"
    elif isinstance(value, list | tuple):
        pairs = [(str(number), part) for number, part in enumerate(value, start=1)]
    else:
        return None
    inner = ((key, unstorable_place(part)) for key, part in pairs)
    return next((f"{key}.{path}".rstrip(".") for key, path in inner if path is not None), None)


TITLE_LENGTH = 60


def clean_line(text: str) -> str:
    """Return ``text`` on one line without surplus white space and what cleaning removes."""
    if _is_clean(text):
        return text
    return " ".join(clean(text).split())


def clean_title(text: str) -> str:
    """Return ``text`` as a commit title: one line of at most 60 characters, cut at a word, without a full stop."""
    line = clean_line(text).rstrip(" .;:,")
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1].rsplit(" ", 1)[0].rstrip(" .;:,")
    return f"{cut or line[: TITLE_LENGTH - 1]}…"


def clean_paragraphs(text: str) -> str:
    """Return ``text`` as paragraphs of one clean line each, parted by single blank lines."""
    if _is_clean(text):
        return text
    paragraphs = (clean_line(paragraph) for paragraph in re.split(r"\n\s*\n", text))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _is_clean(text: str) -> bool:
    """Say whether ``text`` is one clean line of ASCII, which most are; others may be clean as well."""
    ends = text[:1] + text[-1:]
    return text.isascii() and text.isprintable() and "  " not in text and " " not in ends
