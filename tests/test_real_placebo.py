"""The benchmark of rewordings: they change no rule, and it goes on where it was stopped."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefix_cache import TASKS, served
from program import run

sys.path.insert(0, str(Path(__file__).parent / "bench"))

import measure
from real_placebo import HEADINGS, Noisy, rewordings, survives

from skillgit.domain.agreement import exact_interval
from skillgit.domain.placebo import SENTENCES
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.strategies.refine import LOOKED_FAILING, LOOKED_SOLVED

BENCH = Path(__file__).parent / "bench" / "real_placebo.py"
SKILLS = {
    "real": (TASKS / "best.md").read_text(encoding="utf-8"),
    "headed": "---\nname: s\ndescription: D.\n---\n\n# Rules\n\n- Read.\n- Give a name.\n\n## Examples\n\nA.\n\nC.\n",
    "bare": "---\nname: s\ndescription: D.\n---\n\n# S\n\nRead it.\n\nGive a name.\n",
}
_SAME = {word: words[0] for words in HEADINGS for word in words}


def said(text: str) -> Counter[str]:
    """Return what a text says, line by line: without white space, signs of bullets and words that mean the same."""
    lines = (re.sub(r"^[-*+] ", "", line).strip() for line in text.splitlines())
    alike = (
        re.sub(r"\w+", lambda word: _SAME.get(word[0].lower(), word[0].lower()), line).rstrip(":") for line in lines
    )
    sentences = {sentence.lower() for sentence in SENTENCES}
    return Counter(line for line in alike if line and line not in sentences)


@given(st.sampled_from([*SKILLS]), st.integers(1, 12), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_rewordings_differ_from_each_other_and_say_the_same(name, count, seed):
    skill = Skill("s", {DOCUMENT: SKILLS[name].encode()})
    texts = rewordings(skill, count, seed)
    assert len({text.digest for text in texts} | {skill.digest}) == count + 1
    assert [text.digest for text in rewordings(skill, count, seed)] == [text.digest for text in texts]
    assert all(said(text.document) == said(skill.document) for text in texts)


@given(st.integers(1, 60), st.data())
@settings(max_examples=30, deadline=None)
def test_the_interval_is_the_exact_one(n, data):
    count = data.draw(st.integers(0, n))
    low, high = exact_interval(count, n)
    assert low <= count / n <= high

    def tail(share: float, numbers: range) -> float:
        part = Fraction(share)
        return float(sum(comb(n, k) * part**k * (1 - part) ** (n - k) for k in numbers))

    if count:
        assert tail(low, range(count, n + 1)) == pytest.approx(0.025, abs=1e-6)
    if count < n:
        assert tail(high, range(count + 1)) == pytest.approx(0.025, abs=1e-6)


@given(st.integers(0, 5), st.integers(0, 4), st.data())
@settings(max_examples=40, deadline=None)
def test_the_share_of_looks_is_that_of_all_draws(failing, solved, data):
    fixed, broken = data.draw(st.integers(0, failing)), data.draw(st.integers(0, solved))
    gains, losses = (
        [sum(number < changed for number in draw) for draw in combinations(range(total), min(most, total))]
        for total, changed, most in ((failing, fixed, LOOKED_FAILING), (solved, broken, LOOKED_SOLVED))
    )
    passed = [gain > loss for gain in gains for loss in losses]
    assert survives(failing, fixed, solved, broken) == pytest.approx(sum(passed) / len(passed))


def test_a_second_start_asks_nothing_and_says_the_same(tmp_path):
    rows = [json.loads(line) for line in (TASKS / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    model = Noisy(answers={row["question"]: row["answer"] for row in rows}, seconds=0.0)
    with served(model) as address:
        command = (sys.executable, BENCH, "--address", address, "--folder", tmp_path / "kept", "--looks")
        first = run(*command, env={measure.SIZE: measure.SMALL})
        calls = model.calls
        second = run(*command, env={measure.SIZE: measure.SMALL})
    assert (first.code, second.code) == (0, 0), (first, second)
    assert (second.out, model.calls) == (first.out, calls)
    # three texts and the skill itself, on six selection items each and all train items
    assert calls == 4 * (6 + sum(row.get("split") == "train" for row in rows))
