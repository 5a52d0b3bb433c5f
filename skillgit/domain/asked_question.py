"""What a prompt asks: the question of an item among the material around it and the form of the answer behind it."""

from __future__ import annotations

import re

_MARKED = re.compile(r"<(question|task|problem|issue)>\s*(.*?)\s*</\1>", re.DOTALL)
_FORM = re.compile(r"\bbetween\s+<(\w+)>\s+and\s+</\1>|\bfinal\s+answer\b|\bwhole\s+reply\b", re.IGNORECASE)
"""Words by which a paragraph says in which form the answer is wanted."""
_TAG = re.compile(r"</?[A-Za-z][\w-]*>")


def marked_question(prompt: str) -> str:
    """Return the last question that ``prompt`` marks as one; empty if it marks none."""
    questions = _MARKED.findall(prompt)
    return questions[-1][1] if questions else ""


def question_of(prompt: str) -> str:
    r"""Return what ``prompt`` asks, on one line: what is marked as a question, else the last paragraph before the form.

    >>> question_of("It is a tower.\n\nHow tall is it?\n\nGive the final answer between <answer> and </answer>.")
    'How tall is it?'
    """
    if question := marked_question(prompt):
        return _plain(question)
    paragraphs = [part for part in re.split(r"\n\s*\n", prompt) if _plain(part)]
    questions = [part for part in paragraphs if not _FORM.search(part)] or paragraphs
    return _plain(questions[-1]) if questions else ""


def _plain(text: str) -> str:
    return " ".join(_TAG.sub(" ", text).split())
