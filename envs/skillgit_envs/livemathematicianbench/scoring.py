"""How a choice is read out of an answer and scored.

The benchmark reports plain accuracy over the choices; how it reads a label is not published. Here an answer counts if
it is a label, in any of the usual wrappings, or the text of a choice, and nothing else: a sentence that begins with the
word "A" is no answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored

if TYPE_CHECKING:
    from collections.abc import Mapping

SCORER = "accuracy/1"
"""Changes whenever a score can change."""

_BOXED = re.compile(r"\\boxed\s*\{(.*)\}\s*[.$)\]\\]*\Z", re.DOTALL)
_COMMAND = re.compile(r"\\(?:text|textbf|textrm|mathrm|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_DRESS = re.compile(r"[*_`$]|\\[()\[\],;!]")
_NAMED = re.compile(
    r"(?:(?:the|my|our)\s+)?(?:(?:final|correct|right|best)\s+)*(?:answer|option|choice)\b"
    r"(?:\s+(?:is|would\s+be|must\s+be))?\s*[:=]?\s*(?:(?:option|choice)\s+)?(.+)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(r"[(\[{]?\s*([A-Za-z])\s*[)\]}]?\s*[.:]?")
_LABEL_AND_TEXT = re.compile(r"(?:[(\[]\s*([A-Z])\s*[)\]]|([A-Z])\s*[.):])\s*\S.*", re.DOTALL)


def label_of(answer: str, choices: Mapping[str, str]) -> str:
    """Return the label that ``answer`` gives; empty if it gives none.

    >>> label_of('The answer is (B).', {'A': 'even', 'B': 'odd'})
    'B'
    """
    bare = _undressed(answer)
    for text in dict.fromkeys((bare, _undressed(_last_line(answer)))):
        label = _as_label(text, choices) or _as_text(text, choices)
        if label:
            return label
        match = _NAMED.fullmatch(text)
        if match and (label := _as_label(match.group(1).strip(), choices) or _as_text(match.group(1), choices)):
            return label
    return _as_text(answer, choices)


def _as_label(text: str, choices: Mapping[str, str]) -> str:
    alone = _LABEL.fullmatch(text)
    if alone:
        label = alone.group(1).upper()
        return label if label in choices else ""
    match = _LABEL_AND_TEXT.fullmatch(text)
    label = (match.group(1) or match.group(2)) if match else ""
    return label if label in choices else ""


def _as_text(text: str, choices: Mapping[str, str]) -> str:
    key = _folded(text)
    return next((label for label, choice in choices.items() if key and _folded(choice) == key), "")


def _undressed(text: str) -> str:
    """Return ``text`` without Markdown, without LaTeX around words, and without a box."""
    core = text.strip()
    while (box := _BOXED.search(core)) is not None:
        core = box.group(1).strip()
    return " ".join(_DRESS.sub("", _COMMAND.sub(r"\1", core)).split())


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".")


def score(answer: str, choices: Mapping[str, str], correct: str) -> tuple[Scored, str]:
    """Return the score of ``answer``, and what was expected.

    Args:
        choices: Label to text, as the target saw them.
    """
    guess = label_of(answer, choices)
    right = next(label for label, text in choices.items() if text == correct)
    hit = float(guess == right)
    if hit:
        return Scored(hard=hit, soft=hit), f"correct: {right}"
    description = f"{guess}. {choices[guess]}" if guess else "no label"
    return Scored(hard=hit, soft=hit), f"expected {right}. {correct}\nthe answer gives {description}"
