"""The fields of replies: what a model may write in more than one way, and texts, which are cleaned."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, GetPydanticSchema
from pydantic_core.core_schema import no_info_wrap_validator_function, str_schema

from skillgit.domain.untrusted.model_text import SkillText, clean

if TYPE_CHECKING:
    from collections.abc import Callable


def _count(value: object) -> object:
    """Read a count that a model may write as text or as an integral float; whatever it is, it is at least 1."""
    match = re.search(r"\d+", str(value))
    return max(int(match.group()), 1) if match else 1


Count = Annotated[int, BeforeValidator(_count)]


def _listed(value: object) -> tuple[object, ...]:
    """Read a list that a model may leave out, or write as a single value."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _named(value: object) -> object:
    return tuple(str(entry) for entry in _listed(value))


def _numbers(value: object) -> object:
    return tuple(int(str(entry)) for entry in _listed(value) if re.fullmatch(r"\d+", str(entry)))


def _noted(value: object) -> object:
    """Read notes that a model may write as texts, as one text or as objects with ``note`` or ``content``."""
    texts = [entry.get("note", entry.get("content")) if isinstance(entry, dict) else entry for entry in _listed(value)]
    return tuple(text for text in texts if isinstance(text, str) and text.strip())


def _as_clean(value: object, text: Callable[[object], str]) -> SkillText:
    """Return a text cleaned; one that ``parse`` has cleaned keeps its count of what was removed."""
    return value if isinstance(value, SkillText) else clean(text(value))


Cleaned = Annotated[SkillText, GetPydanticSchema(lambda *_: no_info_wrap_validator_function(_as_clean, str_schema()))]
"""A text that may be in a skill."""
Names = Annotated[tuple[str, ...], BeforeValidator(_named)]
Notes = Annotated[tuple[Cleaned, ...], BeforeValidator(_noted)]
Numbers = Annotated[tuple[int, ...], BeforeValidator(_numbers)]
