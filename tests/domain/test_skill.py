from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skillgit.domain.protected_regions import (
    APPENDIX_END,
    APPENDIX_HEADING,
    APPENDIX_START,
    KEEP_END,
    KEEP_START,
    SLOW_END,
    SLOW_START,
    Owner,
    appendix_notes,
    blocks,
    frontmatter,
    has_marker,
    slow_guidance,
    with_appendix,
    with_slow_guidance,
)
from skillgit.domain.skill import DOCUMENT, MOST_COMPANION, MOST_DOCUMENT, Skill
from skillgit.errors import SkillError

HEAD = "---\nname: demo\ndescription: d\n---\n"
PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                SLOW_START,
                SLOW_END,
                KEEP_START,
                KEEP_END,
                APPENDIX_START,
                APPENDIX_END,
                "---\nname: x\n---\n",
                "---",
                "\n",
                "text",
                "<!-- skillgit:",
                "\r\n",
            ]
        ),
        st.text(max_size=10),
    ),
    max_size=12,
).map("".join)


@given(PIECES, st.booleans())
def test_blocks_cover_any_text_without_gaps(text, is_document) -> None:
    parts = blocks(text, is_document=is_document)

    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(part.start < part.end for part in parts)


@given(PIECES)
def test_markers_are_never_body(text) -> None:
    for part in blocks(text):
        inside = text[part.start : part.end]
        if part.owner is Owner.BODY:
            assert SLOW_START not in inside
            assert KEEP_START not in inside
            assert APPENDIX_START not in inside


@given(PIECES, st.text(max_size=30))
def test_guidance_is_read_as_it_was_set(text, guidance) -> None:
    assume(not has_marker(guidance))

    assume(not _is_open(text))

    assert slow_guidance(with_slow_guidance(text, guidance)) == guidance.strip()


def _is_open(text: str) -> bool:
    """Say whether a region that is never closed reaches over the end, where a region would be added."""
    last = blocks(text)[-1:]
    ends = {Owner.KEEP: KEEP_END, Owner.APPENDIX: APPENDIX_END, Owner.SLOW: SLOW_END}
    return any(part.owner in ends and not text.endswith(ends[part.owner]) for part in last)


LINES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=20).filter(str.strip)


@given(PIECES, st.lists(LINES, max_size=4))
def test_reminders_are_read_as_they_were_set(text, notes) -> None:
    assume(not any(map(has_marker, notes)) and not _is_open(text))

    after = with_appendix(text, notes)

    assert appendix_notes(after) == tuple(note.strip() for note in notes)
    assert with_appendix(after, notes) == after


def test_the_appendix_is_added_after_the_guidance_and_changes_nothing_else() -> None:
    text = with_slow_guidance(f"{HEAD}body\n", "guide")

    after = with_appendix(text, ["first", "second"])

    assert after == f"{text}\n{APPENDIX_START}\n{APPENDIX_HEADING}\n\n- first\n- second\n{APPENDIX_END}\n"
    assert with_appendix(after, []).startswith(text)
    assert with_appendix(text, []) == text
    assert with_slow_guidance(after, "guide") == after


@pytest.mark.parametrize("note", ["two\nlines", APPENDIX_END, " "])
def test_a_reminder_is_one_line(note) -> None:
    with pytest.raises(SkillError):
        with_appendix("text", [note])


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_setting_guidance_again_changes_only_the_region(before, first, second) -> None:
    assume(not any(has_marker(text) or "<!--" in text for text in (before, first, second)))
    once = with_slow_guidance(f"{HEAD}{before}\n{SLOW_START}\n{SLOW_END}\nafter\n", first)

    twice = with_slow_guidance(once, second)

    assert twice.startswith(f"{HEAD}{before}\n{SLOW_START}\n")
    assert twice.endswith(f"{SLOW_END}\nafter\n")
    assert with_slow_guidance(twice, first) == once


