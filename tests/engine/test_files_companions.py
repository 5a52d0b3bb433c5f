"""What a target is given of a skill of several files."""

from __future__ import annotations

import pytest

from skillgit.domain.skill import Skill
from skillgit.engine.method_settings import TargetSettings
from skillgit.engine.rollout import delivered, named_texts

HEAD = "---\nname: s\ndescription: See references/b.md.\n---\n\n"


def skill(body, **files):
    named = {path.replace("__", "/").replace("_", "."): content for path, content in files.items()}
    return Skill("s", {"SKILL.md": (HEAD + body).encode(), **named})


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("See [the rules](references/a.md).", True),
        ("See `references/a.md`.", True),
        ("See references/a.md.", True),
        ("See [the rules](./references/a.md#units).", True),
        ("Run cat {baseDir}/references/a.md", True),
        ("See https://host.example/references/a.md", False),
        ("See other/references/a.md", False),
        ("See references/a.md.bak", False),
        ("See references/a.mdx", False),
        ("See references/b.md", False),
    ],
)
def test_a_file_is_named_where_its_path_stands(body, named):
    found = [path for path, _ in named_texts(skill(body, references__a_md=b"A"))]
    assert found == (["references/a.md"] if named else [])


def test_the_frontmatter_names_nothing():
    given = skill("Nothing.", references__b_md=b"B")
    assert delivered(given, TargetSettings()) is given


def test_files_stand_behind_the_text_in_the_order_in_which_they_are_named():
    given = skill("First references/b.md, then scripts/a.py.\n", references__b_md=b"\nB\n", scripts__a_py=b"print()\n")
    text = delivered(given, TargetSettings()).document
    assert text == (
        f"{HEAD}First references/b.md, then scripts/a.py.\n\n"
        '<companion path="references/b.md">\nB\n</companion>\n\n'
        '<companion path="scripts/a.py">\nprint()\n</companion>\n'
    )
    assert delivered(given, TargetSettings(companions="none")) is given


def test_what_is_binary_or_named_by_another_file_only_is_left_out():
    given = skill("See references/b.md and a.bin.", references__b_md=b"see references/c.md", a_bin=b"\0")
    given = given.with_text("references/c.md", "C")
    text = delivered(given, TargetSettings()).document
    assert "companion path" in text
    assert text.count("<companion") == 1


def test_a_skill_of_one_file_is_given_as_it_is():
    given = skill("See references/a.md.")
    assert delivered(given, TargetSettings()) is given


def test_files_share_a_limit_and_what_is_cut_says_so():
    given = skill("references/a.md references/b.md references/c.md", references__a_md=b"x" * 300)
    given = given.with_text("references/b.md", "y" * 2000).with_text("references/c.md", "z" * 500)
    text = delivered(given, TargetSettings(max_companion_tokens=200)).document
    assert "x" * 300 in text
    assert "[... 1501 characters left out ...]" in text
    assert "z" * 10 not in text
    assert "[... references/c.md left out: too long ...]" in text
    assert len(text) < 200 * 4 + 400
