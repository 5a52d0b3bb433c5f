"""What of a session must not be written down: credentials, and what says whose session it was.

Secrets are the values that this machine knows as such, and what looks like one anywhere in the harvest. An address has
the same stand-in throughout a draft, so that code and its test still agree; the stand-ins of e-mail and IP addresses
are addresses. The texts are private to begin with, so that a word too many that is taken out costs little.
"""

from __future__ import annotations

import getpass
import json
import re
import socket
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from skillgit.domain.credentials.detector import MASK, Certainty, FoundCredential, cut_out, find_credentials, merged
from skillgit.domain.credentials.named_values import is_name_of_credential
from skillgit.domain.credentials.random_words import is_random
from skillgit.domain.credentials.spellings import plain_spelling
from skillgit.domain.untrusted.model_text import clean
from skillgit.files import read_plain
from skillgit.plugin.redaction import Redactor
from skillgit.store.git_binary import configured

_STORES = (
    *(".git-credentials", ".netrc", ".npmrc", ".pypirc", ".aws/credentials", ".docker/config.json", ".vault-token"),
    *(".config/gh/hosts.yml", ".config/git/credentials", ".claude/.credentials.json", ".codex/auth.json"),
    *(".config/github-copilot/apps.json", ".local/share/opencode/auth.json", ".kube/config"),
)
_MOST_STORE = 1 << 20
_IN_STORE = re.compile(r"[^\s\"'=:,@{}\[\]<>]{8,}")
_SHORTEST_SECRET = 8
_SHORTEST_NAME = 4
_SHORTEST_PIN = 4
_LONGEST_SECRET = 4_000  # characters; what is longer is a key, and is found by its form
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_PHRASE = re.compile(r"\w+(?:[ -]\w+){2,}")
_BETWEEN = re.compile(r"[\s_-]{1,4}")
_KNOWN = "a secret of this harvest"

_EMAIL = re.compile(r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![\w-])")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
# A number ends before the stand-in of an address, 192.0.2.1.
_PHONE = re.compile(
    r"(?<![\w.+/-])(?:\+[1-9][0-9]{0,2}[ ./-]?(?:\(0?[0-9]{1,5}\)[ ./-]?)?[0-9]{2,8}(?:[ ./-][0-9]{2,8}){1,4}"
    r"|\+[1-9][0-9]{7,14})(?!\w|\.0\.2\.)"
    r"|(?<![\w.+/-])(?:\([0-9]{3,5}\) ?[0-9]{3,4}[ -][0-9]{4}|0[0-9]{2,4}[ /-][0-9]{5,9}"
    r"|[2-9][0-9]{2}-[0-9]{3}-[0-9]{4})(?!\w)"
)
_CARD = re.compile(r"(?<![\w.-])(?:[0-9]{4}[ -]){3}[0-9]{1,7}(?![\w.-])|(?<![\w.-])[3-6][0-9]{14,15}(?![\w.-])")
_IP4 = re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.])")
_IP6 = re.compile(
    r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}:){3,7}(?::?[0-9a-fA-F]{1,4}){1,4}(?![\w:])|(?<![\w:.])(?:[0-9a-f]{1,4}:){2,7}:(?![\w:])"
    r"|(?<![\w:.])fe80::[0-9a-fA-F:]{4,40}(?![\w:])"
)
_OPEN = re.compile(r"(?:127\.|0\.0\.0\.0|192\.0\.2\.|255\.255\.|198\.51\.100\.|203\.0\.113\.)")


def known_secrets(environ: Mapping[str, str], project: Path | None) -> Iterator[str]:
    """Yield the values that this machine keeps as secrets: in variables, in its usual files, and in ``.env``."""
    named = (value for name, value in environ.items() if is_name_of_credential(name, certainly=False))
    yield from (value for value in named if not value.startswith("/"))
    home = Path(environ.get("HOME") or Path.home())
    files = [home / name for name in _STORES] + ([project / ".env", project / ".env.local"] if project else [])
    for file in files:
        with suppress(OSError, UnicodeDecodeError):
            text = read_plain(file, most=_MOST_STORE, follow=True).decode()
            yield from (word for word in _IN_STORE.findall(text) if re.search(r"\d", word) and "/" not in word[:1])