def test_a_region_is_added_at_the_end() -> None:
    assert with_slow_guidance("text\n\n\n", " be brief \n") == f"text\n\n{SLOW_START}\nbe brief\n{SLOW_END}\n"
    assert with_slow_guidance("text", "") == f"text\n\n{SLOW_START}\n{SLOW_END}\n"


@pytest.mark.parametrize("guidance", [SLOW_END, "<!--skillgit:keep-->", "a <!-- / skillgit:slow --> b"])
def test_guidance_cannot_close_its_own_region(guidance) -> None:
    with pytest.raises(SkillError):
        with_slow_guidance("text", guidance)


def test_owners() -> None:
    text = f"{HEAD}# A\n{KEEP_START}\nmine\n{KEEP_END}\nb\n{SLOW_START}\ns\n{SLOW_END}\nc\n"

    owners = [part.owner for part in blocks(text)]

    assert owners == [Owner.FRONTMATTER, Owner.BODY, Owner.KEEP, Owner.BODY, Owner.SLOW, Owner.BODY]
    assert [part.owner for part in blocks(HEAD, is_document=False)] == [Owner.BODY]


def test_an_open_region_reaches_to_the_end() -> None:
    assert [part.owner for part in blocks(f"a\n{KEEP_START}\nb\n")] == [Owner.BODY, Owner.KEEP]


@pytest.mark.parametrize("text", ["", "---\n", "--- x\n---\n", "text\n---\na\n---\n", "---\nname: x\n"])
def test_what_is_no_frontmatter(text) -> None:
    assert frontmatter(text) == ""


def test_frontmatter_ends_at_its_fence() -> None:
    assert frontmatter(f"{HEAD}---\n") == HEAD
    assert frontmatter("---\na: 1\n---") == "---\na: 1\n---"


def test_a_skill_needs_a_readable_document() -> None:
    with pytest.raises(SkillError, match="has no"):
        Skill("x", {"a.md": b""})
    with pytest.raises(SkillError, match="UTF-8"):
        Skill("x", {DOCUMENT: b"\xff"})


FILES = st.dictionaries(st.text("ab-é", min_size=1, max_size=3), st.binary(max_size=3), max_size=4)


@given(FILES, FILES)
def test_digests_are_equal_exactly_for_equal_skills(one, two) -> None:
    skills = [Skill("x", {DOCUMENT: b"", **files}) for files in (one, two)]

    assert (skills[0].digest == skills[1].digest) == (dict(skills[0].files) == dict(skills[1].files))


def test_the_executable_bit_counts() -> None:
    files = {DOCUMENT: b"", "run.sh": b""}

    assert Skill("x", files).digest != Skill("x", files, frozenset({"run.sh"})).digest


def test_binary_files_are_not_text() -> None:
    skill = Skill("x", {DOCUMENT: b"t", "a": b"\xff", "b": b"a\0", "c": b"c"})

    assert dict(skill.text_files()) == {DOCUMENT: "t", "c": "c"}
    assert skill.with_text("c", "d").files["c"] == b"d"
    assert skill.files["c"] == b"c"


@pytest.mark.parametrize(("path", "most"), [(DOCUMENT, MOST_DOCUMENT), ("references/table.md", MOST_COMPANION)])
def test_a_text_may_be_as_long_as_the_bound_and_no_longer(path, most):
    held = {DOCUMENT: HEAD.encode()}
    fits = Skill("demo", {**held, path: b"a" * most})
    assert fits.bounded() is fits
    longer = Skill("demo", {**held, path: b"a" * (most + 1)})
    with pytest.raises(SkillError, match=f"the text of '{path}' is longer than {most >> 20} MiB"):
        longer.bounded()


def test_a_file_that_is_no_text_has_no_bound():
    skill = Skill("demo", {DOCUMENT: HEAD.encode(), "a.png": b"\0" * (MOST_COMPANION + 1)})
    assert skill.bounded() is skill
