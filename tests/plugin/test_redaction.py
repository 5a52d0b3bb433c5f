from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.untrusted.model_text import storable
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit.plugin.redaction import Redactor, redact, redact_json

MIXED = "a1B2c3D4" * 6
SECRETS = [
    "sk-" + MIXED,
    "sk-proj-" + MIXED + "_-" + MIXED,
    "sk-ant-api03-" + MIXED,
    "AKIA" + "ABCD1234" * 2,
    "ghp_" + MIXED[:36],
    "github_pat_" + MIXED,
    "glpat-" + MIXED[:20],
    "xoxb-" + "123456789012-" + MIXED[:20],
    "AIza" + MIXED[:35],
    "hf_" + MIXED[:34],
    "eyJ" + MIXED + ".eyJ" + MIXED + "." + MIXED,
    "glpat-" + MIXED[:20] + ".01.a1b2c3d4e",
    "xapp-1-" + MIXED[:30],
    "npm_" + MIXED[:36],
    "sk_live_" + MIXED[:24],
    "rk_test_" + MIXED[:24],
    "gsk_" + MIXED,
    "xai-" + MIXED,
    "pplx-" + MIXED,
    "ya29." + MIXED,
    "-----BEGIN RSA PRIVATE KEY-----\n" + MIXED + "\n-----END RSA PRIVATE KEY-----",
]
HARMLESS = [
    "the desk-lamp and the task-management-2024-overview",
    "sk-learn-pipelines-with-2-steps-and-more",
    "commit 8f14e45fceea167a5a36dedd4bea2543abcdef01",
    "d41d8cd98f00b204e9800998ecf8427e",
    "a bearer of bad news",
    "https://example.org:8080/path?x=1",
    "mailto:someone@example.org",
    "AKIA is a prefix",
    "api_key: none",
    "password = correct-horse-battery-staple",
    "the key: d41d8cd98f00b204e9800998ecf8427e",
    "token=12345678901234567890",
    "skills/searchqa/SKILL.md",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("frame", ["{}", "key={}", "use '{}' here", "line\n{}\nline", "({})"])
def test_secrets_are_masked_wherever_they_stand(secret, frame):
    assert redact(frame.format(secret)) == frame.format("[redacted]")
    assert json.loads(redact(json.dumps(frame.format(secret)))) == frame.format("[redacted]")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_long_stays(text):
    assert redact(text) == text


def test_credentials_in_headers_and_addresses_are_masked_and_their_names_stay():
    assert redact(f"Authorization: Bearer {MIXED}==") == "Authorization: Bearer [redacted]"
    assert redact("postgres://admin:hunter2@db:5432/x") == "postgres://admin:[redacted]@db:5432/x"


@given(st.recursive(st.text() | st.sampled_from(SECRETS), lambda inner: st.lists(inner, max_size=4), max_leaves=8))
def test_redacting_twice_changes_nothing_and_json_stays_json(value):
    once = redact_json(value)
    assert redact_json(once) == once
    text = redact(json.dumps(value))
    assert redact(text) == text
    json.loads(text)


def test_a_json_value_keeps_its_shape():
    secret = SECRETS[0]
    value = {"a": [1, 2.5, None, True, secret], "b": {"c": ("x", secret)}}
    assert redact_json(value) == {"a": [1, 2.5, None, True, "[redacted]"], "b": {"c": ["x", "[redacted]"]}}


def test_a_reply_is_redacted_with_its_tool_calls():
    arguments = json.dumps({"key": SECRETS[0]})
    reply = Reply(
        text=f"see {SECRETS[0]}",
        usage=Usage(tokens_in=1, tokens_out=1),
        tool_calls=(ToolCall(id="1", name="f", arguments=arguments),),
    )
    redacted = Redactor.now().reply(reply)
    assert redacted.text == "see [redacted]"
    assert json.loads(redacted.tool_calls[0].arguments) == {"key": "[redacted]"}
    assert redacted.usage == reply.usage


@given(st.text(st.characters()))
def test_every_text_can_be_stored_and_good_ones_are_not_touched(text):
    stored = storable(text)
    stored.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert stored == text


HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "label", ["api-key: {}", '{{"api_key": "{}"}}', "x-api-key={}", "AccessKey = '{}'", "password:{}"]
)
def test_what_stands_behind_the_name_of_a_credential_is_masked_whatever_its_shape(label):
    assert redact(label.format(HEX)) == label.format("[redacted]")
    assert json.loads(redact(json.dumps(label.format(HEX)))) == label.format("[redacted]")


@pytest.mark.parametrize("name", ["AZURE_OPENAI_API_KEY", "GITHUB_TOKEN", "CLIENT_SECRET", "DB_PASSWORD", "apikey"])
def test_the_value_of_a_variable_that_is_named_like_a_credential_is_masked_wherever_it_stands(name, monkeypatch):
    monkeypatch.setenv(name, HEX)
    assert redact(f"the id {HEX}, twice: {HEX}{HEX}") == "the id [redacted], twice: [redacted][redacted]"
    monkeypatch.setenv(name, 'p4ss"w\\ord\u00e9-7')
    text = json.dumps({"said": 'it is p4ss"w\\ord\u00e9-7 now'})
    assert json.loads(redact(text)) == {"said": "it is [redacted] now"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", "local-model-server"),
        ("OPENAI_API_KEY", "sk-123"),
        ("RUN_TOKEN", "12345678901234"),
        ("APP_SECRET", "two words and 1 number"),
        ("MAX_TOKENS", HEX),
        ("KEYBOARD", HEX),
    ],
)
def test_values_that_may_be_words_and_variables_that_are_none_are_left_alone(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    assert redact(f"say {value} here") == f"say {value} here"


@pytest.mark.parametrize(
    "frame", ['password: "{}"', "api_key={}", "api_key=\n{}", "password:\t'{}'", 'a\\password = "{}"']
)
def test_labelled_secrets_are_masked_in_text_in_json_and_in_json_within_json(frame):
    text, masked = frame.format(MIXED), frame.format("[redacted]")
    assert redact(text) == masked
    once = json.dumps(text)
    assert json.loads(redact(once)) == masked
    assert json.loads(json.loads(redact(json.dumps(once)))) == masked


def test_a_key_with_quotes_is_masked_by_value_in_json_within_json(monkeypatch):
    monkeypatch.setenv("PLANTED_API_KEY", 'one"quote\\and-a-9')
    text = 'it is one"quote\\and-a-9 here'
    for _ in range(3):
        assert "quote" not in redact(text)
        text = json.dumps(text)
