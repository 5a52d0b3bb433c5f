r"""Values near a word for secret: on its line, in the next value, in its column, and where a command expects one.

A value goes unless it is plainly code, a placeholder, or a word of prose. Right behind ``password =`` almost anything
is a value; further on in the line only what looks as if it had been made up: letters and digits in one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from skillgit.domain.credentials.random_words import is_random, rarity
from skillgit.domain.credentials.spellings import meaning_of

MASK = "[redacted]"
"""What is written in place of a credential."""

Span = tuple[int, int]

# Words for secret by how they begin; the pattern behind a stem says where the word ends.
_PLAIN_WORDS = (
    "pass phrase, pass-phrase, passcode, passkey, kennwort, kennwörter, api key, apikey, api_key, api-key, "
    "access key, access_key, access-key, accesskey, private key, private_key, privatekey, secret_key, "
    "secretkey, account_key, accountkey, accesstoken, encryption_key, encryption key, encryptionkey, "
    "signing_key, signingkey, master_key, masterkey, license key, license_key, subscription-key, masterauth, "
    "requirepass, storepass, keypass, sign in, log in, logged in, seed phrase, seed words, recovery phrase, "
    "mnemonic, contraseña, contrasena, mot de passe, mot_de_passe, motdepasse, senha, parola, hasło, haslo, "
    "wachtwoord, lösenord, adgangskode, passord, salasana, heslo, şifre, sifre, jelszó, 密码, 密碼, 口令, パスワード, "
    "暗証番号, 비밀번호, 암호, كلمة المرور, كلمة السر, סיסמה, סיסמא, mật khẩu, kata sandi, รหัสผ่าน, पासवर्ड"
)
_WORDS: dict[str, str] = {
    **dict.fromkeys(_PLAIN_WORDS.split(", "), ""),
    "passw": r"ord(?:s|e?t)?|ort(?:e|s)?|d|",
    "passphrase": r"n?",
    "pass": r"(?![a-zA-Z_])|(?-i:(?=[A-Z][a-z]))",
    "passin": r"(?![a-zA-Z])",
    "pwd": r"(?![a-zA-Z])",
    "pw": r"(?![a-zA-Z])",
    "secret": r"(?:s|key)?(?![a-z])",
    "token": r"(?![a-z])",
    "credential": r"s?(?![a-z])",
    "_auth": r"(?![a-zA-Z])",
    "auth": r"(?=\W{0,3}\s{0,2}[:=])",
    "login": r"(?![a-zA-Z_(])",
    "clé": r"(?= (?:api|d'api|secrète))(?: \S{3,8})",
    "clave": r"(?![a-zA-Z])",
    "парол": r"\w{0,3}",
    "κωδικ": r"\w{0,4}(?: πρόσβασης)?",
}
_NEEDS_BORDER = frozenset(
    {"pass", "pw", "pwd", "auth", "clave", "token", "login", "log in", "sign in", "secret", "senha", "parola", "passin"}
)
_PIN = re.compile(
    r"(?:\bPIN(?![A-Za-z])|\bpin(?= ?(?:code|number|is\b|[:=]))|\b(?:card|sim|phone) pin\b"
    r"|\b(?:door|gate|alarm|access|entry|security|unlock|safe|pin) (?:code|number|combination)\b)"
    r"[^\n0-9]{0,40}?(?<![\w.-])(?P<value>[0-9](?:[ -]?[0-9]){3,9})(?![\w-]|\.[0-9])"
)
# What a name ends with that says something about a secret and is none itself.
_ABOUT = re.compile(
    r"(?i)(?:_|-|\b)?(?:length|len|min|max|count|counter|limit|size|field|hash|type|types|name|names|id|ids|url"
    r"|uri|path|file|expir\w*|ttl|age|policy"
    r"|rules?|required|reset|enabled|var|variable|env|class|header|param|params|parameter|column|label|regex"
    r"|pattern|usage|per\w*|form|input|page"
    r"|rates?|budget|window|index|position|prefix|suffix|strength|manager|error|errors|location|format|provider"
    r"|ref|version|dir|directory|folder)\d?\Z"
)
_WIDER = re.compile(r"secret|token|key|auth|credential|log|sign|seed|phrase|words|mnemonic|cl[éa]")  # may have names
_WORD_AND_DIGIT = re.compile(r"[a-z]{6}[a-z_]*[0-9]")  # a password behind "password:", elsewhere a name, as option1 is
# A password of letters alone at the end of "password:"; not a state, such as "enabled".
_LETTERS = re.compile(r"(?!\w+(?:ed|ing|ble|rect|own|ment|text)\Z)[a-z]{6,}")
_NEAR_PIN = 16  # characters from the word on within which a number that may be a year is a PIN
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_USER = re.compile(r"(?i)user|login|name|account|as ")
_REST_OF_NAME = re.compile(r"[A-Za-z0-9_.-]{0,40}")
_CLOSERS = re.compile(r"\\{0,7}[\"'`*_]{0,3}(?:\\{0,7}[\"'])?[\])]{0,2}")
_TOKEN = re.compile(
    r"\\{0,7}\"\"\"(?P<triple>[^\"\n]{1,200})\"\"\""
    r"|\\{0,7}\"(?P<double>(?:[^\"\\\n]|\\[^\"\n\\]){0,300})\\{0,7}\""
    r"|\\{0,7}'(?P<single>(?:[^'\\\n]|\\[^'\n\\]){0,300})\\{0,7}'"
    r"|`(?P<tick>[^`\n]{1,200})`"
    r"|\$\{[^}\n]{0,80}?:-(?P<default>[^}\n]{1,200})\}"
    r"|(?P<placeholder>[$%]?\{\{?[^}\n]{0,200}\}\}?|<[^<>\n]{1,60}>)"
    r"|(?P<bare>[!#-&*+.0-9?-Z^-z~\u00c0-\u024f-][!#-&*+\--:=?-Z^-z~\\\u00c0-\u024f]*)"
)
_STRONG = re.compile(
    r"(?:[:=>|,\u2014\u2192\uff1a/?]|<-|\u662f|\u306f|\ub294|\uc740|:-|\|\||- "
    r"|\b(?:is|was|ist|lautet|war|est|es|era|\u00e8|\u00e9|s\u00e3o|\u00e4r|je|este|jest|to"
    r"|\u044d\u0442\u043e))\s{0,8}\Z"
)
_RARE = 4.0  # rarity of a word from which on it is none of a language
_CAMEL = 12  # characters of a word in camel case from which on it may be a phrase
_STRONG_TOKENS = 5  # a sign of assignment further on in the line is another value's
_ASSIGNED = re.compile(r"(?:[:=>|\u2014\u2192\uff1a]|<-)\s{0,8}\Z")
_MOST_TOKENS, _MOST_CHARACTERS = 14, 240
_PLACEHOLDER = re.compile(
    r"(?i)\W*(?:x{3,}|\*{3,}|\.{3,}|-{3,}|_{3,}|0{3,}"
    r"|(?:your|my|the|a|an|some|any|this|new|old|test|dummy|fake|sample|example|insert|enter|replace|put|set"
    r"|got|get|user|db)(?:[ _-]\w{1,20}){0,3}?[ _-]?"
    r"(?:password|passwd|pass|secret|token|key|value|credentials?|here)(?:[ _-]\w{1,12}){0,2}"
    r"|change[ _-]?(?:me|it|this)|placeholder|redacted|hidden|masked|none|null|nil|true|false|undefined|unset"
    r"|empty|required|optional|string|str|text"
    r"|int|bool|bytes|number|object|any|secretstr|password|passwd|pass|pwd|pw|user|secret|token|apikey"
    r"|api[ _-]?key|credentials?|todo|tbd|fixme|foo|bar"
    r"|example|n/?a|yes|no|on|off|\[?redacted\]?)\W*"
)
_VARIABLE = re.compile(r"[$%]?\{.*\}?|<.*>|\$\w+|\$\(.*|%\w+%|\{\{.*|\$\w+\W?")
_CODE = re.compile(
    r"[$@&%<{(].*|[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)+\W*|[A-Za-z_][\w.]*[(\[].*|--?[a-z][\w-]*=?"
    r"|[a-z_]+=|.*[({\[]|[A-Za-z_]\w*(?:<[\w, ]+>|\[\])\W*"
)
_TECHNICAL = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?:sha-?[0-9]{1,3}|md[45]|base-?(?:16|32|58|64)|utf-?(?:8|16|32)|u?int(?:8|16|32|64"
    r"|128)|float(?:16|32|64)|x86_?64|x64|x86|amd64|arm64|aarch64|http[s]?[123]?"
    r"|ipv[46]|oauth[12]?|h26[45]|mp[34]|[23]fa|k8s|i18n|l10n|a11y|log4j|py(?:thon)?-?[23](?:\.?[0-9]{1,2})*"
    r"|win32|win64|es[0-9]{1,4}|neo4j|web3|b2b|s3|ec2|r2|d3|[v][0-9]{1,4}(?:\.[0-9]+)*"
    r"|ed25519|x509|rs(?:256|384|512)|hs(?:256|384|512)|es(?:256|384|512)|aes-?(?:128|192|256)|rsa-?[0-9]{4}"
    r"|tls1\.[0-9]|pkcs[0-9]{1,2}|p(?:256|384|521)|argon2(?:id|i|d)?|pbkdf2|pk12"
    r"|gpt-?[0-9]\w*|claude[\w.-]*|llama[\w.-]*|qwen[\w.-]*|gemini[\w.-]*|mi[sx]tral[\w.-]*|phi-?[0-9]\w*"
    r"|deepseek[\w.-]*|o[134]-?mini|iso-?[0-9]{1,5}|rfc-?[0-9]{1,5}|cve-[0-9-]+"
    r"|node-?[0-9]{1,2}|ubuntu-?[0-9.]+|debian-?[0-9]+|(?:us|eu|ap|ca|sa|af|me)-[a-z]+-[0-9]|[0-9]+(?:px|em|rem"
    r"|ms|kb|mb|gb|tb|k|m|s|h|d|st|nd|rd|th|x|bit|bits|byte|bytes|chars?)(?![a-z])|f1|c\+\+[0-9]{2}|h[1-6]"
    r"|0x[0-9a-f]+|\b(?:ann|arg|[a-z]{1,3})[0-9]{3,4}\b|latin-?[0-9]|cp[0-9]{3,4})"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9]{1,2}[:./-][0-9]{1,2}.*|v?[0-9]+(?:\.[0-9]+)+\S{0,20}|#[0-9a-fA-F]{3,8}"
)
_NUMBERED = re.compile(
    r"_?(?:[A-Za-z]+[_.:/-])*[A-Za-z]+[_.:/-]?[0-9]{1,3}(?:[_.:/-][A-Za-z]+)*"
    r"|(?:[A-Za-z]*[0-9]{0,2}_)+[A-Za-z]*[0-9]{0,2}"
)
_PATH = re.compile(
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|[\w-]+\.(?:py|js|ts|md|txt|json|ya?ml|toml|html?|css|sh|go|rs|rb"
    r"|java|sql|csv|pem|crt|log|cfg|ini|env|zip|png|svg|pdf|docx?|xlsx?|com|org|net|io|dev)"
)
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://.*|\S+@\S+\.\S+", re.IGNORECASE)
_END_SIGNS = ".,;:?)]}*_"
# Words of prose, which no phrase of random words has, also those that are said about passwords.
_COMMON_WORDS = frozenset(
    """
    a an the and or of in on at to for from by with as is are was were be been it its this that these those your my
    our their his her you we they he she i not no do does did if when where which who what how why can could will
    would should must may might shall has have had than then there here only also so but into out up about after
    before under over between per via each every all any some most more less very just too both one two first second
    new old same other such own use used uses using set sets enter enters type types change changes changed contain
    contains containing match matches require requires required reset resets need needs needed store stored stores
    keep kept send sent get gets give given show shown shows hide hidden ask asks asked check checks checked hash
    hashed hashes encrypt encrypted validate minimum maximum length characters character letters digits digit
    symbols field fields form value values string strings name names user users username email file files login
    account service server database optional default empty blank none null invalid valid wrong expired
    missing weak strong secure safe password passwords passphrase secret token key keys api auth
    authentication authorization policy manager test tests code error errors message input output page screen button
    text der die das und oder ist nicht ein eine mit von zu im den dem des auf für le la les un une et ou est pas de
    du en dans pour el los las y o es con por para il lo gli e è di da che
    """.split()  # noqa: SIM905 - a table
)
_PHRASE = re.compile(r"(?:[a-z]{2,14}[ -]){3,24}[a-z]{2,14}")
_PHRASE_WORD = re.compile(r"[a-z]{2,14}")
_FEWEST_WORDS = 4


_CERTAIN_NAME = re.compile(
    r"(?i)(?:\A|_)(?:api|access|auth)?(?:key|token|secret|password|passwd)\Z|api_?key|client_?secret|passw(?:or)?d"
)
_LIKELY_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth(?!or)|cookie")


def is_name_of_credential(name: str, *, certainly: bool) -> bool:
    """Say whether what has this name, such as a variable of the environment, is a credential."""
    return (_CERTAIN_NAME if certainly else _LIKELY_NAME).search(name) is not None


def named_values(text: str) -> Iterator[Span]:
    """Yield the spans of values that a word for secret gives away."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
    words = _words(text, lower)
    for number, (start, end) in enumerate(words):
        stop = words[number + 1][0] if number + 1 < len(words) else len(text)
        yield from _behind(text, lower, start, end, stop)
    if words:
        yield from _columns(text, words)
        yield from _before(text, words)
    if "pin" in lower or " code" in lower or " number" in lower or " combination" in lower:
        for match in _PIN.finditer(text):
            is_near = match.start("value") - match.start() <= _NEAR_PIN
            if is_near or not _YEAR.fullmatch(match["value"]):
                yield match.span("value")
    if "kind: secret" in lower:
        yield from _manifests(text)


