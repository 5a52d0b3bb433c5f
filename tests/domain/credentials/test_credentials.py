# ruff: noqa: RUF001, S311
"""What looks like a credential: of the ways to write one hardly any gets by, and harmless text keeps its words."""

from __future__ import annotations

import itertools
import json
import re
import sysconfig
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from credential_forms import FAMILIES, FORMS, Form, characters, written
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import transient_settings
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.credentials.detector import _LONG_WORD, MASK, Certainty, cut_out, find_credentials, masked
from skillgit.domain.credentials.random_words import is_random
from skillgit.domain.credentials.spellings import decoded, plain_spelling, respellings
from skillgit.domain.credentials.vendor_tokens import CUT_TOKENS, VENDOR_TOKENS

ROOT = Path(__file__).parents[3]

DRAWS = 3


def survivors(forms: list[Form], draw: int) -> list[str]:
    """Return the templates of forms of which a part of the value is left."""
    left = []
    for form in forms:
        text, pieces = written(form, Random(f"{draw} {form.template}"))
        shown = masked(text)
        left += [form.template] if any(piece in shown for piece in pieces) else []
    return left


def test_every_token_of_a_vendor_lies_in_one_long_word():
    least, _ = re._parser.parse(_LONG_WORD.pattern).getwidth()
    for token in (*VENDOR_TOKENS, *CUT_TOKENS):
        outside = re.sub(r"\[[^]]*]", "", token.form)
        assert re._parser.parse(token.form).getwidth()[0] >= least, token.form
        assert not re.search(r"\\[sDW]|(?<!\\)\.| ", outside), token.form
        assert not re.search(r"\[\^|\[[^]]*(?:\\[sDW]| )", token.form), token.form


@pytest.mark.parametrize("draw", range(DRAWS))
def test_of_248_ways_to_write_a_credential_at_most_ten_get_by(draw):
    assert len(FORMS) >= 248
    left = survivors(FORMS, draw)
    assert len(left) * 248 <= 10 * len(FORMS), left
    held_out = [form for form in FORMS if form.is_held_out]
    left = survivors(held_out, draw + 100)
    assert len(left) * 248 <= 10 * len(held_out), left


@pytest.mark.parametrize("value", ["mysecretword9", "hunter2", "bluebird_7", "meingeheimwort9"])
@pytest.mark.parametrize(
    "form",
    [
        "password: {}",
        "password = {}",
        "PASSWORD={}",
        "Password: {}.",
        "- pwd: {}",
        "login: bob / pass: {}",
        "the password is {}",
        "password -> {} (changed)",
        "Passwort: {}",
        "contraseña: {}",
        "mot de passe : {}",
        "密码：{}",
        "пароль: {}",
    ],
)
def test_a_word_with_a_digit_behind_a_word_for_password_is_one_without_quotes_too(form, value):
    assert value not in masked(form.format(value))


@pytest.mark.parametrize("value", ["swordfish", "letmein", "correcthorsebattery"])
@pytest.mark.parametrize(
    "form", ["password: {}", "passwd={}", "db_password = {}", "user: bob\n  password: {}\n  port: 1"]
)
def test_a_word_of_letters_that_ends_the_line_behind_password_is_one_too(form, value):
    assert value not in masked(form.format(value))


@pytest.mark.parametrize(
    "text",
    [
        "password: protected",
        "password: incorrect",
        "password=default",
        "password: please type it",
        "password=password",
        "username/password request",
        "password: step2",
        "password: field1",
        "secret: registry1",
        "token: variable1",
        "login: server1",
        "api_key: option1",
    ],
)
def test_a_numbered_name_keeps_its_word(text):
    assert masked(text) == text


