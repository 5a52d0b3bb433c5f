"""Which files may be trained, and where a new one may stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.edit import Edit, EditStatus, Op, apply
from skillgit.domain.skill import Skill, TrainableFiles, new_file_problem, pattern_problem

SKILL = Skill(
    "toy",
    {
        "SKILL.md": b"---\nname: toy\ndescription: d\n---\n\n# Toy\n\n- Read references/rules.md.\n",
        "references/rules.md": b"# Rules\n\n- One.\n",
        "scripts/run.py": b"def run():\n    return None\n\n\ndef stop():\n    return None\n",
        "assets/logo.png": b"\x89PNG\x00",
    },
)


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("SKILL.md", "SKILL.md", True),
        ("references/*.md", "references/rules.md", True),
        ("references/*.md", "references/deep/rules.md", False),
        ("*.md", "references/rules.md", False),
        ("*/*.md", "references/rules.md", True),
        ("rules.md", "references/rules.md", False),
        ("references/rule?.md", "references/rules.md", True),
        ("references/*.md", "references/rules.txt", False),
    ],
)
def test_a_pattern_goes_folder_by_folder(pattern, path, covered):
    assert TrainableFiles((pattern,)).covers(path) is covered


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("../other/SKILL.md", "inside the skill folder"),
        ("/etc/passwd", "inside the skill folder"),
        ("~/notes.md", "inside the skill folder"),
        ("references\\a.md", "inside the skill folder"),
        ("references/**/*.md", "folder by folder"),
        ("SKILL.md#frontmatter", "only whole files are trained"),
        ("frontmatter", "only whole files are trained"),
        ("assets/*.PNG", "binary files"),
        (".git/config", "hidden files"),
        ("", "is not a path"),
        (" SKILL.md", "is not a path"),
        ("./SKILL.md", "is not a path"),
        ("references//a.md", "is not a path"),
    ],
)
def test_a_pattern_that_names_nothing_to_train_is_told_why(pattern, told):
    assert told in pattern_problem(pattern)


@pytest.mark.parametrize("pattern", ["SKILL.md", "references/*.md", "scripts/*.py", "assets/[a-c]*.csv", "*.md"])
def test_usual_patterns_have_no_problem(pattern):
    assert pattern_problem(pattern) == ""


@pytest.mark.parametrize(
    "path",
    [
        "new.md",
        "references/deep/new.md",
        "../new.md",
        "/tmp/new.md",  # noqa: S108 - a path that is refused
        "references/../new.md",
        "./references/new.md",
        "references/RULES.md",
        "references/rules.md/more.md",
        "SKILL.md/more.md",
        "assets/new.png",
        "references/*.md",
        "references/.hidden.md",
        "references/a\nb.md",
    ],
)
def test_a_new_file_that_has_no_place_is_refused(path):
    assert new_file_problem(SKILL, path)
    made = apply(SKILL, [Edit(op=Op.APPEND, file=path, content="- New.")])
    assert [report.status for report in made.reports] == [EditStatus.INVALID]
    assert made.skill.digest == SKILL.digest


def test_an_append_makes_a_file_and_later_edits_find_it():
    edits = [
        Edit(op=Op.APPEND, file="references/units.md", content="# Units\n\n- Metres."),
        Edit(op=Op.INSERT_AFTER, file="references/units.md", anchor="- Metres.", content="- Seconds."),
    ]
    made = apply(SKILL, edits)
    assert made.skill.files["references/units.md"] == b"# Units\n\n- Metres.\n- Seconds.\n"
    assert len(made.applied) == 2


@pytest.mark.parametrize("op", [Op.INSERT_AFTER, Op.REPLACE, Op.DELETE])
def test_only_an_append_makes_a_file(op):
    made = apply(SKILL, [Edit(op=op, file="references/units.md", anchor="x", content="y")])
    assert made.reports[0].status is EditStatus.INVALID


@pytest.mark.parametrize(
    "edit",
    [
        Edit(op=Op.DELETE, file="references/rules.md", anchor="# Rules\n\n- One.\n"),
        Edit(op=Op.DELETE, file="references/rules.md", anchor="# Rules\n\n- One."),
    ],
)
def test_no_edit_deletes_a_file(edit):
    made = apply(SKILL, [edit])
    assert made.reports[0].status is EditStatus.INVALID
    assert "none deletes a file" in made.reports[0].detail


def test_a_binary_file_is_no_text_to_edit():
    made = apply(SKILL, [Edit(op=Op.APPEND, file="assets/logo.png", content="x")])
    assert made.reports[0].detail == "the skill has no text file 'assets/logo.png'"


def test_code_gets_no_blank_lines_and_may_repeat_a_line():
    edit = Edit(op=Op.INSERT_AFTER, file="scripts/run.py", anchor="def run():", content="    return None")
    made = apply(SKILL, [edit])
    assert made.skill.files["scripts/run.py"].startswith(b"def run():\n    return None\n    return None\n")


@given(st.lists(st.sampled_from(["references", "scripts", "a.md", "b.py", "SKILL.md", "..", "."]), max_size=4))
def test_whatever_is_made_stays_in_a_folder_of_the_skill(parts):
    path = "/".join(parts)
    made = apply(SKILL, [Edit(op=Op.APPEND, file=path, content="- New rule.")])
    for new in made.skill.files.keys() - SKILL.files.keys():
        assert new.count("/") == 1
        assert ".." not in new