def _words(text: str, lower: str) -> list[Span]:
    """Return where words for secret begin and end, in order; of two that overlap, the longer."""
    spans = list[Span]()
    for stem, rest in _WORDS.items():
        at = lower.find(stem)
        while at >= 0:
            begins = (
                stem not in _NEEDS_BORDER
                or not text[at - 1 : at].isalpha()
                or (text[at].isupper() and text[at - 1].islower())
            )
            if begins and (match := _pattern(stem, rest).match(text, at)):
                spans.append(match.span())
            at = lower.find(stem, at + len(stem))
    spans.sort(key=lambda span: (span[0], -span[1]))
    result = list[Span]()
    for span in spans:
        if not result or span[0] >= result[-1][1]:
            result.append(span)
    return result


@cache
def _pattern(stem: str, rest: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(stem)}(?:{rest})" if rest else re.escape(stem), re.IGNORECASE)


def _behind(text: str, lower: str, start: int, end: int, stop: int) -> Iterator[Span]:
    """Yield the values behind the word for secret from ``start`` to ``end``; the next such word is at ``stop``."""
    word = lower[start:end]
    rest = _REST_OF_NAME.match(text, end)
    name_end = min(rest.end() if rest else end, stop) if text[end : end + 1] not in " \n" else end
    if text[name_end - 1 : name_end] in ".-" and name_end > end:
        name_end -= 1
    if _ABOUT.search(text[end:name_end]):
        return
    begin = start
    while begin > max(0, start - 40) and (text[begin - 1].isalnum() or text[begin - 1] in "_-."):
        begin -= 1
    is_variable = text[begin:name_end].isupper() and text[begin:name_end].isascii() and len(text[begin:name_end]) > 3  # noqa: PLR2004 - one of an environment
    is_option = text[begin : begin + 2] == "--" or text[begin : begin + 1] == "-"
    if (
        word == "pass"
        and text[name_end : name_end + 1] == " "
        and begin == start
        and not _USER.search(text, max(0, start - 40), start)
    ):
        return  # to pass something on
    closers = _CLOSERS.match(text, name_end)
    at = closers.end() if closers else name_end
    line_end = text.find("\n", at)
    line_end = len(text) if line_end < 0 else line_end
    limit = min(line_end, at + _MOST_CHARACTERS, max(stop, at))
    is_phrase = "phrase" in word or word in ("mnemonic", "seed words")
    # "password(which" has no value, and neither has what is behind a mask
    is_met = False
    for count, token in enumerate(_TOKEN.finditer(text, at, limit)):
        if count >= _MOST_TOKENS:
            break
        kind = token.lastgroup or "bare"
        value = token[kind]
        lead = text[name_end : token.start()].strip("\"'`*_\\)] ")
        is_first = lead == ""
        is_assigned_phrase = word.startswith("pass") and lead in ("", ":", "=", ":=", "=>")
        before = text[max(name_end, token.start() - 12) : token.start()]
        if "redacted]" in text[at : token.end()]:
            is_met = True
            break
        if kind == "placeholder":
            if _ASSIGNED.search(before):
                is_met = value.startswith(("$", "{{", "<", "%"))
                if is_met:
                    break
            continue
        is_strong = (count < _STRONG_TOKENS and bool(_STRONG.search(before))) or (
            is_first
            and (
                is_option
                or is_variable
                or is_phrase
                or kind != "bare"
                or word in ("requirepass", "masterauth", "_auth", "storepass")
            )
        )
        if kind == "bare":
            if (
                word != "pass"
                and count < _STRONG_TOKENS
                and (is_phrase or is_strong)
                and (phrase := _phrase(text, token.start(), line_end))
            ):
                yield phrase
                is_met = True
                break
            follows = text[token.end() : token.end() + 1]
            for begin_value, end_value in _bare(text, token.start(), token.end()):
                part = text[begin_value:end_value]
                is_own = is_strong or begin_value > token.start()
                is_setting = is_variable and begin_value == name_end + 1
                is_password = is_own and count <= 1 and not _WIDER.search(word) and _WORD_AND_DIGIT.fullmatch(part)
                is_last = word.startswith("pass") and lead in (":", "=") and not text[end_value:line_end].strip()
                is_weak = is_last and _LETTERS.fullmatch(part) and part not in _COMMON_WORDS
                if (
                    ((is_password or is_weak) and not is_placeholder(part))
                    or _is_value(part, is_strong=is_own, is_variable=is_setting, is_assigned=is_assigned_phrase)
                ) and not (follows in ("(", "[") and end_value == token.end()):
                    yield begin_value, end_value
                    is_met = True
            if is_met and is_strong:
                break
        elif (is_assigned_phrase and _is_hyphened_phrase(value)) or _is_text(
            value, is_strong=is_strong or is_first, is_phrase=is_phrase, is_assigned=bool(_ASSIGNED.search(before))
        ):
            yield token.span(kind)
            is_met = True
            if is_strong:
                break
    if not is_met and limit == line_end:
        yield from _below(text, begin, at, line_end)