@pytest.mark.parametrize("family", FAMILIES)
def test_no_family_of_ways_is_blind(family):
    forms = [form for form in FORMS if form.family == family]
    assert len(survivors(forms, 7)) <= max(1, len(forms) // 25)


@pytest.mark.parametrize("form", [form for form in FORMS if form.family == "vendors"], ids=lambda form: form.template)
def test_a_token_of_a_vendor_is_found_in_a_text_that_says_nothing_of_it(form):
    token, pieces = written(form, Random(3))
    assert not any(piece in masked(f"see {token} for it") for piece in pieces)


CERTAIN = (
    "ghp_<a36>",
    "sk-ant-api03-<b93>AA",
    "hvs.<b90>",
    "ntn_<d11><a35>",
    "glsa_<a32>_<h8>",
    "GOCSPX-<b28>",
    "tvly-<a32>",
)


@pytest.mark.parametrize("template", CERTAIN)
def test_both_levels_agree_on_tokens_of_vendors_and_the_certain_level_leaves_the_text_around_them(template):
    token, _ = written(Form("vendors", template), Random(5))
    token = re.search(r"[A-Za-z0-9_.-]{24,}", token)[0]
    text = f"the word {token} here"
    assert [masked(text, level) for level in Certainty] == [f"the word {MASK} here"] * 2


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(part)


def recorded() -> Iterator[str]:
    for file in (ROOT / "tests" / "app" / "sources" / "sessions" / "recordings").glob("*.json"):
        for lines in json.loads(file.read_text()).values():
            for line in lines:
                yield from strings(json.loads(line)) if line.startswith("{") else (line,)


def harmless(name: str) -> Iterator[str]:
    if name == "sessions":
        yield from recorded()
        return
    library = Path(sysconfig.get_paths()["stdlib"])
    folders = {
        "docs": (ROOT / "docs", "*.md"),
        "source": (ROOT / "skillgit" / "app", "*/*.py"),
        "library": (library, "[a-h]*.py"),
    }
    folder, pattern = folders[name]
    yield from (file.read_text(encoding="utf-8") for file in sorted(folder.glob(pattern)))


@pytest.mark.parametrize("name", ["sessions", "docs", "source", "library"])
def test_harmless_text_loses_hardly_a_word(name):
    words = lost = 0
    for text in harmless(name):
        words += len(text.split())
        lost += sum(len(text[one.start : one.end].split()) or 1 for one in find_credentials(text))
    assert words > 2_000
    assert lost <= words / 1_000, f"{lost} of {words} words"


HARMLESS = (
    "commit 8f14e45fceea167a5a36dedd4bea2543abcdef01 of token.py",
    "integrity sha512-Wq8Zt3Lm6Rk1Xc9Vb4Nd7Pf2Qx5Yh0Js8Gu3Te6Ra1Ok9Il4Cm7Bz2Dv5En==",
    "golang.org/x/text v0.3.7 h1:olpwvP2KacW1ZWvsR7uQhoyTYvKAupfQrRGBFM352Gk=",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "the password is required, and the token is invalid",
    "password: str",
    "password = getpass.getpass()",
    "api_key = settings.api_key",
    "api_key: <your-api-key>",
    "export API_KEY=${API_KEY}",
    "TOKEN: ${{ secrets.GITHUB_TOKEN }}",
    'os.environ["API_KEY"]',
    "max_tokens: 4096",
    "the secret of good writing is rewriting",
    "class PasswordResetTokenGenerator(BaseGenerator):",
    "def test_a_password_that_is_long_enough_is_accepted(client):",
    "src/components/authentication/PasswordStrengthIndicator.tsx",
    "Donaudampfschifffahrtsgesellschaft und Rechtsschutzversicherungsgesellschaften",
    "https://example.org/docs/getting-started?page=2#token",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4kGkXyQ0r6sTq9Zt3Lm6Rk1Xc9Vb4Nd7Pf2Qx5Yh0 me@host",
    "Pass the key of the item on to the next step.",
    "pip install package==1.2.3 --hash=sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "the PIN is entered twice in 2024",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_plainly_something_else_stays(text):
    assert masked(text) == text


@given(st.text(max_size=60), st.sampled_from([form for form in FORMS if form.family != "keys"]), st.integers(0, 99))
def test_what_is_masked_certainly_is_masked_likely_and_once_is_enough(before, form, draw):
    text = f"{before}\n{written(form, Random(draw))[0]}"
    certain, likely = (find_credentials(text, level) for level in (Certainty.CERTAIN, Certainty.LIKELY))
    assert all(any(one.start <= other.start and other.end <= one.end for one in likely) for other in certain)
    once = cut_out(text, certain)
    assert cut_out(once, find_credentials(once, Certainty.CERTAIN)) == once
    assert all(first.end <= second.start for first, second in itertools.pairwise(likely))


ESCAPES = st.lists(
    st.sampled_from(
        [
            "\\x41",
            "\\u0042",
            "%43",
            "&#68;",
            "plain ",
            '"a" + "b"',
            "Ｅ",
            "\u200b",
            "\n",
            "\\\n",
            "x",
            "é",
            "word12\n  word34",
        ]
    ),
    max_size=12,
)


@given(ESCAPES)
def test_every_part_of_a_respelling_knows_where_it_comes_from(parts):
    text = "".join(parts)
    for respelling in respellings(text):
        assert respelling.starts == sorted(respelling.starts)
        for position in range(len(respelling.text)):
            start, end = respelling.origin(position, position + 1)
            assert 0 <= start < end <= len(text)
            if respelling.text[position].isalnum() and end - start == 1:
                assert unicodedata.normalize("NFKC", text[start]) == respelling.text[position]


def test_a_respelling_of_a_respelling_leads_back_to_the_text():
    text = 'see \\x67\\x68\\x70_"abc" + "def" at ＡＢ'
    plain = plain_spelling(text)
    assert plain.text == 'see ghp_"abcdef" at AB'.replace('"abcdef"', '"abcdef"')
    start = plain.text.index("abcdef")
    assert text[slice(*plain.origin(start, start + 6))] == 'abc" + "def'
    assert text[slice(*plain.origin(4, 8))] == "\\x67\\x68\\x70_"


def test_words_that_stand_for_a_text_are_read():
    assert [meaning for *_, meaning in decoded("x aGVsbG8gd29ybGQsIGhlbGxv y")] == ["hello world, hello"]
    assert next(iter(decoded("68656c6c6f20776f726c642068656c6c6f")))[2] == "hello world hello"
    assert list(decoded("d41d8cd98f00b204e9800998ecf8427e")) == []


@pytest.mark.parametrize("kind", "abslu")
def test_random_words_are_told_from_words(kind):
    chance = Random(9)
    drawn = [characters(chance, kind, 24).strip("-_/+") for _ in range(300)]
    assert sum(is_random(word) for word in drawn if len(word) >= 20) >= 290
    names = ("test_the_password_is_long_enough", "ConfigurationManagerFactoryBean", "x86_64-unknown-linux-gnu-gcc-12")
    assert not any(map(is_random, names))


DETECT_SECRETS = (
    "AWSKeyDetector",
    "AzureStorageKeyDetector",
    "BasicAuthDetector",
    "DiscordBotTokenDetector",
    "GitHubTokenDetector",
    "GitLabTokenDetector",
    "JwtTokenDetector",
    "MailchimpDetector",
    "NpmDetector",
    "OpenAIDetector",
    "PrivateKeyDetector",
    "PypiTokenDetector",
    "SendGridDetector",
    "SlackDetector",
    "SquareOAuthDetector",
    "StripeDetector",
    "TelegramBotTokenDetector",
    "TwilioKeyDetector",
)


def test_what_detect_secrets_finds_is_found():
    """Another program's rules over all our forms: what it calls a secret, we mask."""
    with transient_settings({"plugins_used": [{"name": name} for name in (*DETECT_SECRETS, "KeywordDetector")]}):
        for form in FORMS:
            text, _ = written(form, Random(11))
            for line in text.split("\n"):
                values = [match.secret_value for match in scan_line(line)]
                shown = masked(text)
                missed = [value for value in values if value and len(value) > 3 and value in shown]
                assert missed == [], (form.template, line)


ADVERSARIAL = (
    *(
        "password",
        "password ",
        "password=",
        "token: ",
        "eyJ",
        "sk-",
        "ghp_",
        "-----BEGIN RSA PRIVATE KEY-----",
        "://",
        "://a:",
        "a@",
    ),
    *(
        '"a" ',
        "'",
        '"',
        "\\",
        "\\x4",
        "%4",
        "&#6",
        "A" * 20 + "\n",
        "a1" * 12 + "\n",
        "| a ",
        "secret,a\n",
        "curl -u ",
        "mysql -p ",
        "login(",
    ),
    *(
        "Bearer ",
        "cookie: ",
        "PIN ",
        "kind: Secret\n",
        "1: ",
        "AccountKey=",
        "M" * 24 + ".",
        "pass:",
        "echo ",
        "sudo ",
        "net use ",
        "0" * 30,
    ),
)


@pytest.mark.soak
@pytest.mark.parametrize("beginning", ADVERSARIAL)
def test_no_text_makes_the_detector_take_long_for_its_length(beginning):
    def seconds(size: int) -> float:
        text = beginning * (size // len(beginning))
        began = time.process_time()
        find_credentials(text)
        return time.process_time() - began

    assert seconds(40_000) < 8 * seconds(10_000) + 0.125
