"""What of a session must not be written down: credentials, and what says whose session it was.

Values that this machine knows as secret, or as its owner's, go first, and then what looks like a secret. The same value
has the same stand-in throughout a draft, so that code and its test still agree; e-mail and IP addresses have stand-ins
that are addresses. The texts are private to begin with, so that a word too many that is taken out costs little.
"""

from __future__ import annotations

import getpass
import json
import re
import socket
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.model_text import clean
from skillgit.files import read_plain
from skillgit.plugin.redaction import MASK, credentials, redact
from skillgit.store.git_binary import configured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth(?!or)|cookie")
_STORES = (
    *(".git-credentials", ".netrc", ".npmrc", ".pypirc", ".aws/credentials", ".docker/config.json", ".vault-token"),
    *(".config/gh/hosts.yml", ".config/git/credentials", ".claude/.credentials.json", ".codex/auth.json"),
    *(".config/github-copilot/apps.json", ".local/share/opencode/auth.json", ".kube/config"),
)
_MOST_STORE = 1 << 20
_IN_STORE = re.compile(r"[^\s\"'=:,@{}\[\]<>]{8,}")
_SHORTEST_SECRET = 8
_SHORTEST_NAME = 4
_MIXED = 16  # characters of a word in camel case from which on it may be a pass phrase

_PREFIX = (
    r"sk-(?:ant|proj|or|svcacct)-|gh[oprsu]_|github_pat_|gl(?:pat|dt|rt|ptt|ft|soat|cbt)-|hf_|npm_|pypi-|xox[abeoprs]-"
    r"|xapp-|AIza|ya29\.|gsk_|xai-|pplx-|[srp]k_(?:live|test)_|whsec_|SG\.|dop_v1_|dapi(?=[0-9a-f])|hv[sb]\."
    r"|shp(?:at|ca|pa|ss)_|AGE-SECRET-KEY-|lin_api_|sntrys_|figd_|glsa_|ATATT3x|PMAK-|sbp_|tskey-|r8_|AKIA|ASIA"
)
# Behind such a beginning a few characters are enough: whoever cut the text has cut the credential with it.
_TOKEN = rf"(?<![A-Za-z0-9])(?:{_PREFIX})[A-Za-z0-9_./+=-]{{6,}}"
# a terminal may have broken it
_TOKEN += r"(?:\r?\n[ \t]{0,8}(?=[A-Za-z_-]{0,80}[0-9])[A-Za-z0-9_-]{6,120}(?![\w.(]))?"
_PEM = (
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|[\s\"'>+|A-Za-z0-9/=:,.-])*"
    r"|(?:[A-Za-z0-9+/=]{16,80}(?:\\[nr]|[\s\"'>|]){1,8}){1,99}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
)
_HOOK = r"https://(?:hooks\.slack\.com|discord(?:app)?\.com/api/webhooks|[\w.-]+\.webhook\.office\.com)/[\w/@.-]+"
_JWT = r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
_BASIC = r"(?i)(?<=basic )[A-Za-z0-9+/]{12,}={0,2}"
_AZURE = r"(?<=AccountKey=)[A-Za-z0-9+/=]{40,}"
_BOT = r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"
_IN_URL = r"(?<=://)[^\s/:@\"']{0,64}:[^\s/\"']{1,200}(?=@)"
_SIGNATURE = r"(?<=[?&]sig=)[A-Za-z0-9%+/=]{20,200}"
_TWILIO = r"(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![A-Za-z0-9])"
# Forty characters with letters of both cases and digits are how AWS writes a secret key; a commit has one case.
_AWS = (
    r"(?<![A-Za-z0-9/+=_-])(?=\S{0,39}[a-z])(?=\S{0,39}[A-Z])(?=\S{0,39}[0-9])"
    r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])"
    r"|(?i:(?<=secret_access_key)) ?[=:] ?[A-Za-z0-9/+]{8,40}\r?\n[ \t]{0,8}[A-Za-z0-9/+]{8,40}(?![A-Za-z0-9/+=_-])"
)
_WORDS = "pass(?:wor[dt]|wd)?|pwd|kennwort|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential"
_QUOTED = r"\\{0,3}[\"'](?P<quoted>[^\"'\\\n]{6,200})\\{0,3}[\"']"
_BARE = r"(?P<bare>[^\s\"'(){}\[\],;<>\\]{8,200})(?=[\s,;\"'<)}\]\\]|$)"
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
_ASSIGNMENTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        rf"(?:{_WORDS})\w{{0,40}}\\{{0,3}}[\"']?\s{{0,2}}(?::=|=>|[:=,>]|is\s|ist\s)\s{{0,2}}{_VALUE}",
        rf"--(?:{_WORDS})[\w-]{{0,20}}[ =]{_VALUE}",
        rf"\bset -\S{{1,4}} \w{{0,40}}(?:{_WORDS})\w{{0,40}} {_VALUE}",
        rf"\b(?:login|password)\s{{1,2}}{_VALUE}",
        rf"(?:\s-u|--user)[ =]?[^\s:]{{1,64}}:{_VALUE}",
        rf"\b(?:mysql|mysqldump|mariadb|sshpass|login)\b[^\n|;]{{0,80}}?\s-p ?{_VALUE}",
        r"\bcookie:[ \t]{0,4}(?P<quoted>[^\n\"']{8,400})",
        rf"[\"']auth[\"']\s{{0,2}}:\s{{0,2}}{_QUOTED}",
        rf"\becho [\"']?{_BARE}[\"']?\s{{0,3}}\|\s{{0,3}}base64\b",
        r"\bexport \w{1,60}=[\"']?(?P<bare>[0-9a-f]{24,200})(?=[\s\"']|$)",
    )
)
_SHAPES = (_PEM, _HOOK, _TOKEN, _JWT, _BASIC, _AZURE, _BOT, _IN_URL, _SIGNATURE, _TWILIO, _AWS)
_CREDENTIALS = tuple(map(re.compile, _SHAPES))
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
_ESCAPE = re.compile(r"\\{1,3}u00([2-7][0-9a-fA-F])|\\{1,3}x([2-7][0-9a-fA-F])|%([2-7][0-9a-fA-F])|&#x?([0-9]{2,3});")