def known_names(environ: Mapping[str, str], directory: Path) -> Iterator[tuple[str, str]]:
    """Yield what says whose machine this is, each with its stand-in."""
    home = environ.get("HOME") or str(Path.home())
    yield home, "<home>"
    with suppress(OSError, KeyError):
        yield environ.get("USER") or environ.get("LOGNAME") or getpass.getuser(), "<user>"
    yield Path(home).name, "<user>"
    host = socket.gethostname()
    yield from ((name, "<host>") for name in (host, host.partition(".")[0], environ.get("HOSTNAME", "")))
    yield configured(directory, environ, "user.name"), "<name>"
    yield configured(directory, environ, "user.email"), "<email>"


class SecretValues:
    """The values that are secrets in one harvest: what is one anywhere is one everywhere, and in every spelling."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._patterns: dict[str, re.Pattern[str] | None] = {}
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Count ``value`` as a secret from now on, unless it is so short that it occurs by chance."""
        is_pin = value.isdigit() and len(value) >= _SHORTEST_PIN and not _YEAR.fullmatch(value)
        if MASK in value or (len(value) < _SHORTEST_SECRET and not is_pin):
            return
        if is_pin and len(value) < _SHORTEST_SECRET:
            self._patterns[value] = re.compile(rf"(?<![\w.,-]){value}(?![\w-]|[.,][0-9])")
            return
        for form in dict.fromkeys((value, json.dumps(value)[1:-1], _encoded(value))):
            self._patterns[form] = None
        if _PHRASE.fullmatch(value):  # its words may have hyphens or a line end between them
            words = _BETWEEN.split(value)
            self._patterns[" ".join(words)] = re.compile(_BETWEEN.pattern.join(map(re.escape, words)))

    def learn(self, text: str) -> None:
        """Count what looks like a credential in ``text`` as a secret."""
        for credential in find_credentials(text):
            value = text[credential.start : credential.end]
            # A plain word is one in other places, too; where it was found, it goes by what is around it.
            is_word = (
                value.isalpha() and (value.islower() or value.istitle() or value.isupper()) and not is_random(value)
            )
            if "\n" not in value and len(value) <= _LONGEST_SECRET and not is_word:
                self.add(value)
                self.add(value.rpartition(":")[2])

    def find(self, text: str) -> Iterator[FoundCredential]:
        """Yield where the values occur, as they are or spelled in another way."""
        yield from (FoundCredential(start, end, _KNOWN, Certainty.CERTAIN) for start, end in self._spans(text))
        if (plain := plain_spelling(text)) is not None:
            for start, end in self._spans(plain.text):
                yield FoundCredential(*plain.origin(start, end), _KNOWN, Certainty.CERTAIN)

    def masked(self, text: str) -> str:
        """Return ``text`` with a mask in place of every value."""
        return cut_out(text, merged(self.find(text)))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        for mark, pattern in self._patterns.items():
            if mark.partition(" ")[0] not in text:
                continue
            if pattern is not None:
                yield from (match.span() for match in pattern.finditer(text))
                continue
            at = text.find(mark)
            while at >= 0:
                yield at, at + len(mark)
                at = text.find(mark, at + len(mark))


