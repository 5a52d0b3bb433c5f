"""What people really write credentials like, and what is code; no text takes redaction long."""

from __future__ import annotations

import json
import time
from base64 import b64encode

import pytest

from skillgit.app.sources.harvest import HarvestedDraft, mask_again
from skillgit.app.sources.harvest_redaction import SessionRedactor

PHRASE, HEX, LETTERS = "Gr4nite-and-7-moss", "3b1f" * 16, "Wq8Zt3Lm6Rk1Xc9Vb4Nd7Pf2"
CLASSIC = f"ghp_{LETTERS}abcdef012345"
BODY = f"MIIEowIBAAKCAQEA{LETTERS}{LETTERS}"
FORMS = {
    "a sentence": f"the password is {PHRASE}, as ever",
    "another language": f"das Passwort ist {PHRASE}",
    "json in json": json.dumps(json.dumps({"password": PHRASE})),
    "three times": json.dumps(json.dumps(json.dumps({"password": PHRASE}))),
    "curl": f"curl -u admin:{PHRASE} https://example.org",
    "mysql": f"mysql -u root -p{PHRASE} shop",
    "sshpass": f"sshpass -p {PHRASE} ssh host",
    "docker": f"docker login -u me -p {PHRASE}",
    "option": f"deploy --password {PHRASE} --force",
    "token option": f"deploy --token {HEX}",
    "fish": f"set -x API_TOKEN {HEX}",
    "netrc": f"machine example.org login me password {PHRASE}",
    "cookie": f"Cookie: session={HEX}",
    "export": f"export X={HEX}",
    "short name": f"DB_PASS={PHRASE}",
    "xml": f"<password>{PHRASE}</password>",
    "php": f"define('DB_PASSWORD', '{PHRASE}');",
    "a phrase": "password: CorrectHorseBatteryStaple",
    "signs": "password=Pa$$w0rd.12345",
    "broken token": f"{CLASSIC[:18]}\n  {CLASSIC[18:]}",
    "quoted key": f"> -----BEGIN PRIVATE KEY-----\n> {BODY}\n> {BODY[::-1]}",
    "key in a program": f'"-----BEGIN PRIVATE KEY-----\\n" +\n"{BODY}\\n" +\n"{BODY[::-1]}"',
    "end of a key": f"{BODY}\n-----END RSA PRIVATE KEY-----",
    "docker config": json.dumps({"auths": {"x": {"auth": b64encode(f"me:{CLASSIC}".encode()).decode()}}}),
    "decoded": f"echo {b64encode(CLASSIC.encode()).decode()} | base64 -d",
    "signature": f"https://x.example.org/b?sv=2020&sig={LETTERS}%3D",
    "at in an address": f"postgres://app:hun@{PHRASE}@db/shop",
    "link-local": "ping fe80::1ff:fe23:4567:890a",
}
CODE = (
    "token = next_token(stream)\n",
    "self.password = config.password\n",
    "password: SecretStr = field()\n",
    "def login(user: str, password: str) -> None: ...\n",
    "api_key=os.environ['API_KEY']\n",
    "TOKEN=$(cat token.txt)\n",
    "git commit -m 'the password field is wide'\n",
    "export PATH=/usr/local/bin:$PATH\n",
    "sha = '3b1f3b1f3b1f3b1f3b1f3b1f3b1f3b1f3b1f3b1f'\n",
)


@pytest.mark.parametrize("form", FORMS)
def test_a_credential_is_taken_out_however_it_is_written(form):
    text = FORMS[form]
    redacted = SessionRedactor().fresh([text]).text(text)
    secrets = [PHRASE, HEX, LETTERS[6:], BODY[20:], BODY[::-1][:20], CLASSIC[20:], "CorrectHorse", "Pa$$w0rd", "890a"]
    assert redacted != text
    assert [secret for secret in secrets if secret in redacted] == []
    assert b64encode(CLASSIC.encode()).decode() not in redacted


