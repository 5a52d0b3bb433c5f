from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skillgit.domain.edit import Edit, EditStatus, Op, apply, normalised
from skillgit.domain.protected_regions import KEEP_END, KEEP_START, SLOW_END, SLOW_START, Owner, blocks
from skillgit.domain.skill import DOCUMENT, MOST_DOCUMENT, Skill

HEAD = "---\nname: x\ndescription: d\n---\n"
SLOW = f"{SLOW_START}\nslow words\n{SLOW_END}"
KEEP = f"{KEEP_START}\nkept words\n{KEEP_END}"
TEXT = f"{HEAD}# Rules\n\n- one\n- two\n- two again\n\n{KEEP}\n\nClosing words.\n\n{SLOW}\n"
LINES = st.sampled_from(["- one", "- two", "# Rules", "words", "", SLOW, KEEP, SLOW_START, KEEP_START, "same", "same"])
TEXTS = st.tuples(st.sampled_from(["", HEAD]), st.lists(LINES, max_size=10)).map(
    lambda parts: parts[0] + "\n".join(parts[1])
)
EDITS = st.builds(
    Edit,
    op=st.sampled_from(Op),
    file=st.sampled_from([DOCUMENT, DOCUMENT, DOCUMENT, "other.md", "none.md"]),
    anchor=st.sampled_from(
        ["- one", "two", "words", "slow words", "name: x", "\n", "", "same", "s", "kept words", "# R"]
    ),
    content=st.sampled_from(["- three", "paragraph\n\nmore", "", "  ", SLOW_END, "- one", "1. first", "two"]),
)


def skill(text: str = TEXT) -> Skill:
    return Skill("x", {DOCUMENT: text.encode(), "other.md": b"- one\nwords\n"})


def protected(text: str) -> list[str]:
    return [text[part.start : part.end] for part in blocks(text) if part.owner is not Owner.BODY]


def ends_in_open_keep(text: str) -> bool:
    return KEEP_START in text.rpartition(KEEP_END)[2].replace(SLOW, "")


def test_nothing_is_appended_into_a_keep_region_that_is_never_closed() -> None:
    before = skill(f"text\n{KEEP_START}\nmine\n")

    after = apply(before, [Edit(op=Op.APPEND, content="- three")])

    assert protected(after.skill.document) == protected(before.document)


@given(TEXTS, st.lists(EDITS, max_size=6))
def test_no_edit_changes_what_belongs_to_others(text, edits) -> None:
    assume(not ends_in_open_keep(text))
    before = skill(text)

    after = apply(before, edits)

    assert protected(after.skill.document) == protected(before.document)
    assert len(after.reports) == len(edits)


@given(TEXTS, st.lists(EDITS, max_size=6))
def test_what_is_not_applied_changes_nothing(text, edits) -> None:
    done = apply(skill(text), edits)

    assert apply(skill(text), done.applied).skill == done.skill
    for report in done.reports:
        if report.status is not EditStatus.APPLIED:
            assert report.detail
    if not done.applied:
        assert done.skill == skill(text)


@given(TEXTS, EDITS)
def test_an_applied_edit_changes_only_its_file(text, edit) -> None:
    before = skill(text)
    after = apply(before, [edit])

    for path in before.files:
        if path != edit.file or not after.applied:
            assert after.skill.files[path] == before.files[path]


def edited(edit: Edit, text: str = TEXT) -> str:
    done = apply(skill(text), [edit])
    assert done.reports[0].status is EditStatus.APPLIED, done.reports[0].detail
    return done.skill.document


def test_appending_goes_before_the_slow_region() -> None:
    assert edited(Edit(op=Op.APPEND, content="- three")) == TEXT.replace(SLOW, f"- three\n\n{SLOW}")
    assert edited(Edit(op=Op.APPEND, content="- b"), "- a\n") == "- a\n- b\n"
    assert edited(Edit(op=Op.APPEND, content="b"), "- a\n") == "- a\n\nb\n"
    assert edited(Edit(op=Op.APPEND, content="b"), "") == "b\n"