@dataclass(slots=True)
class SessionRedactor:
    """Redacts the texts of one draft; an address that it has taken out once has the same stand-in again."""

    secrets: SecretValues = field(default_factory=SecretValues)  # of all drafts
    names: tuple[tuple[str, str], ...] = ()  # longest first, with their stand-ins
    values: set[str] = field(default_factory=set)  # what was taken out
    _redactor: Redactor = field(default_factory=lambda: Redactor.now(Certainty.LIKELY))
    _stand_ins: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, environ: Mapping[str, str], directory: Path) -> SessionRedactor:
        names = {
            name: stand_in
            for name, stand_in in known_names(environ, directory)
            if len(name) >= _SHORTEST_NAME and name not in ("root", "/root", "localhost", "skillgit")
        }
        if "/root" in (environ.get("HOME"), str(Path.home())):
            names["/root"] = "<home>"
        order = sorted(names.items(), key=lambda pair: -len(pair[0]))
        return cls(SecretValues(known_secrets(environ, directory)), tuple(order))

    def fresh(self, texts: Iterable[str] = ()) -> SessionRedactor:
        """Return a redactor for another draft, which has stand-ins of its own.

        What is a secret anywhere in ``texts``, by what is around it, is one wherever it occurs, in every draft.
        """
        for text in texts:
            self.secrets.learn(text)
        return SessionRedactor(self.secrets, self.names, _redactor=self._redactor)

    def text(self, text: str) -> str:
        """Return ``text`` without secrets and names, also without those that are written with escapes."""
        text = clean(text)
        credentials = merged([*self.secrets.find(text), *self._redactor.find(text)])
        self.values.update(text[credential.start : credential.end] for credential in credentials)
        text = cut_out(text, credentials)
        plain = plain_spelling(text)
        if plain is not None and (hidden := list(self._personal(plain.text))):
            spans = [(*plain.origin(start, end), stand_in) for start, end, stand_in in hidden]
            text = _replaced(
                text,
                [span for span in spans if span[1] - span[0] != len(span[2]) or text[span[0] : span[1]] != span[2]],
            )
        return _replaced(text, self._personal(text))

    def path(self, path: str) -> str:
        """Return a relative path as it may be the name of a file of a draft."""
        return "/".join(file_name_of(self.text(part)) for part in path.split("/"))

    def _personal(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield where something says whose machine this is, or is an address or a number, with its stand-in."""
        names = (
            (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)"), stand_in) for name, stand_in in self.names if name in text
        )
        for shape, stand_in in names:
            for match in shape.finditer(text):
                self.values.add(match[0])
                yield *match.span(), stand_in
            text = shape.sub(lambda match: "\0" * len(match[0]), text)  # what has a stand-in is part of nothing else
        for shape, form, is_harmless in _NUMBERED:
            spans = [match.span() for match in shape.finditer(text) if not is_harmless(match[0])]
            for start, end in spans:
                yield start, end, self._stand_in(text[start:end], form)
            text = _replaced(text, [(start, end, "\0" * (end - start)) for start, end in spans])

    def _stand_in(self, value: str, form: str) -> str:
        if value not in self._stand_ins:
            self._numbers[form] = self._numbers.get(form, 0) + 1
            self._stand_ins[value] = form.format(self._numbers[form])
        self.values.add(value)
        return self._stand_ins[value]


def file_name_of(text: str) -> str:
    """Return a redacted part of a path as it may be a name of a file."""
    return re.sub(r"[^\w.+-]", "_", text)


def _replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Return ``text`` with stand-ins in place of spans; of two that overlap, the one that begins first."""
    parts, at = list[str](), 0
    for start, end, stand_in in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:
            parts += text[at:start], stand_in
            at = end
    return "".join([*parts, text[at:]])


def _encoded(value: str) -> str:
    return b64encode(value.encode("utf-8", "surrogatepass")).decode()


def _is_example(address: str) -> bool:
    return bool(re.search(r"@(?:[\w-]+\.)*(?:example\.(?:com|org|net)|test|invalid|localhost)\Z", address.lower()))


def _is_no_iban(text: str) -> bool:
    digits = text.replace(" ", "")
    return int("".join(str(int(sign, 36)) for sign in digits[4:] + digits[:4])) % 97 != 1


def _is_no_card(text: str) -> bool:
    digits = [int(sign) for sign in text if sign.isdigit()][::-1]
    return sum(digit if at % 2 == 0 else sum(divmod(2 * digit, 10)) for at, digit in enumerate(digits)) % 10 != 0


def _is_no_phone(text: str) -> bool:
    return sum(sign.isdigit() for sign in text) < 9  # noqa: PLR2004 - shorter ones are of one town or office


_NUMBERED: tuple[tuple[re.Pattern[str], str, Callable[[str], bool]], ...] = (
    (_EMAIL, "person{}@example.com", _is_example),
    (_IBAN, "<iban-{}>", _is_no_iban),
    (_CARD, "<card-{}>", _is_no_card),
    (_IP4, "192.0.2.{}", lambda address: bool(_OPEN.match(address))),
    (_IP6, "2001:db8::{}", lambda address: address.startswith("2001:db8")),
    (_PHONE, "<phone-{}>", _is_no_phone),
)
"""What is replaced, by what, and which of it says nothing about anybody."""
