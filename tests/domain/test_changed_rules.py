"""How an edit budget counts rules: what holds for any two texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillgit.domain.skill import Skill
from skillgit.domain.skill_rules import LABEL_WORDS, changed_rules, rules, rules_changed_in

HEAD = "---\nname: s\ndescription: S.\n---\n"
words = st.sampled_from(["alpha", "beta", "gamma", "delta", "omega", "kappa", "sigma"])
labels = st.lists(words, min_size=1, max_size=LABEL_WORDS).map(lambda parts: f"- {' '.join(parts)}")
items = st.lists(words, min_size=2, max_size=8).map(lambda parts: f"- {' '.join(parts)}.")
sentences = st.lists(words, min_size=2, max_size=8).map(lambda parts: f"{' '.join(parts).capitalize()}.\n")
headings = st.sampled_from(["\n# One\n", "\n## Two\n", "\n## Three\n"])
texts = st.lists(st.one_of(labels, items, sentences, headings), max_size=12).map("\n".join)


@settings(max_examples=300)
@given(texts, texts)
def test_the_count_is_the_same_from_either_side_and_no_larger_than_both_texts(old, new):
    count = changed_rules(old, new)
    assert count == changed_rules(new, old)
    assert count <= len(rules(old)) + len(rules(new))
    if count == 0:
        assert [rule.text for rule in rules(old)] == [rule.text for rule in rules(new)]


@given(texts)
def test_a_text_that_stays_changes_no_rule_and_an_empty_one_gains_all_units(text):
    assert changed_rules(text, text) == 0
    assert (changed_rules("", text) == 0) is (not rules(text))


@given(texts, st.lists(items, min_size=1, max_size=6, unique=True))
def test_rules_that_are_added_count_one_each(text, additions):
    before = f"{text}\n\n# Last\n\nThe end begins here.\n"
    assert changed_rules(before, before + "\n".join(additions)) == len(additions)


@given(
    st.integers(1, 60),
    st.sampled_from(["{}", "`{}*` → {}", "{}: {}", "any other name with {} at or near its end -> {} (if it has one)"]),
    st.booleans(),
)
def test_a_list_of_labels_is_one_rule_however_long_and_however_many_of_them_change(size, form, is_sparse):
    separator = "\n\n" if is_sparse else "\n"
    lines = [f"- {form.format(f'section-{number}', number)}" for number in range(size)]
    listed = f"Answer with one of these.\n\n{separator.join(lines)}\n"
    assert changed_rules("Answer with one of these.\n", listed) == 1
    shorter = f"Answer with one of these.\n\n{separator.join([*lines[1:], '- other'])}\n"
    assert changed_rules(listed, shorter) == (1 if size > 1 else changed_rules("- section-0", "- other"))
    assert changed_rules("", f"Allowed: {', '.join(lines)}.") == 1


@given(st.integers(1, 60), st.booleans(), st.booleans(), texts)
def test_the_sentence_that_introduces_a_list_is_a_part_of_it(size, is_sparse, is_next, before):
    lines = [f"- section {number}" for number in range(size)]
    listed = "\n".join(["{}", *([""] if is_sparse else []), *lines, ""])
    before = f"{before}\n\n# Last\n\nThe end begins here.\n"
    old, new = listed.format("Answer with one of these:"), listed.format("Answer with a line of this list:")
    assert changed_rules(before, f"{before}\n{old}") == 1
    assert changed_rules(f"{before}\n{old}", f"{before}\n{new if is_next else new.replace('section 0', 'other')}") == 1
    assert changed_rules(before, f"{before}\n{listed.format('Answer briefly.')}") == 2


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("- Give years alone.", "- Give years alone, in four digits.", 1),
        ("- Give years alone.", "", 1),
        ("# A\n\n- Give years alone.", "# B\n\n- Give years alone.", 0),
        ("- Be brief.\n- Name it.\n- Stop.", "- Name it.\n- Stop.\n- Be brief.", 1),
        ("- Write it as in this line.", "- Write it as in this line.\n\n```\nx = 1\n```", 1),
        ("", "- Answer with the section, and nothing else around it\n- Say why, in words that all understand", 2),
        ("", "One sentence. And another one on its line.", 1),
    ],
)
def test_what_counts(old, new, count):
    assert changed_rules(old, new) == count


def test_files_of_a_skill_count_together_and_code_by_its_stretches_of_lines():
    skill = Skill("s", {"SKILL.md": f"{HEAD}- One thing.\n".encode(), "run.py": b"a = 1\nb = 2\nc = 3\n"})
    new = skill.with_text("SKILL.md", f"{HEAD}- One thing.\n- And another thing.\n")
    new = new.with_text("notes.md", "- A thing of its own.\n")
    new = new.with_text("run.py", "a = 2\nb = 2\nc = 4\n")
    assert rules_changed_in(skill, new) == 4
    assert rules_changed_in(skill, skill) == 0
    assert rules_changed_in(skill, skill.with_text("SKILL.md", skill.document.replace("S.", "T."))) == 1