def test_what_is_a_secret_once_is_one_wherever_it_occurs():
    texts = (f'my password = "{PHRASE}"', f"use {PHRASE} there", f"before/notes-{PHRASE}.txt")
    redactor = SessionRedactor().fresh(texts)
    assert not any(PHRASE in redactor.text(text) for text in texts)
    assert PHRASE not in redactor.path(texts[2])
    assert b64encode(PHRASE.encode()).decode() not in redactor.text(f"x {b64encode(PHRASE.encode()).decode()} y")


SAID = {
    "a line of .pgpass": ("db.example.org:5432:shop:app:{}", PHRASE, "connect with {} now"),
    "quotes of a shell": ("export API_TOKEN={}", LETTERS, "curl -H x:{0[0]}{0[1]}''{0[2]}"),
    "pass phrase": ("the passphrase is {}", "marble otter candle river", "say marble-otter-candle-river"),
    "wrapped phrase": ("the passphrase is {}", "marble otter candle river", "say marble otter\n  candle river"),
    "PIN in prose": ("my PIN is {}", "4711", "he typed {} and it opened"),
    "name of a file": ("password: {}", PHRASE, "open {}.txt"),
    "escapes": ("password: {}", PHRASE, "see Gr4nite\\x2dand\\x2d7\\x2dmoss"),
    "base64": ("password: {}", PHRASE, f"see {b64encode(PHRASE.encode()).decode()}"),
}


@pytest.mark.parametrize("way", SAID)
def test_a_secret_of_one_draft_is_one_in_all_drafts_of_a_harvest_and_in_every_spelling(way):
    said, secret, again = SAID[way]
    first = SessionRedactor()
    elsewhere = again.format(tuple(secret[at : at + 8] for at in range(0, 24, 8)) if "{0[" in again else secret)
    assert first.fresh([said.format(secret)]).text(said.format(secret)) != said.format(secret)
    assert "[redacted]" in first.fresh().text(elsewhere)
    assert "[redacted]" in first.secrets.masked(elsewhere), "a draft that was made before loses it, too"
    assert secret not in first.secrets.masked(f"{elsewhere} {secret}")


def test_a_draft_that_was_made_before_loses_what_a_later_session_called_a_secret():
    redactor = SessionRedactor()
    row = {
        "id": "h-1",
        "prompt": f"use {PHRASE}",
        "criteria": [f"it says {PHRASE}"],
        "check": {"command": ["x", PHRASE]},
    }
    draft = HarvestedDraft(
        id="h-1", row=row, files={f"before/{PHRASE}.txt": PHRASE.encode()}, final={"a": PHRASE}, commands=()
    )
    mask_again(draft, redactor.secrets)
    assert draft.row["prompt"] == f"use {PHRASE}"
    redactor.fresh([f"password = '{PHRASE}'"])
    mask_again(draft, redactor.secrets)
    assert PHRASE not in f"{draft}"
    assert draft.files == {"before/_redacted_.txt": b"[redacted]"}


@pytest.mark.parametrize("text", CODE)
def test_code_stays_as_it_is(text):
    assert SessionRedactor().fresh([text]).text(text) == text


BEGINNINGS = ("password", "eyJ", "+1111", "sk-ant-", "-----BEGIN RSA PRIVATE KEY-----", "A1b2", "a@", "login -p ")
MORE = (
    "://a:",
    "cookie: ",
    "1.",
    "00:",
    "\\u0041",
    "token=",
    "-u a:",
    "DE12 3456 ",
    "mysql ",
    "0123 456",
    "A" * 20 + "\n",
)


@pytest.mark.soak
@pytest.mark.parametrize("beginning", [*BEGINNINGS, *MORE])
def test_twice_the_text_takes_about_twice_as_long(beginning):
    def seconds(size: int) -> float:
        text, redactor = beginning * (size // len(beginning)), SessionRedactor()
        began = time.process_time()
        redactor.text(text)
        return time.process_time() - began

    assert seconds(160_000) < 3.5 * seconds(80_000) + 0.2
