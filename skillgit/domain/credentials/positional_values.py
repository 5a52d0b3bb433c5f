"""Values that no word gives away, but their place: arguments of programs and functions, headers, addresses, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from skillgit.domain.credentials.named_values import MASK, Span, is_placeholder

_Q = r"\\{0,3}[\"'`]"
_ANY = r"(?:\\{0,3}[\"'](?P<quoted>[^\"'\\\n]{4,200})\\{0,3}[\"']|(?P<bare>[^\s\"'`<>|;()\\]{4,200}))"
_TEXT = rf"{_Q}(?P<quoted>[^\"'`\\\n]{{4,200}}){_Q}"
_LINE = r"[^\n|;]{0,120}?"

_PLACES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("login", "logon", "signin", "sign_in", "authenticate", "auth", "create_user", "add_user", "connect"),
        (
            r"(?:login|logon|sign_?in|authenticate|basic_?auth|auth|create_user|add_user|connect)\s{0,2}\(\s{0,4}"
            rf"(?:{_Q}[^\"'`\n]{{1,80}}{_Q}\s{{0,2}},\s{{0,2}}){{1,3}}(?:Some\()?{_TEXT}\s{{0,4}},?\s{{0,4}}\)"
        ),
    ),
    (("auth",), rf"\bauth\s{{0,2}}=\s{{0,2}}\(\s{{0,2}}{_Q}[^\"'\n]{{1,80}}{_Q}\s{{0,2}},\s{{0,2}}{_TEXT}"),
    (
        ("credential",),
        rf"credentials?\s{{0,2}}[=:]\s{{0,2}}\(\s{{0,2}}{_Q}[^\"'\n]{{1,80}}{_Q}\s{{0,2}},\s{{0,2}}{_TEXT}",
    ),
    (
        ("identified",),
        rf"identified\s{{1,4}}(?:with\s{{1,4}}\S{{1,60}}\s{{1,4}})?by\s{{1,4}}(?:password\s{{1,4}})?{_TEXT}",
    ),
    (("password(",), rf"password\s{{0,2}}\(\s{{0,2}}{_TEXT}"),
    (("redis-cli",), rf"redis-cli\b{_LINE}\s-a\s{{1,3}}{_ANY}"),
    (("auth ",), rf"(?-i:^\s{{0,8}}AUTH\s{{1,3}}(?:\w{{1,40}}\s{{1,3}})?){_ANY}\s{{0,3}}$"),
    (("zip ",), rf"\b(?:un)?zip\b{_LINE}\s(?-i:-P)\s{{0,3}}{_ANY}"),
    (("7z",), rf"\b7za?\b{_LINE}\s-p{_ANY}"),
    (("chpasswd",), rf"{_Q}?[\w.-]{{1,64}}:(?P<bare>[^\s\"'`]{{4,200}}){_Q}?\s{{0,3}}\|[^\n]{{0,40}}chpasswd"),
    (
        ("sudo", "--password-stdin", "--stdin", "base64"),
        (
            rf"\b(?:echo"
            rf"|printf)(?:\s{{1,3}}-\w{{1,3}})?(?:\s{{1,3}}{_Q}%s[^\"'\n]{{0,4}}{_Q})?\s{{1,3}}{_ANY}\s{{0,3}}\|[^\n]{{0,60}}(?:sudo\s{{1,3}}-\w{{0,4}}S"
            rf"|--password-stdin|--stdin|\bbase64\b)"
        ),
    ),
    (("sudo",), rf"\bsudo\s{{1,3}}-\w{{0,4}}S{_LINE}<<<\s{{0,3}}{_ANY}"),
    (
        (":",),
        r"^\s{0,8}(?:[\w.-]{1,100}|\*):(?:[0-9]{2,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:(?P<bare>[^\s:]{4,200})\s{0,3}$",
    ),
    (
        ("machine ",),
        rf"\bmachine\s{{1,4}}\S{{1,100}}\s{{1,8}}(?:login\s{{1,4}}\S{{1,100}}\s{{1,8}})?password\s{{1,4}}{_ANY}",
    ),
    (
        ("curl", "http ", "wget"),
        rf"\b(?:curl|https?|wget)\b{_LINE}\s(?:-u|-a|--user)[ =]?{_Q}?[^\s:\"'/]{{1,64}}:(?P<bare>[^\s\"'`]{{3,200}})",
    ),
    (("mysql", "mariadb"), rf"\b(?:mysql\w{{0,8}}|mariadb\S{{0,8}}){_LINE}\s-p{_ANY}"),
    (
        ("mysql", "sshpass", "mongo", " login", "snowsql", "twine"),
        (
            rf"\b(?:mysql\w{{0,8}}|sshpass|mongo(?:sh|dump|restore)?|(?:docker|podman|az|oc|nerdctl"
            rf"|helm) {_LINE}login|login|twine){_LINE}\s-p\s{{0,3}}{_ANY}"
        ),
    ),
    (("snowsql", "sqlcmd", "bcp "), rf"\b(?:snowsql|sqlcmd|bcp)\b{_LINE}\s(?-i:-[pP])\s{{0,3}}{_ANY}"),
    (
        ("sqlplus", "impdp", "expdp", "exp ", "rman", "sqlldr", "jdbc:oracle"),
        (
            r"(?:\b(?:sqlplus|impdp|expdp|exp|imp|rman|sqlldr)\s{1,4}(?:-\w{1,4}\s{1,3}){0,3}"
            r"|jdbc:oracle:\w{1,8}:)[\w$#]{1,40}/(?P<bare>[^\s\"'`@/]{4,100})@"
        ),
    ),
    (("openssl",), rf"\bopenssl\b{_LINE}\s(?-i:-[kK])\s{{1,3}}{_ANY}"),
    (("pass:",), r"\bpass:(?P<bare>[^\s\"'`]{4,200})"),
    (("ssh-keygen",), rf"\bssh-keygen\b{_LINE}\s(?-i:-[NP])\s{{0,3}}{_ANY}"),
    (("--key-file",), rf"--key-file\s{{0,3}}<\(\s{{0,3}}echo(?:\s{{1,3}}-n)?\s{{1,3}}{_ANY}"),
    (
        ("net use", "net user"),
        (
            rf"\bnet\s{{1,3}}(?:use\s{{1,3}}(?:\S{{1,3}}\s{{1,3}})?\\\\\S{{1,100}}"
            rf"|user\s{{1,3}}[\w.-]{{1,64}})\s{{1,3}}(?!/){_ANY}"
        ),
    ),
    (("ldap",), rf"\bldap\w{{2,12}}\b{_LINE}\s-w\s{{0,3}}{_ANY}"),
    (
        ("smbclient", "rpcclient", "mount"),
        (
            rf"\b(?:smbclient|rpcclient|smbmap"
            rf"|net rpc)\b{_LINE}\s-U\s{{0,3}}{_Q}?[\w.\\-]{{1,64}}%(?P<bare>[^\s\"'`]{{4,200}})"
        ),
    ),
    (("rabbitmqctl",), rf"\brabbitmqctl\s{{1,3}}(?:add_user|change_password)\s{{1,3}}\S{{1,64}}\s{{1,3}}{_ANY}"),
    (
        ("htpasswd",),
        rf"\bhtpasswd\s{{1,3}}-\w{{0,4}}b\w{{0,4}}\s{{1,3}}(?:\S{{1,100}}\s{{1,3}})?\S{{1,64}}\s{{1,3}}{_ANY}\s{{0,3}}$",
    ),
    (("useradd", "usermod"), rf"\buser(?:add|mod)\b{_LINE}\s-p\s{{0,3}}{_ANY}"),
    (
        ("assword:",),
        rf"assword:?{_Q}?\s{{0,4}}\{{?\s{{0,4}}send\s{{1,3}}(?:--\s{{1,3}})?{_Q}(?P<quoted>[^\"'\\\n]{{4,200}})",
    ),
    (
        ("--from-literal", "kv put", "vault write", "kv patch"),
        (
            r"(?:--from-literal[= ]|\bkv\s{1,3}(?:put|patch)\s{1,3}\S{1,100}\s{1,3}"
            r"|\bvault\s{1,3}write\s{1,3}\S{1,100}\s{1,3})[\"']?[\w.-]{1,80}=[\"']?(?P<bare>[^\s\"'`]{4,400})"
        ),
    ),
    (("vault login",), rf"\bvault\s{{1,3}}login\s{{1,3}}(?:-\S{{1,40}}\s{{1,3}}){{0,4}}(?:token=)?{_ANY}"),
    (("secret set",), rf"\bsecret\s{{1,3}}set\b{_LINE}\s(?:--body|-b)[ =]{_ANY}"),
    (("export ",), r"\bexport\s{1,3}\w{1,60}=[\"']?(?P<bare>[0-9a-f]{24,200})(?=[\s\"']|$)"),
    (
        ("set -",),
        rf"\bset\s{{1,3}}-\S{{1,4}}\s{{1,3}}\w{{0,40}}(?:key|token|secret|passw\w{{1,4}}|pwd)\w{{0,20}}\s{{1,3}}{_ANY}",
    ),
    (
        ("authorization", "-token", "_token", "-key", "-secret", "x-"),
        (
            rf"(?:authorization|(?:x|private|job|deploy|circle|ocp)-[\w-]{{0,40}}(?:token|key|secret|auth)"
            rf"|api-?key){_Q}?\s{{0,3}}[:=,]\s{{0,3}}{_Q}?"
            r"(?:(?:bearer|basic|token|apikey|api-key|key|digest|negotiate|splunk|ghost|bot|oauth|sso-key"
            r"|genie\w{1,8}|[A-Z][A-Za-z-]{2,20})\s{1,3})?"
            r"(?P<bare>(?=[^\s\"'`,;]{0,100}[0-9])[^\s\"'`,;<>{}\[\]()\\$]{6,4000})"
        ),
    ),
    (
        ("bearer ", "basic "),
        r"\b(?:bearer|basic)\s{1,3}(?=[A-Za-z+/._~-]{0,60}[0-9])(?P<bare>[A-Za-z0-9+/._~-]{12,4000}={0,2})",
    ),
    (("cookie:",), r"\bcookie:[ \t]{0,4}(?P<quoted>(?=[^\n\"'=]{1,80}=[^\s;\"']{6})[^\n\"']{8,4000})"),
    ((":-",), r"\$\{\w{0,60}(?:pass|pwd|secret|token|key|credential)\w{0,40}:?-(?P<bare>[^}\s$\"']{4,200})\}"),
    (
        ("=",),
        (
            r"[?&;](?:[\w-]{0,30}(?:key|token|secret|passw(?:or)?d|pwd|signature|credential)|auth|sig|code|sid"
            r"|session(?:_?id)?|hmac|jwt|k)=(?P<bare>[^\s&\"'`<>#;\\)\]]{6,2000})"
        ),
    ),
    (
        ("://",),
        r"(?<=://)(?:[^\s/:@\"'`<>]{0,100}):(?P<bare>[^\s/\"'`<>@\[\]]{1,200}(?:@[^\s/\"'`<>@.]{1,100}){0,3})(?=@)",
    ),
    (("://",), r"(?<=://)(?P<bare>(?=[^\s/:@]{0,40}[0-9])[^\s/:@\"'`<>]{8,200})(?=(?::x-oauth-basic)?@)"),
)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern; most are never needed, and to compile all of them takes longer than a command."""
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def positional_values(text: str) -> Iterator[Span]:
    """Yield the spans of values that their position gives away."""
    lower = text.lower()
    for marks, pattern in _PLACES:
        if not any(mark in lower for mark in marks):
            continue
        for match in _compiled(pattern).finditer(text):
            groups = match.groupdict()
            name = "quoted" if groups.get("quoted") else "bare"
            value = match[name]
            if value and MASK not in value and "redacted" not in value and not is_placeholder(value):
                yield match.span(name)