def test_inserting_keeps_lists_together_and_paragraphs_apart() -> None:
    assert "- one\n- three\n- two\n" in edited(Edit(op=Op.INSERT_AFTER, anchor="- one", content="- three"))
    assert "# Rules\n\nFirst.\n\n- one\n" in edited(Edit(op=Op.INSERT_AFTER, anchor="# Rules", content="First."))
    assert edited(Edit(op=Op.INSERT_AFTER, anchor="a", content="b"), "a") == "a\n\nb\n"


def test_replacing_and_deleting() -> None:
    assert edited(Edit(op=Op.REPLACE, anchor="- two again", content="- 2")) == TEXT.replace("- two again", "- 2")
    assert edited(Edit(op=Op.DELETE, anchor="- two again")) == TEXT.replace("- two again\n", "")
    assert edited(Edit(op=Op.DELETE, anchor="Closing words.")) == TEXT.replace("Closing words.\n\n", "")
    assert edited(Edit(op=Op.DELETE, anchor=" again")) == TEXT.replace(" again", "")


@pytest.mark.parametrize(
    ("edit", "status"),
    [
        (Edit(op=Op.DELETE, anchor="nowhere"), EditStatus.ANCHOR_MISSING),
        (Edit(op=Op.DELETE, anchor="- two"), EditStatus.AMBIGUOUS),
        (Edit(op=Op.REPLACE, anchor="slow words", content="x"), EditStatus.PROTECTED),
        (Edit(op=Op.REPLACE, anchor="kept words", content="x"), EditStatus.PROTECTED),
        (Edit(op=Op.REPLACE, anchor="name: x", content="x"), EditStatus.PROTECTED),
        (Edit(op=Op.DELETE, anchor=f"Closing words.\n\n{SLOW_START}"), EditStatus.PROTECTED),
        (Edit(op=Op.APPEND, content="* ONE."), EditStatus.DUPLICATE),
        (Edit(op=Op.REPLACE, anchor="- one", content="- two"), EditStatus.DUPLICATE),
        (Edit(op=Op.APPEND, content=" \n"), EditStatus.INVALID),
        (Edit(op=Op.DELETE, anchor=" "), EditStatus.INVALID),
        (Edit(op=Op.APPEND, content=f"x {SLOW_END}"), EditStatus.INVALID),
        (Edit(op=Op.APPEND, file="none.md", content="x"), EditStatus.INVALID),
        (Edit(op=Op.APPEND, file="../SKILL.md", content="x"), EditStatus.INVALID),
    ],
)
def test_edits_that_cannot_be_applied_say_why(edit, status) -> None:
    done = apply(skill(), [edit])

    assert done.reports[0].status is status
    assert done.skill == skill()
    assert done.applied == ()


def test_edits_build_on_each_other() -> None:
    first = Edit(op=Op.APPEND, content="- three")
    done = apply(skill(), [first, Edit(op=Op.REPLACE, anchor="three", content="3"), first])

    assert [report.status for report in done.reports] == [EditStatus.APPLIED] * 3
    assert "- 3\n- three\n" in done.skill.document


@pytest.mark.parametrize("text", ["- Say  IT.", "* say it", "1. say it;", "2) Say\nit", "say it"])
def test_repetitions_are_found_whatever_their_dress(text) -> None:
    assert normalised(text) == "say it"


def test_an_edit_beyond_what_a_skill_may_hold_is_refused_and_the_others_are_applied():
    long = Edit(op=Op.APPEND, content="x" * MOST_DOCUMENT)
    short = Edit(op=Op.APPEND, content="- three")
    made = apply(skill(), [long, short])
    assert [report.status for report in made.reports] == [EditStatus.INVALID, EditStatus.APPLIED]
    assert "longer than 1 MiB" in made.reports[0].detail
    assert made.skill == apply(skill(), [short]).skill
