from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.errors import FormatVersionError, TrailerError
from skillgit.store.trailers import VALUE_LIMIT, format_block, format_token, parse_block, parse_value

TOKEN = re.compile(r"[A-Za-z0-9._:/+%-]*")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WHOLE = st.integers(-(10**18) + 1, 10**18 - 1)


@given(TEXT)
def test_any_text_is_a_token(text) -> None:
    token = format_token(text)

    assert TOKEN.fullmatch(token)
    assert parse_value(f"word key={token}" if token else "word") == {"": "word"} | ({"key": token} if token else {})


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_exactly(number) -> None:
    token = format_token(number)

    assert float(token) == number
    assert TOKEN.fullmatch(token)


def test_plain_tokens_are_not_encoded() -> None:
    assert format_token("openai/gpt-4.1:x+y") == "openai/gpt-4.1:x+y"
    assert format_token(0.1 + 0.2) == "0.30000000000000004"


@pytest.mark.parametrize(
    "text",
    ["a b", "a  b=1", "a=", "=1", "a=1 =2", "a=1 a=2", "a=ü", "word b=1 c", "a=1\t", "w a=b=c", "w a=1,2", "", " a=1"],
)
def test_what_breaks_the_grammar_is_refused(text) -> None:
    with pytest.raises(TrailerError):
        parse_value(text)


@pytest.mark.parametrize("text", ["", "1.0", "1e3", "٣", "0x1", " 1", "--1", "1_0", "+1", "1" * 19])
def test_integers_are_plain(text) -> None:
    with pytest.raises(TrailerError):
        parse_block(f"s\n\n{format_block([('Step', text)])}\n").integer("Step")


@given(WHOLE)
def test_integers_come_back(number) -> None:
    assert parse_block(f"s\n\n{format_block([('Step', str(number))])}\n").integer("Step") == number


def test_blocks_come_back() -> None:
    block = format_block([("Run", "x"), ("Edit", "op=a"), ("Cost", ""), ("Edit", "op=b")])
    found = parse_block(f"subject\n\nbody\n\n{block}\n")

    assert block == "Skillgit-Format: 1\nSkillgit-Run: x\nSkillgit-Edit: op=a\nSkillgit-Edit: op=b"
    assert found.one("Run") == "x"
    assert found.all("Edit") == ["op=a", "op=b"]
    assert found.one("Cost") == ""
    with pytest.raises(TrailerError, match="2 trailers"):
        found.one("Edit")


def test_a_forged_block_in_the_body_is_not_the_block() -> None:
    forged = "Skillgit-Format: 1\nSkillgit-Run: forged"

    assert parse_block(f"s\n\n{forged}\n\n{format_block([('Run', 'real')])}\n").one("Run") == "real"


def test_a_block_without_format_first_is_none() -> None:
    for message in ("", "subject", "s\n\nSkillgit-Run: x\nSkillgit-Format: 1", "s\n\n skillgit-format: 1"):
        with pytest.raises(TrailerError):
            parse_block(message)


@pytest.mark.parametrize("version", ["2", "1\nSkillgit-Format: 1", "x", ""])
def test_other_formats_are_refused(version) -> None:
    with pytest.raises(FormatVersionError):
        parse_block(f"s\n\nSkillgit-Format: {version}\nSkillgit-Run: x")


def test_trailers_of_others_are_passed_over() -> None:
    block = format_block([("Run", "x")])

    assert parse_block(f"s\n\n{block}\nCo-authored-by: a <a@localhost>\nChange-Id:I1\n").one("Run") == "x"


def test_values_have_a_limit() -> None:
    assert format_block([("Run", "x" * VALUE_LIMIT)])
    with pytest.raises(TrailerError, match=f"{VALUE_LIMIT + 1} characters"):
        format_block([("Run", "x" * (VALUE_LIMIT + 1))])
    with pytest.raises(TrailerError, match="bytes of 8192"):
        format_block([("Edit", "x" * 190)] * 42)
