from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.sandbox.job import expression

NAMES = st.text("ab.*?[]!^-\\/ \n", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("**", ["a", "a/b", "a/b/c.txt"], []),
        ("*.txt", ["a.txt", ".txt"], ["a/b.txt", "a.txt.gz", "atxt"]),
        ("**/*.txt", ["a.txt", "a/b.txt", "a/b/c.txt"], ["a.csv", "a.txt/b"]),
        ("out/**", ["out/a", "out/a/b"], ["a", "outer/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb/c"]),
        ("?.csv", ["1.csv"], ["12.csv", "/.csv"]),
        ("[ab]1", ["a1", "b1"], ["c1", "[ab]1"]),
        ("[!ab]1", ["c1"], ["a1", "/1"]),
        ("[a-c]", ["b"], ["d", "-"]),
        ("a+(b)", ["a+(b)"], ["aab"]),
        ("[", ["["], ["a"]),
        ("[z-a]", ["[z-a]"], ["b"]),
    ],
)
def test_a_pattern_means_whole_paths(pattern, matching, others):
    meant = re.compile(expression(pattern))
    assert [name for name in matching if not meant.fullmatch(name)] == []
    assert [name for name in others if meant.fullmatch(name)] == []


@given(st.text(max_size=20))
def test_every_text_is_a_pattern(text):
    re.compile(expression(text))


@given(NAMES)
def test_a_path_without_signs_means_itself(name):
    plain = re.sub(r"[*?\[]", "", name)
    assert re.fullmatch(expression(plain), plain)


@given(NAMES)
def test_everything_means_everything(name):
    assert re.fullmatch(expression("**"), name)