def _below(text: str, name: int, at: int, line_end: int) -> Iterator[Span]:
    """Yield the value on one of the next lines, where this line ends with a name, a colon or a bracket."""
    behind = text[at:line_end].strip().strip("\"'`*_\\,")
    line_start = text.rfind("\n", 0, name) + 1
    before = text[line_start:name]
    is_open = behind.endswith((":", "{", ">-", "|", ">", "(", "=", "below", "follows")) or (
        behind in ("", "</key>", "</name>") and re.search(r"(?:name|key|id)\W{1,4}\Z", before) is not None
    )
    if not is_open:
        return
    for _ in range(4):
        start = line_end + 1
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        line = text[start:line_end]
        if start > len(text):
            return
        match = re.fullmatch(
            r"[\s>|+-]{0,40}(?:(?:[\w\"'-]{0,20}(?:value|default|content|data"
            r"|string)[\"']?\s{0,4}[:=>])\s{0,4})?(?:<\w{1,20}>)?[\"'`]?"
            r"(?P<value>[^\s\"'`<>]{4,200})[\"'`]?(?:</\w{1,20}>)?[,;]?\s{0,20}",
            line,
        )
        if match and _is_value(match["value"], is_strong=True):
            yield start + match.start("value"), start + match.end("value")
            return
        if line.strip() and not re.match(r"\s{0,40}(?:type|description|sensitive|required|\w{1,20}:)\b", line):
            return


