from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.served_model import ServedModel, normalised


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8081/v1", "http://127.0.0.1:8081/v1"),
        ("HTTP://LocalHost:8081/v1/", "http://127.0.0.1:8081/v1"),
        ("https://user:secret@proxy.example:443/v1?key=secret#secret", "https://proxy.example/v1"),
        ("https://proxy.example/team-a/v1", "https://proxy.example/team-a/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://host:notaport/v1", "http://host/v1"),
    ],
)
def test_an_address_is_scheme_host_port_and_path(url: str, expected: str) -> None:
    assert normalised(url) == expected
    assert normalised(expected) == expected


@given(st.text(alphabet="abc123", min_size=1), st.text(alphabet="abc123", min_size=1))
def test_credentials_never_reach_the_identity(user: str, secret: str) -> None:
    hidden = f"Z{secret}Z"
    assert hidden not in normalised(f"https://{user}:{hidden}@host/v1?token={hidden}#{hidden}")


def test_what_decides_the_answer_decides_the_digest() -> None:
    base = ServedModel(backend="b", model="m", address="http://h:1/v1", facts=(("size", "1"),))
    others = [
        ServedModel(backend="b", model="m", address="http://h:2/v1", facts=(("size", "1"),)),
        ServedModel(backend="b", model="m", address="http://h:1/v1", facts=(("size", "2"),)),
        ServedModel(backend="b", model="m", address="http://h:1/other", facts=(("size", "1"),)),
        ServedModel(backend="b", model="m", address="http://h:1/v1"),
    ]
    assert len({base.digest, *(other.digest for other in others)}) == 5


def test_a_provider_that_pins_its_names_is_identified_by_them_alone() -> None:
    pinned = ServedModel(backend="openai_chat", model="m", address="https://api.openai.com/v1", is_pinned=True)
    assert (pinned.digest, ServedModel(backend="offline", model="reader").digest) == ("", "")
    assert pinned.phrase == "openai_chat m at api.openai.com"


@pytest.mark.parametrize(
    ("address", "phrase"),
    [
        ("", "b m"),
        ("http://127.0.0.1:8081/v1", "b m at 127.0.0.1:8081"),
        ("http://127.0.0.1:8081/team/v1", "b m at 127.0.0.1:8081/team/v1"),
    ],
)
def test_an_identity_is_described_in_one_phrase(address: str, phrase: str) -> None:
    assert ServedModel(backend="b", model="m", address=address).phrase == phrase
