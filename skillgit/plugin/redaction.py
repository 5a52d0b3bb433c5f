"""Owns what a secret looks like, and takes secrets out of texts before they are recorded.

Two rules: the values of environment variables that are named like credentials, whatever they look like, and the shapes
that credentials are known by. Nothing else: a run must not lose words of an answer because they are long.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, cast

from skillgit.domain.trajectory import Turn
from skillgit.domain.untrusted.model_text import storable

if TYPE_CHECKING:
    from skillgit.plugin.backend import Reply

MASK = "[redacted]"

# The shapes stay inside a JSON string: none of them reaches over a quote, so that redacted JSON is still JSON.
_PRIVATE_KEY = r'-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^"]*?-----END [A-Z ]{0,20}PRIVATE KEY-----'
_TOKENS = {
    "sk-": r"sk-(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Za-z0-9]{16})[A-Za-z0-9_-]{20,}",
    "AKIA": r"AKIA[A-Z0-9]{16}(?![A-Z0-9])",
    "ASIA": r"ASIA[A-Z0-9]{16}(?![A-Z0-9])",
    **{f"gh{kind}_": rf"gh{kind}_[A-Za-z0-9]{{36,}}" for kind in "oprsu"},
    "github_pat_": r"github_pat_[A-Za-z0-9_]{40,}",
    "glpat-": r"glpat-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9]{2}\.[A-Za-z0-9]{6,})?",
    "xox": r"xox[abeoprs]-[A-Za-z0-9-]{20,}",
    "xapp-": r"xapp-[A-Za-z0-9-]{20,}",
    "AIza": r"AIza[A-Za-z0-9_-]{35}",
    "ya29.": r"ya29\.[A-Za-z0-9_-]{20,}",
    "hf_": r"hf_[A-Za-z0-9]{30,}",
    "npm_": r"npm_[A-Za-z0-9]{36}",
    "gsk_": r"gsk_[A-Za-z0-9]{40,}",
    "xai-": r"xai-[A-Za-z0-9]{40,}",
    "pplx-": r"pplx-[A-Za-z0-9]{40,}",
    "k_live_": r"[sr]k_live_[A-Za-z0-9]{20,}",
    "k_test_": r"[sr]k_test_[A-Za-z0-9]{20,}",
    "eyJ": r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}
"""What a text with such a credential contains, and the credential: most texts contain none, and looking is cheap."""
# A token begins where no word goes on; the n of an escaped line break in a JSON string is no word.
_BEGIN = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt]))"
_SECRET = re.compile(rf"()(?:{_PRIVATE_KEY}|{_BEGIN}(?:{'|'.join(_TOKENS.values())}))")
_MARKS = ("-----BEGIN ", *_TOKENS)
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?=[A-Z._~+/-]*[0-9])[A-Z0-9._~+/-]{20,}=*")
# What is behind the name of a credential, such as the header api-key; a digit and a letter tell it from a word.
_LABELS = (
    *("api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "secret_key", "secret-key", "secretkey"),
    *("client_secret", "clientsecret", "access_token", "accesstoken", "auth_token", "authtoken", "password"),
)
# In a JSON string a quote or a line break has a backslash before it, and in JSON within JSON three.
_QUOTE, _SPACE = r"(?:\\{0,3}[\"'])?", r"(?:\s|\\{1,3}[nrt]){0,3}"
_LABELLED = re.compile(
    rf"(?i)((?:{'|'.join(_LABELS)}){_QUOTE}{_SPACE}[:=]{_SPACE}{_QUOTE})"
    r"(?=[A-Z+/_-]*[0-9])(?=[0-9+/_-]*[A-Z])[A-Z0-9+/_-]{20,}=*"
)
_PASSWORD_IN_URL = re.compile(r"\b([a-z][a-z0-9+.-]{1,15}://[^\s/:@\"']{1,64}:)[^\s/@\"'\[\\]{1,200}(?=@)")
_SEALED = frozenset({"signature", "encrypted_content", "data"})
"""Keys of a provider's own form of a message under which it has signed or encrypted what it wants back unchanged."""
_VARIABLE = re.compile(r"(?i)(?:\A|_)(?:api|access)?(?:key|token|secret|password|passwd)\Z")
_SHORTEST_VALUE = 12
_NO_WORD = re.compile(r"(?=\S*[0-9])(?=\S*[A-Za-z])\S+")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes out the credentials of one moment; looking for them in the environment takes longer than a short text."""

    values: tuple[str, ...]  # of variables named like credentials, as they are in texts; longest first

    @classmethod
    def now(cls) -> Redactor:
        return cls(_values())

    def text(self, text: str) -> str:
        """Return ``text`` with every credential replaced by a mask, by value or by shape; JSON stays JSON."""
        for value in self.values:
            text = text.replace(value, MASK)
        for shape in _shapes(text):
            text = shape.sub(rf"\1{MASK}", text)
        return text

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


def redact(text: str) -> str:
    """Return ``text`` with every credential replaced by a mask, by value or by shape."""
    return Redactor.now().text(text)


def redact_json(value: object) -> object:
    """Return a copy of a JSON value with its strings redacted; keys stay."""
    return Redactor.now().json(value)


def credentials(text: str) -> tuple[str, ...]:
    """Return every credential that :func:`redact` would take out of ``text``, each once."""
    secrets = [value for value in _values() if value in text]
    secrets += [match[0].removeprefix(match[1]) for shape in _shapes(text) for match in shape.finditer(text)]
    return tuple(dict.fromkeys(secrets))


def _shapes(text: str) -> list[re.Pattern[str]]:
    """Return the patterns of credentials that ``text`` may hold; the first group of each is no part of one."""
    lower = text.lower()
    candidates = {
        _SECRET: any(mark in text for mark in _MARKS),
        _BEARER: "bearer" in lower,
        _LABELLED: any(label in lower for label in _LABELS),
        _PASSWORD_IN_URL: "://" in text,
    }
    return [shape for shape, may_occur in candidates.items() if may_occur]


def _values() -> tuple[str, ...]:
    """Return the values of variables that are named like credentials, as they are and as JSON writes them."""
    # A short value, a word or a number is none: local servers take any key, and ``none`` or ``local-model`` must not be
    # taken out of answers.
    values = {os.environ[name] for name in os.environ if _is_credential(name)}
    forms = {form for value in values for form in _forms(value)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


@cache
def _forms(value: str) -> tuple[str, ...]:
    if len(value) < _SHORTEST_VALUE or not _NO_WORD.fullmatch(value):
        return ()
    plain, ascii_only = (json.dumps(value, ensure_ascii=escape)[1:-1] for escape in (False, True))
    return (value, plain, ascii_only, json.dumps(plain, ensure_ascii=False)[1:-1], json.dumps(ascii_only)[1:-1])


@cache
def _is_credential(name: str) -> bool:
    return _VARIABLE.search(name) is not None
