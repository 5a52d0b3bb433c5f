from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.ids import check_item_id, check_run_name, digest, new_run_name, short_digest, text_digest
from skillgit.errors import DataError, UsageError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.from_regex(r"[A-Za-z0-9][\x20-\x7e]{0,39}", fullmatch=True), st.dates(), st.binary(min_size=4, max_size=8))
def test_new_names_are_always_valid(environment, day, entropy) -> None:
    assert check_run_name(new_run_name(environment, day, entropy))


def test_a_long_name_may_be_cut_at_a_hyphen() -> None:
    assert check_run_name(new_run_name(f"{'a' * 39}-b", date(2026, 11, 21), b"abcd"))


def test_a_new_name_says_what_and_when() -> None:
    assert new_run_name("Search QA", date(2026, 11, 21), b"\x00\x01\x1a\x1f") == "search-qa-20261121-ab27"


@pytest.mark.parametrize("name", ["", "-a", "a-", "a--b", "A", "a_b", "a/b", "ü", "a" * 61, "a b", "a\n"])
def test_names_that_git_or_people_would_stumble_over_are_refused(name) -> None:
    with pytest.raises(UsageError):
        check_run_name(name)


@pytest.mark.parametrize("name", ["v5", "r17", "m2", "i1", "best", "head", "main"])
def test_names_of_revisions_are_refused(name) -> None:
    with pytest.raises(UsageError, match="since it names a revision") as caught:
        check_run_name(name)
    assert check_run_name(caught.value.hint.partition(" ")[0])


@pytest.mark.parametrize("name", ["a", "7", "a-b", "v", "v5a", "best-of", "a" * 60])
def test_plain_names_are_taken(name) -> None:
    assert check_run_name(name) == name


@pytest.mark.parametrize(
    "item", ["", "a b", "a,b", "a\tb", "a\nb", "../a", "a/../b", "a\\..\\b", "/a", "\\a", "x" * 201, "\x7f"]
)
def test_item_ids_that_break_lists_or_leave_folders_are_refused(item) -> None:
    with pytest.raises(DataError):
        check_item_id(item)


@pytest.mark.parametrize("item", ["q17", "a/b", "a..b", "数学", "%41", "+"])
def test_other_item_ids_are_taken(item) -> None:
    assert check_item_id(item) == item


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_digests_do_not_depend_on_the_order_of_keys(value) -> None:
    assert digest(value) == digest(dict(reversed(list(value.items()))))


@given(VALUES)
def test_short_digests_begin_long_ones(value) -> None:
    assert digest(value).startswith(short_digest(value))
    assert len(short_digest(value)) == 12


def test_digests_tell_values_apart() -> None:
    values = [None, 0, 0.5, "0", [0], {"0": 0}, [], {}, "", [[]], "é", "e\u0301", True, "true"]

    assert len({digest(value) for value in values}) == len(values)
    assert text_digest("a") != text_digest("a\n")


def test_not_a_number_has_no_digest() -> None:
    with pytest.raises(ValueError, match="JSON"):
        digest(float("nan"))
