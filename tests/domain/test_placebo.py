from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.placebo import SENTENCES, Placebo, no_op
from skillgit.domain.protected_regions import Owner, blocks
from skillgit.domain.skill import Skill

HEAD = "---\nname: s\ndescription: D.\n---\n\n# S\n\n"
TAIL = "\n<!-- skillgit:slow -->\n- slow one\n- slow two\n<!-- /skillgit:slow -->\n"


def skill(body: str, tail: str = "") -> Skill:
    return Skill("s", {"SKILL.md": f"{HEAD}{body}\n{tail}".encode()})


def test_a_sentence_that_asks_for_nothing_is_added_to_the_body():
    made = no_op(skill("Read.", TAIL), 1)
    assert made.skill.document == f"{HEAD}Read.\n\n{SENTENCES[0]}\n{TAIL}"
    assert made.change == f"'{SENTENCES[0]}' is added"


def test_independent_neighbours_change_places():
    made = no_op(skill("- Read the question.\n- Give a name.\n- Check the unit."), 2)
    assert made.skill.document == f"{HEAD}- Give a name.\n- Read the question.\n- Check the unit.\n"
    assert made.change == "lines 8 and 9 of SKILL.md change places"


def test_bullets_that_refer_to_each_other_stay_where_they_are():
    for body in (
        "- Read the question.\n- Then answer.",
        "- Read it as above.\n- Give a name.",
        "- One.\n- Two,\n  with more.",
        "1. One.\n2. Two.",
    ):
        assert "is added" in no_op(skill(body), 2).change


def test_regions_are_never_touched():
    made = no_op(skill("Read.", TAIL), 2)
    assert made.skill.document.endswith(TAIL)
    assert "is added" in made.change


def test_a_sentence_that_stands_already_gives_way_to_another():
    assert no_op(skill(SENTENCES[0]), 1).change == f"'{SENTENCES[1]}' is added"


LINES = st.lists(st.sampled_from(["- a rule", "- another rule", "", "Text.", "* star", "  - inner", TAIL]), max_size=12)


@given(LINES, st.integers(1, 9))
def test_a_no_op_keeps_every_line_and_everything_that_is_not_body(lines, number):
    before = skill("\n".join(lines))
    after = no_op(before, number).skill
    assert after.digest != before.digest
    kept = sorted(line for line in after.document.splitlines() if line and line not in SENTENCES)
    assert kept == sorted(line for line in before.document.splitlines() if line)
    parts = [
        [text.document[part.start : part.end] for part in blocks(text.document) if part.owner is not Owner.BODY]
        for text in (before, after)
    ]
    assert parts[0] == parts[1]
    assert no_op(before, number).skill == after, "always the same"


def test_the_rate_is_a_share():
    assert (Placebo(n=4, accepted=1).rate, Placebo(n=0, accepted=0).rate) == (0.25, 0.0)
