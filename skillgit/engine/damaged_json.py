r"""JSON that a model wrote almost right: what has one reading is repaired, all else is refused.

Two kinds of damage are frequent. A model writes a backslash of TeX, of a regular expression or of a path as it is
(``\frac``, ``\d``), which JSON does not allow, or reads as something else: ``\f`` is a form feed. And it forgets a
comma or the backslash before a quotation mark. A repair is accepted only if it keeps every character that was written,
in its order: it guesses, drops and closes nothing. So a reply that was cut has no reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from skillgit.domain.untrusted.json_limits import DocumentError, SeveralObjectsError, json_spans, object_in
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    import json_repair

MOST_MENDED = 1 << 18  # characters; mending takes seconds for each 100,000

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[A-Za-z]+|.|$)", re.DOTALL)
_COMMANDS = """
nabla natural ncong nearrow neq nexists newcommand newline ngeq ngtr nleftarrow nleq noindent nolimits nonumber not
notin nrightarrow nsubseteq nsupseteq nwarrow tanh tbinom textbackslash textbf textcolor textit textrm textsc textsf
textstyle textsuperscript texttt tfrac therefore theta thickapprox thinspace tilde times tiny toprule triangle
triangleleft triangleq triangleright
"""
_TEX = frozenset(_COMMANDS.split())
"""Commands of TeX whose first letter makes an escape of JSON and whose other letters begin no word."""
_DOUBTFUL = frozenset(
    (
        *("ne", "neg", "ni", "nless", "nmid", "nparallel", "nprec", "nsim", "nsucc", "nu"),
        *("tag", "tan", "tau", "text", "to", "top"),
    )
)
"""Commands that may be a line end or a tab before a word: ``\\nless`` is also a new line that begins with "less"."""
_AFTER_COMMAND = "{_^"
_BEFORE_COMMAND = "$({[=+-^_ "
_PATH = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\(?!\\)[\w .()-]+){2,}")
_UNDOUBTED = re.compile(r"\\(?:[^nrtu\"\\/]|u(?![0-9a-fA-F]{4}))")


class AmbiguousEscapeError(ValueError):
    """A backslash in JSON may be meant as one, or as a line end or a tab; the text names the place."""


def restored_escapes(text: str) -> str:
    r"""Return JSON ``text`` with those backslashes doubled that were meant as backslashes.

    Escapes that JSON does not know are such, and so are form feeds, backspaces and lone carriage returns, which no
    skill holds. A line end or a tab that begins a command of TeX is one too; where a line end is possible as well, what
    ``text`` does with its other backslashes decides. An AmbiguousEscapeError if that says nothing either.

    >>> print(restored_escapes(r'{"content": "- Write \frac{a}{b}.\n- A year is \d{4}."}'))
    {"content": "- Write \\frac{a}{b}.\n- A year is \\d{4}."}
    """
    if "\\" not in text:
        return text
    paths = [match.span() for match in _PATH.finditer(text) if _UNDOUBTED.search(match[0])]
    pieces, at = list[str](), 0
    doubtful = dict[int, re.Match[str]]()
    has_single = has_double = False
    for match in _ESCAPE.finditer(text):
        pieces.append(text[at : match.start()])
        at, escape = match.end(), match[1]
        if escape == "\\":
            has_double = has_double or text[at : at + 1].isalpha()
            pieces.append(match[0])
        elif escape in ('"', "/") or re.fullmatch(r"u[0-9a-fA-F]{4}", escape):
            pieces.append(match[0])
        elif escape in ("'", "`"):  # as JavaScript writes them
            pieces.append(escape)
        elif escape in _DOUBTFUL and text[at : at + 1] not in _AFTER_COMMAND:
            doubtful[len(pieces)] = match
            pieces.append(match[0])
        elif escape == "r" or (
            escape[:1] in ("n", "t") and escape not in _TEX | _DOUBTFUL and not _within(match.start(), paths)
        ):
            pieces.append(match[0])
        else:
            pieces.append(f"\\{match[0]}")
            has_single = True
    for index, match in doubtful.items():
        if has_single and not has_double:
            pieces[index] = f"\\{match[0]}"
        elif has_single == has_double and text[match.start() - 1] in _BEFORE_COMMAND:
            raise AmbiguousEscapeError(
                f"{match[0]} may be a command or the begin of a line; write each backslash in a JSON string twice"
            )
    return "".join([*pieces, text[at:]])


def _within(index: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= index < end for start, end in spans)


def repaired_object(text: str, names: frozenset[str]) -> dict[str, object] | None:
    """Return the one object in ``text``, repaired if need be; None if it holds none that has one reading.

    ``names`` are the keys that an object may have after a repair: a text that is taken apart at a quotation mark shows
    as an unexpected key.
    """
    try:
        return object_in(text) or None
    except SeveralObjectsError:
        raise
    except DocumentError:
        fences, braces = json_spans(text)
    excerpt = fences[0] if fences and fences[0] == fences[-1] else braces
    if "{" not in excerpt or len(excerpt) > MOST_MENDED:
        return None

    try:
        value = json_repair.repair_json(excerpt, return_objects=True)
        if isinstance(value, dict) and value and _keeps_all(value, excerpt, names) and _ends(text, excerpt):
            return value
    except (ValueError, RecursionError):  # nested too deep, or a number of thousands of digits
        pass
    return None


def _ends(text: str, excerpt: str) -> bool:
    """Say whether nothing after ``excerpt`` looks like more of the same JSON."""
    return not re.search(r'["\[\]{}]', text[text.rfind(excerpt) + len(excerpt) :])


def _keeps_all(value: dict[str, object], excerpt: str, names: frozenset[str]) -> bool:
    plain_text = _decoded(excerpt)
    return (
        _signs(excerpt) == _signs(json.dumps(value, ensure_ascii=False))
        and all(text in plain_text for text in _texts(value))
        and all(name in names for name in _keys(value))
    )


_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def _decoded(text: str) -> str:
    """Return ``text`` with its escapes as the characters that they stand for."""

    def character(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _UNESCAPED.get(escape, escape)

    plain = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text, flags=re.DOTALL)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _signs(text: str) -> str:
    """Return the characters of JSON that a repair must keep: all but blanks, commas, colons and kinds of quotes."""
    literals = {"True": "true", "False": "false", "None": "null"}
    plain = re.sub(r"\b(?:True|False|None)\b", lambda match: literals[match[0]], _decoded(text))
    return re.sub(r"[\s,:]+", "", plain).replace("'", '"')


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from map(str, value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(part)
