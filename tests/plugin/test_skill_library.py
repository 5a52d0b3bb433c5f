"""Names and descriptions of installed skills, and a description in place of another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.protected_regions import frontmatter
from skillgit.errors import SkillError
from skillgit.plugin.skill_library import (
    changes_description_alone,
    description_fault,
    library_skill,
    read_library,
    with_description,
)

STYLES = (
    'description: "Reads PDF files."\n',
    "description: Reads PDF files.  # as it was\n",
    "description: 'Reads PDF files.'\n",
    "description: >\n  Reads\n  PDF files.\n",
    "description: |\n  Reads PDF files.\n",
)
TEXTS = st.text(min_size=1, max_size=60).map(lambda text: " ".join(text.split())).filter(bool)


def document(style: str, *, last: bool = False) -> str:
    keys = ["name: pdf\n", style, 'metadata:\n  version: "1"\n']
    keys = [keys[0], keys[2], keys[1]] if last else keys
    return f"---\n{''.join(keys)}---\n\n# PDF\n\ndescription: stays\n"


@given(st.sampled_from(STYLES), st.booleans(), TEXTS)
def test_a_description_is_replaced_and_nothing_else(style, last, text):
    before = document(style, last=last)
    if description_fault(before, text):
        return
    after = with_description(before, text)
    assert library_skill("pdf", after).description == text
    assert after.removeprefix(frontmatter(after)) == before.removeprefix(frontmatter(before))
    kept = [line for line in before.splitlines() if line not in style.splitlines()]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert changes_description_alone(before, after)


@pytest.mark.parametrize("text", ["", " ", "x" * 1025, "a --- b", "a\x00b"])
def test_what_cannot_be_a_description_is_refused(text):
    assert description_fault(document(STYLES[0]), text)


@pytest.mark.parametrize(
    "after",
    [
        document(STYLES[0]).replace("name: pdf", "name: csv"),
        document(STYLES[0]).replace('"1"', '"2"'),
        document(STYLES[0]).replace("Reads", "Writes").replace('"1"', '"2"'),
        document(STYLES[0]).replace('metadata:\n  version: "1"\n', ""),
        document(STYLES[0]).replace("Reads PDF files.", "x" * 1025),
        document(STYLES[0]).replace("---\nname", "---\nlicense: MIT\nname"),
        "# PDF\n",
    ],
)
def test_another_change_of_the_frontmatter_is_none_of_the_description_alone(after):
    assert not changes_description_alone(document(STYLES[0]), after)


def test_a_document_without_a_description_has_none_to_replace():
    with pytest.raises(SkillError, match="no description"):
        with_description("---\nname: pdf\n---\n\nx\n", "new")


@given(st.text(max_size=200))
def test_nothing_that_somebody_installed_breaks_the_reading(text):
    skill = library_skill("folder", text)
    assert isinstance(skill.name, str)
    assert isinstance(skill.description, str)


def test_a_library_is_read_by_folders(tmp_path):
    for name, text in {"a": document(STYLES[0]), "b": "---\nx: [\n---\n", "c": "no frontmatter"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(text)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "SKILL.md").mkdir()
    library = read_library(tmp_path)
    assert {name: (skill.name, skill.description) for name, skill in library.items()} == {
        "a": ("pdf", "Reads PDF files."),
        "b": ("b", ""),
        "c": ("c", ""),
    }
