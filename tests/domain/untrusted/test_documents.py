from __future__ import annotations

import json
import math
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import sampled

from skillgit.domain.untrusted.json_limits import MOST_BYTES, MOST_DEPTH, MOST_VALUES, DocumentError, read_document
from skillgit.plugin.backend import token_count

numbers = st.integers(-(10**290), 10**290) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_within_the_limits_is_read_as_json_has_it(value):
    written = json.dumps(value)
    assert read_document(written) == read_document(written.encode()) == json.loads(written)


@given(st.text() | st.binary())
def test_any_text_and_any_bytes_are_a_document_or_a_fault(written):
    with suppress(DocumentError):
        read_document(written)


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "nested"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        (b"[" * (MOST_DEPTH + 1) + b"]" * (MOST_DEPTH + 1), "nested"),
        (b"[" + b"0," * MOST_VALUES + b"0]", "1,000,000 values"),
        (b'"' + b"a" * MOST_BYTES + b'"', "32 MiB"),
        (b'{"a": 1', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"", "not JSON"),
    ],
)
def test_what_is_beyond_a_limit_is_a_fault(written, fault):
    with pytest.raises(DocumentError, match=fault):
        read_document(written)


def test_as_many_levels_as_are_allowed_are_read():
    assert read_document(b"[" * MOST_DEPTH + b"]" * MOST_DEPTH)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("digits", [301, 4301, 1_000_000])
def test_a_number_of_any_length_is_read_and_counts_nothing(sign, digits):
    value = read_document(f'{{"prompt_tokens": {sign}{"9" * digits}}}')
    assert isinstance(value, dict)
    assert math.isinf(value["prompt_tokens"])
    assert token_count(value["prompt_tokens"]) is None


@pytest.mark.parametrize("unit", sampled([b'{"a":1},', b"[],", b"{},", b'"ab",', b"1.5,", b"1234567,"], 3))
def test_a_document_of_the_largest_size_takes_bounded_memory(unit):
    body = b"[" + unit * (MOST_BYTES // len(unit) - 1) + b"0]"
    tracemalloc.start()
    try:
        with pytest.raises(DocumentError):
            read_document(body)
        fits = b"[" + unit * (MOST_VALUES // 4) + b"0]"
        read_document(fits)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 << 20
