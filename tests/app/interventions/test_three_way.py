from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.interventions.three_way_merge import Choice, merge
from skillgit.domain.skill import DOCUMENT, Skill

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "---\nname: demo\ndescription: d\n---\n"
RULES = st.lists(st.sampled_from([f"- rule {number}" for number in range(9)]), max_size=9, unique=True)


def skill(*lines: str, head: str = HEAD, **files: bytes) -> Skill:
    text = head + "".join(f"{line}\n" for line in lines)
    more = {name.replace("_", "."): content for name, content in files.items()}
    return Skill("demo", {DOCUMENT: text.encode(), **more})


def body(made: Skill | None) -> list[str]:
    assert made is not None
    return made.document.removeprefix(HEAD).splitlines()


def test_what_only_one_side_changed_needs_no_choice():
    made = merge(skill("a", "b", "c"), skill("A", "b", "c"), skill("a", "b", "C"))
    assert made.conflicts == ()
    assert body(made.settled([])) == ["A", "b", "C"]


def test_what_both_changed_is_a_conflict_with_four_choices():
    made = merge(skill("a", "b", "c"), skill("a", "ours", "c"), skill("a", "theirs", "c"))
    (conflict,) = made.conflicts
    assert (conflict.file, conflict.line) == (DOCUMENT, 6), "lines are counted in the file, frontmatter included"
    assert conflict.choices == tuple(Choice)
    texts = {choice: body(made.settled([choice]))[1:-1] for choice in Choice}
    assert texts == {
        Choice.OURS: ["ours"],
        Choice.THEIRS: ["theirs"],
        Choice.BOTH: ["ours", "theirs"],
        Choice.NEITHER: ["b"],
    }


def test_a_line_that_both_added_is_no_conflict():
    made = merge(skill("a"), skill("a", "same", "x"), skill("a", "same", "y"))
    (conflict,) = made.conflicts
    assert (conflict.ours, conflict.theirs) == (("x\n",), ("y\n",))
    assert body(made.settled([Choice.BOTH])) == ["a", "same", "x", "y"]


def test_without_a_common_text_everything_that_differs_is_a_choice():
    made = merge(None, skill("a", "b"), skill("a", "c"))
    (conflict,) = made.conflicts
    assert body(made.settled([Choice.NEITHER])) == ["a"]
    assert body(made.settled([Choice.BOTH])) == ["a", "b", "c"]
    assert conflict.base == ()


def test_a_last_line_without_an_end_gets_one_before_more_follows():
    ours = Skill("demo", {DOCUMENT: f"{HEAD}a\nb".encode()})
    made = merge(skill("a"), ours, skill("a", "c"))
    assert body(made.settled([Choice.BOTH])) == ["a", "b", "c"]


def test_the_frontmatter_is_always_ours():
    made = merge(skill("a"), skill("a"), skill("a", "b", head="---\nname: demo\ndescription: other\n---\n"))
    assert made.settled([]).document == f"{HEAD}a\nb\n"


def test_what_would_leave_two_slow_regions_or_touch_a_keep_region_is_none():
    slow = ["<!-- skillgit:slow -->", "- guidance", "<!-- /skillgit:slow -->"]
    assert merge(skill("a", "b"), skill("a", *slow, "b"), skill("a", "b", *slow)).settled([]) is None
    assert merge(skill("a", "b"), skill("a", *slow, "b"), skill("A", "b")).settled([Choice.OURS]) is not None
    kept = ("<!-- skillgit:keep -->", "mine", "<!-- /skillgit:keep -->")
    harmed = merge(skill("a", *kept), skill("a", *kept), skill("a"))
    assert harmed.settled([]) is None


def test_other_files_are_merged_too_and_bytes_are_taken_whole():
    base = skill("a", notes_md=b"x\n", logo_png=b"\x00\xff1")
    ours = skill("a", notes_md=b"x\n", logo_png=b"\x00\xff2", mine_md=b"m")
    theirs = skill("a", logo_png=b"\x00\xff3", new_md=b"n")
    made = merge(base, ours, theirs)
    (conflict,) = made.conflicts
    assert (conflict.file, conflict.choices) == ("logo.png", (Choice.OURS, Choice.THEIRS))
    taken = made.settled([Choice.THEIRS])
    assert dict(taken.files) == {
        DOCUMENT: ours.files[DOCUMENT],
        "logo.png": b"\x00\xff3",
        "mine.md": b"m",
        "new.md": b"n",
    }


def test_a_file_that_one_side_changed_and_the_other_removed_is_a_choice():
    made = merge(skill("a", n_md=b"1"), skill("a", n_md=b"2"), skill("a"))
    (conflict,) = made.conflicts
    assert conflict.choices == (Choice.OURS, Choice.THEIRS)
    assert "n.md" in made.settled([Choice.OURS]).files
    assert "n.md" not in made.settled([Choice.THEIRS]).files


@given(RULES, RULES, RULES)
def test_a_merge_keeps_what_one_side_alone_says_and_settles_every_conflict(base, ours, theirs):
    one, two, other = skill(*base), skill(*ours), skill(*theirs)
    assert merge(one, two, one).settled([]) == two
    assert merge(one, one, other).settled([]) == other
    assert merge(one, two, two).settled([]) == two
    made = merge(one, two, other)
    for choice in (Choice.OURS, Choice.THEIRS):
        settled = body(made.settled([choice] * len(made.conflicts)))
        assert set(settled) <= {*base, *ours, *theirs}
        assert set(ours) & set(theirs) - set(base) <= set(settled)


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_changes_far_from_each_other_are_merged_as_git_merges_them(tmp_path_factory, mine, theirs):
    lines = [text for number in range(10) for text in (f"rule {number}", "", "", "")]

    def changed(numbers: set[int], word: str) -> list[str]:
        return [f"{word} {line}" if line and int(line.split()[1]) in numbers else line for line in lines]

    sides = changed(mine, "ours"), lines, changed(theirs - mine, "theirs")
    made = merge(skill(*sides[1]), skill(*sides[0]), skill(*sides[2]))
    assert made.conflicts == ()
    assert made.settled([]).document == HEAD + by_git(tmp_path_factory.mktemp("git"), sides)


def by_git(folder: Path, sides: tuple[list[str], ...]) -> str:
    for number, lines in enumerate(sides):
        (folder / str(number)).write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(
        ["git", "merge-file", "-p", "0", "1", "2"], cwd=folder, capture_output=True, check=True, text=True
    )
    return done.stdout


@given(base=RULES, block=st.lists(st.sampled_from("xyz"), min_size=1, unique=True), place=st.integers(0, 9),
       later=st.lists(st.sampled_from("uvw"), min_size=1, unique=True), other=st.integers(0, 12))  # fmt: skip
def test_an_insertion_can_be_undone_wherever_a_later_one_stands_outside_of_it(base, block, place, later, other):
    place = min(place, len(base))
    added = [*base[:place], *block, *base[place:]]
    other = min(other, len(added))
    if place < other < place + len(block):
        other = place
    head = [*added[:other], *later, *added[other:]]
    made = merge(skill(*added), skill(*head), skill(*base), beside=True)
    assert made.conflicts == ()
    assert body(made.settled([])) == [line for line in head if line not in block]


def test_lines_beside_changed_ones_are_a_conflict_unless_asked_for():
    sides = skill("a", "b"), skill("a", "b", "new"), skill("a")
    assert len(merge(*sides).conflicts) == 1
    assert body(merge(*sides, beside=True).settled([])) == ["a", "new"]
    changed = skill("a", "b"), skill("a", "B", "new"), skill("a")
    assert len(merge(*changed, beside=True).conflicts) == 1