def known_secrets(environ: Mapping[str, str], project: Path | None) -> Iterator[str]:
    """Yield the values that this machine keeps as secrets: in variables, in its usual files, and in ``.env``."""
    named = (value for name, value in environ.items() if _SECRET_NAME.search(name))
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


@dataclass(slots=True)
class SessionRedactor:
    """Redacts the texts of one draft; what it has taken out once has the same stand-in again."""

    secrets: tuple[str, ...]  # longest first
    names: tuple[tuple[str, str], ...]  # longest first, with their stand-ins
    values: set[str] = field(default_factory=set)  # what was taken out
    secret_values: set[str] = field(default_factory=set)  # of these, what looked like a secret
    _stand_ins: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, environ: Mapping[str, str], directory: Path) -> SessionRedactor:
        secrets = {value for value in known_secrets(environ, directory) if len(value) >= _SHORTEST_SECRET}
        forms = {form for value in secrets for form in (value, json.dumps(value)[1:-1], _encoded(value))}
        names = {
            name: stand_in
            for name, stand_in in known_names(environ, directory)
            if len(name) >= _SHORTEST_NAME and name not in ("root", "/root", "localhost", "skillgit")
        }
        if "/root" in (environ.get("HOME"), str(Path.home())):
            names["/root"] = "<home>"
        order = sorted(names.items(), key=lambda pair: -len(pair[0]))
        return cls(secrets=tuple(sorted(forms, key=lambda form: (-len(form), form))), names=tuple(order))

    def fresh(self, texts: Iterable[str] = ()) -> SessionRedactor:
        """Return a redactor for another draft, which has stand-ins of its own.

        What is a secret anywhere in ``texts``, by what stands around it, is one wherever it occurs.
        """
        finder = SessionRedactor(self.secrets, self.names)
        for text in texts:
            finder.text(text)
        values = {part for value in finder.secret_values for part in (value, value.rpartition(":")[2])}
        values |= {*map(_encoded, values)}
        literals = {value for value in values if len(value) >= _SHORTEST_SECRET and MASK not in value}
        order = sorted({*self.secrets, *literals}, key=lambda value: (-len(value), value))
        return SessionRedactor(tuple(order), self.names)

    def text(self, text: str) -> str:
        """Return ``text`` without secrets and names; also those that are written with escapes."""
        text = self._plain(clean(text))
        loose = _ESCAPE.sub(_unescaped, text)
        if loose != text and (hidden := self._plain(loose)) != loose:
            return hidden
        return text

    def path(self, path: str) -> str:
        """Return a relative path as it may be the name of a file of a draft."""
        return "/".join(re.sub(r"[^\w.+-]", "_", self.text(part)) for part in path.split("/"))

    def _plain(self, text: str) -> str:
        for value in self.secrets:
            text = self._replace(text, value, MASK)
        for shape in _CREDENTIALS:
            text = shape.sub(self._masked, text)
        for shape in _ASSIGNMENTS:
            text = shape.sub(self._assigned, text)
        shorter = redact(text)
        if shorter != text:
            self.values.update(credentials(text))
        text = shorter
        for name, stand_in in self.names:
            text, count = re.subn(rf"(?<!\w){re.escape(name)}(?!\w)", stand_in, text)
            self.values.update([name] if count else [])
        for shape, form, is_harmless in _NUMBERED:
            text = shape.sub(lambda match, form=form, rule=is_harmless: self._stood_in(match[0], form, rule), text)  # type: ignore[misc]
        return text

    def _replace(self, text: str, value: str, stand_in: str) -> str:
        self.values.update([value] if value in text else [])
        return text.replace(value, stand_in)

    def _masked(self, match: re.Match[str]) -> str:
        if match[0] != MASK:
            self.values.add(match[0])
            self.secret_values.add(match[0])
        return MASK

    def _assigned(self, match: re.Match[str]) -> str:
        """Mask the value behind a word such as password, unless it is a name in code and no literal."""
        groups = match.groupdict()
        name = "quoted" if groups.get("quoted") else "bare"
        value = match[name]
        if MASK in value or not _is_literal(value, is_quoted=name == "quoted"):
            return match[0]
        start, end = match.start(name) - match.start(), match.end(name) - match.start()
        self.values.add(value)
        self.secret_values.add(value)
        return f"{match[0][:start]}{MASK}{match[0][end:]}"

    def _stood_in(self, value: str, form: str, is_harmless: Callable[[str], bool]) -> str:
        if is_harmless(value):
            return value
        if value not in self._stand_ins:
            self._numbers[form] = self._numbers.get(form, 0) + 1
            self._stand_ins[value] = form.format(self._numbers[form])
        self.values.add(value)
        return self._stand_ins[value]


def _encoded(value: str) -> str:
    return b64encode(value.encode("utf-8", "surrogatepass")).decode()


def _is_literal(value: str, *, is_quoted: bool) -> bool:
    """Say whether a value is written out, and no name, path or call of a program's source."""
    has_digit, has_letter = bool(re.search(r"\d", value)), bool(re.search(r"[A-Za-z]", value))
    is_code = bool(re.fullmatch(r"[$<%].*|[A-Za-z_][\w-]*(?:(?:\.|::|->)[A-Za-z_]\w*)+\W*", value))
    is_mixed = bool(re.search(r"[a-z][A-Z]", value)) and len(value) >= _MIXED
    return has_letter and not (is_code and not is_quoted) and (has_digit or is_mixed)


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    code = int(hexadecimal, 16) if hexadecimal else int(match[4], 16 if "x" in match[0] else 10)
    return chr(code) if 0x20 <= code < 0x7F else match[0]  # noqa: PLR2004 - what ASCII prints


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