def _phrase(text: str, start: int, line_end: int) -> Span | None:
    """Return where a phrase of four words or more that make no sentence begins and ends."""
    match = _PHRASE.match(text, start, line_end)
    if match is None:
        return None
    end = start
    words = 0
    for word in _PHRASE_WORD.finditer(text, start, match.end()):
        if word[0] in _COMMON_WORDS:
            break
        words, end = words + 1, word.end()
    return (start, end) if words >= _FEWEST_WORDS else None


def _bare(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the parts of a word without quotes that may be a value: behind ``=`` or ``:``, else the whole."""
    while end > start and (text[end - 1] in _END_SIGNS or text[end - 1] == "\\"):
        end -= 1
    part = text[start:end]
    if match := re.match(r"[\w.-]{0,60}(?:=|:=|:)(?=[^=:/\\])", part):
        if part[match.end() :] and not _URL.match(part):
            yield start + match.end(), end
        return
    if part:
        offset = len(part) - len(part.lstrip("=:>-*|/?"))
        yield start + offset, end


def is_placeholder(value: str) -> bool:
    """Say whether a value is the place of one: ``<your-key>``, ``${VAR}``, ``changeme``, a mask."""
    return bool(_PLACEHOLDER.fullmatch(value) or _VARIABLE.fullmatch(value))


def _is_text(value: str, *, is_strong: bool, is_phrase: bool = False, is_assigned: bool = False) -> bool:
    """Say whether what is in quotes is a value and no label, message or piece of code."""
    value = value.strip()
    if len(value) < 4 or MASK in value or _PLACEHOLDER.fullmatch(value):  # noqa: PLR2004 - shorter ones protect nothing
        return False
    if " " in value:
        if not is_strong:
            return False
        words = value.split(" ")
        is_prose = any(word.lower().strip(".,:!?") in _COMMON_WORDS for word in words)
        return len(words) >= (_FEWEST_WORDS - 1) and not is_prose and all(word.isalnum() for word in words)
    if (
        value.startswith(("$", "<", "{", "%(", "#{")) and not re.search(r"[a-z0-9]{6}", value[:1] and value[1:])
    ) or _URL.match(value):
        return False
    if re.fullmatch(r"[$%]?\{.*\}|<.*>|\$\w+|%\w+%|\{\{.*", value) or _PATH.fullmatch(value):
        return False
    if not is_strong:
        return _is_made_up(value)
    if re.fullmatch(r"[A-Za-z_]+", value):
        # a label such as "user_name" or "required" is a word; a word in quotes behind "password =" is a value
        return (
            is_phrase
            or is_random(value)
            or (is_assigned and len(value) >= _CAMEL and bool(re.search(r"[a-z][A-Z]", value)))
        )
    if (
        _DATE.fullmatch(value)
        or re.search(r"[<>{}()]|[aA0]-[zZ9]", value)
        or (not is_assigned and _NUMBERED.fullmatch(value) and rarity(value) < _RARE and not _is_made_up_phrase(value))
    ):
        return False
    return (
        bool(re.search(r"[0-9]", _TECHNICAL.sub("", value)))
        or bool(re.search(r"[^\w\s.:/-]", value[1:-1]))
        or is_random(value)
    )


def _is_hyphened_phrase(value: str) -> bool:
    """Say whether a value is a phrase with hyphens, and no sentence about one."""
    is_phrase = re.fullmatch(r"[A-Za-z]+(?:-[A-Za-z]+){2,}", value) is not None
    return is_phrase and not any(word.lower() in _COMMON_WORDS for word in value.split("-"))


def _is_value(value: str, *, is_strong: bool, is_variable: bool = False, is_assigned: bool = False) -> bool:
    """Say whether a word without quotes is a value."""
    if len(value) < 4 or MASK in value or "redacted" in value or _PLACEHOLDER.fullmatch(value):  # noqa: PLR2004 - as above
        return False
    if _CODE.fullmatch(value) or _URL.fullmatch(value):
        return False
    if not is_strong:
        return _is_made_up(value)
    if _PATH.fullmatch(value):
        return False
    if value.isdigit():
        return len(value) >= 6 or is_variable  # noqa: PLR2004 - shorter numbers are counts
    if re.fullmatch(r"[A-Za-z]+", value):
        is_camel = is_assigned and len(value) >= 16 and bool(re.search(r"[a-z][A-Z][a-z]", value))  # noqa: PLR2004 - a phrase
        return (
            (is_variable and value.lower() not in _COMMON_WORDS)
            or is_camel
            or is_random(value)
            or rarity(value) > _RARE
        )
    if re.fullmatch(r"[A-Za-z_]+", value) or _DATE.fullmatch(value):
        return False
    plain = _TECHNICAL.sub("", value)
    return (
        bool(re.search(r"[0-9]", plain))
        and bool(re.search(r"[A-Za-z]", plain))
        and not (re.fullmatch(r"[a-z]+_?[0-9]", value) and rarity(value) < _RARE)
    )


def _is_made_up(value: str) -> bool:
    """Say whether a word has letters and digits as only made-up words have."""
    if len(value) < 8 or _URL.match(value):  # noqa: PLR2004 - passwords in prose are longer
        return False
    if _DATE.fullmatch(value) or _PATH.fullmatch(value) or _NUMBERED.fullmatch(value):
        return _is_made_up_phrase(value)
    plain = _TECHNICAL.sub("", value)
    if not (re.search(r"[0-9]", plain) and re.search(r"[A-Za-z]", plain)):
        return False
    return bool(re.fullmatch(r"[!-~]+", value)) and not re.search(r"[()\[\]{}<>;]|=.", value)


def _is_made_up_phrase(value: str) -> bool:
    """Say whether two words have a number between them, as passwords that people make up do."""
    return bool(re.fullmatch(r"[A-Za-z]{3,}[_.:/-]?[0-9]{2,}[_.:/-]?[A-Za-z]{3,}!?", value)) and not _TECHNICAL.search(
        value
    )


def _before(text: str, words: list[Span]) -> Iterator[Span]:
    """Yield values that are said before the word: use X as the password."""
    for start, _ in words:
        window = text[max(0, start - 120) : start]
        match = re.search(
            r"(?P<value>[!-~]{6,80})[\"'`]?\s{1,3}(?:as|is|for|als|ist|comme|como|come|jako"
            r"|som)\s{1,3}(?:\w{1,12}\s{1,3}){0,3}[\"'`*(]{0,2}\Z",
            window,
        )
        if match:
            value = match["value"].strip("\"'`.,;:()")
            at = max(0, start - 120) + match.start("value") + match["value"].find(value)
            if value and _is_made_up(value):
                yield at, at + len(value)


_CELLS = {
    "|": re.compile(r"[^|\n]*"),
    "\t": re.compile(r"[^\t\n]*"),
    ";": re.compile(r"[^;\n]*"),
    ",": re.compile(r"[^,\n]*"),
}
_MOST_ROWS = 200


def _columns(text: str, words: list[Span]) -> Iterator[Span]:
    """Yield the cells below a head that is a word for secret, in tables and in values with separators."""
    for start, end in words:
        line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        if line_end < 0 or line_end - line_start > _MOST_CHARACTERS:
            continue
        head = text[line_start:line_end]
        separator = next((sign for sign in _CELLS if sign in head), "")
        if not separator:
            continue
        cells = head.split(separator)
        position = head.count(separator, 0, start - line_start)
        name = cells[position].strip(" \"'*`_")
        if (
            not start - line_start - head.find(name) >= 0
            or len(name) > end - start + 24
            or not re.fullmatch(r"[\w .-]+", name)
        ):
            continue
        if _ABOUT.search(name) or any(re.search(r"[(){}=;]", cell) for cell in cells):
            continue
        for _ in range(_MOST_ROWS):
            row_start = line_end + 1
            line_end = text.find("\n", row_start)
            line_end = len(text) if line_end < 0 else line_end
            row = text[row_start:line_end].split(separator)
            if row_start >= len(text) or len(row) != len(cells):
                break
            cell = row[position]
            value = cell.strip(" \"'*`_\r")
            at = row_start + sum(len(part) + 1 for part in row[:position]) + cell.find(value)
            is_made_up = re.search(r"[0-9]", value) and re.search(r"[A-Za-z]", value) and " " not in value
            if (
                value
                and is_made_up
                and not _PLACEHOLDER.fullmatch(value)
                and not _CODE.fullmatch(value)
                and MASK not in value
            ):
                yield at, at + len(value)


_MANIFEST = re.compile(r"(?m)^\s{0,8}kind:\s{0,4}[\"']?Secret\b")
_ENTRY = re.compile(r"(?m)^[ \t]{1,12}[\w.-]{1,80}:[ \t]{1,4}[\"']?([^\s\"'|>{}\[\]]{4,4000})[\"']?[ \t]*$")
_PUBLIC_ENTRY = re.compile(
    r"\s{1,12}(?:name|namespace|type|labels|app|annotations|kind|apiVersion|uid|creationTimestamp)\b.*"
)


def _manifests(text: str) -> Iterator[Span]:
    """Yield the values of a secret of Kubernetes."""
    for match in _MANIFEST.finditer(text):
        end = text.find("\n---", match.end())
        end = len(text) if end < 0 else end
        for entry in _ENTRY.finditer(text, match.end(), min(end, match.end() + 20_000)):
            value = entry[1]
            if _PUBLIC_ENTRY.fullmatch(entry[0].lstrip("\n")) or _PLACEHOLDER.fullmatch(value) or MASK in value:
                continue
            if meaning_of(value) or len(value) >= 16 or re.search(r"[0-9]", value):  # noqa: PLR2004 - a long value says more than a label
                yield entry.span(1)
