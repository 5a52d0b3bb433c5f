"""Takes credentials out of texts before they are recorded, shown or sent.

What looks like a credential is one question, which ``domain.credentials`` answers. Here the values of environment
variables that are named like credentials are added to it, whatever their form. What is recorded of a run loses only
what is certain: a run must not lose words of an answer because they are long.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, cast

from skillgit.domain.credentials.detector import Certainty, FoundCredential, cut_out, find_credentials, merged
from skillgit.domain.credentials.named_values import is_name_of_credential
from skillgit.domain.trajectory import Turn
from skillgit.domain.untrusted.model_text import storable

if TYPE_CHECKING:
    from skillgit.plugin.backend import Reply

_SEALED = frozenset({"signature", "encrypted_content", "data"})
"""Keys of a provider's own form of a message under which it has signed or encrypted what it wants back unchanged."""
_SHORTEST_VALUE = 12
_NO_WORD = re.compile(r"(?=\S*[0-9])(?=\S*[A-Za-z])\S+")
_OF_A_VARIABLE = "the value of an environment variable"


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes out the credentials of one moment; looking for them in the environment takes longer than a short text."""

    values: tuple[str, ...]  # of variables named like credentials, as they are in texts; longest first
    least: Certainty = Certainty.CERTAIN  # how certain it must be that something is a credential

    @classmethod
    def now(cls, least: Certainty = Certainty.CERTAIN) -> Redactor:
        return cls(_values(), least)

    def find(self, text: str) -> list[FoundCredential]:
        """Return what looks like a credential in ``text``, in order; no two overlap."""
        values = [
            FoundCredential(match.start(), match.end(), _OF_A_VARIABLE, Certainty.CERTAIN)
            for value in self.values
            if value in text
            for match in re.finditer(re.escape(value), text)
        ]
        credentials = find_credentials(text, self.least)
        return merged([*values, *credentials]) if values else credentials

    def text(self, text: str) -> str:
        """Return ``text`` with every credential replaced by a mask; JSON stays JSON if only what is certain goes."""
        return cut_out(text, self.find(text))

    def json(self, value: object, sealed: frozenset[str] = frozenset()) -> object:
        """Return a copy of a JSON value with its strings redacted; keys stay, and what is below a key of ``sealed``."""
        if isinstance(value, str):
            return self.text(storable(value))
        if isinstance(value, dict):
            fields = cast("dict[str, object]", value).items()
            return {storable(key): part if key in sealed else self.json(part, sealed) for key, part in fields}
        if isinstance(value, list | tuple):
            return [self.json(part, sealed) for part in cast("list[object]", value)]
        return value

    def reply(self, reply: Reply) -> Reply:
        calls = tuple(
            replace(call, id=storable(call.id), name=storable(call.name), arguments=self.text(storable(call.arguments)))
            for call in reply.tool_calls
        )
        turns = tuple(Turn.read(cast("dict[str, object]", self.json(turn.row))) for turn in reply.turns)
        native = reply.native
        if native is not None:
            content = cast("list[dict[str, object]]", self.json(native.content, _SEALED))
            native = replace(native, content=tuple(content))
        return replace(reply, text=self.text(storable(reply.text)), tool_calls=calls, native=native, turns=turns)


def redact(text: str, least: Certainty = Certainty.CERTAIN) -> str:
    """Return ``text`` with every credential replaced by a mask, by value or by shape."""
    return Redactor.now(least).text(text)


def redact_json(value: object) -> object:
    """Return a copy of a JSON value with its strings redacted; keys stay."""
    return Redactor.now().json(value)


def credentials(text: str) -> tuple[str, ...]:
    """Return every credential that :func:`redact` would take out of ``text``, each once."""
    return values_of(text, Redactor.now().find(text))


def values_of(text: str, spans: Iterable[FoundCredential]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text[credential.start : credential.end] for credential in spans))


def _values() -> tuple[str, ...]:
    """Return the values of variables that are named like credentials, as they are and as JSON writes them."""
    # A short value, a word or a number is none: local servers take any key, and ``none`` or ``local-model`` must not be
    # taken out of answers.
    values = {os.environ[name] for name in os.environ if _is_credential(name)}
    forms = {form for value in values for form in forms_of(value)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


@cache
def forms_of(value: str) -> tuple[str, ...]:
    """Return how a known secret is written in texts, in JSON and in JSON within JSON; nothing for a word."""
    if len(value) < _SHORTEST_VALUE or not _NO_WORD.fullmatch(value):
        return ()
    plain, ascii_only = (json.dumps(value, ensure_ascii=escape)[1:-1] for escape in (False, True))
    return (value, plain, ascii_only, json.dumps(plain, ensure_ascii=False)[1:-1], json.dumps(ascii_only)[1:-1])


@cache
def _is_credential(name: str) -> bool:
    return is_name_of_credential(name, certainly=True)
