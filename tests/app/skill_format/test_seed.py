from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.skill_format import frontmatter
from skillgit.app.skill_format.seed import normalise, read_seed, starter
from skillgit.domain.protected_regions import Owner, blocks, slow_guidance
from skillgit.domain.skill import MOST_DOCUMENT, Skill
from skillgit.errors import SkillError

VALID = "---\nname: demo\ndescription: Answers questions.\n---\n\n# Demo\n\n- Be brief.\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_plain_markdown_gets_frontmatter_from_its_name_heading_and_prose(tmp_path):
    path = write(tmp_path / "docvqa_gpt5.5_skill.md", "# DocVQA Skill\n\nRead the page first. Then answer.\n")
    skill = read_seed(path)
    assert skill.name == "docvqa-gpt5-5-skill"
    assert frontmatter.read(skill.document) == {
        "name": "docvqa-gpt5-5-skill",
        "description": "DocVQA Skill. Read the page first.",
    }
    assert skill.document.endswith("---\n\n# DocVQA Skill\n\nRead the page first. Then answer.\n")


def test_a_valid_folder_is_taken_byte_for_byte_with_executable_bits(tmp_path):
    write(tmp_path / "demo" / "SKILL.md", VALID)
    script = write(tmp_path / "demo" / "scripts" / "run.sh", "#!/bin/sh\r\n")
    script.chmod(0o755)
    write(tmp_path / "demo" / "assets" / "logo.png", b"\x89PNG\r\n\0")
    write(tmp_path / "demo" / "__pycache__" / "x.pyc", b"x")
    skill = read_seed(tmp_path / "demo")
    assert dict(skill.files) == {
        "SKILL.md": VALID.encode(),
        "assets/logo.png": b"\x89PNG\r\n\0",
        "scripts/run.sh": b"#!/bin/sh\r\n",
    }
    assert skill.executable == {"scripts/run.sh"}


def test_the_name_in_the_frontmatter_wins_over_the_folder(tmp_path):
    write(tmp_path / "someone__demo" / "SKILL.md", VALID)
    assert read_seed(tmp_path / "someone__demo").name == "demo"


def test_a_skill_document_brings_its_folder_only_if_that_bears_its_name(tmp_path):
    for folder in ("demo", "downloads"):
        write(tmp_path / folder / "SKILL.md", VALID)
        write(tmp_path / folder / "other.txt", "x")
    assert set(read_seed(tmp_path / "demo" / "SKILL.md").files) == {"SKILL.md", "other.txt"}
    assert set(read_seed(tmp_path / "downloads" / "SKILL.md").files) == {"SKILL.md"}


def test_windows_text_becomes_unix_text(tmp_path):
    path = write(tmp_path / "a.md", b"\xef\xbb\xbf" + VALID.replace("\n", "\r\n").encode())
    assert read_seed(path).document == VALID


def test_the_references_slow_region_becomes_ours():
    text = f"{VALID}\n<!-- SLOW_UPDATE_START -->\nKeep to the span.\n<!-- SLOW_UPDATE_END -->\n"
    document = normalise(Skill("demo", {"SKILL.md": text.encode()})).document
    assert slow_guidance(document) == "Keep to the span."
    assert [block.owner for block in blocks(document)] == [Owner.FRONTMATTER, Owner.BODY, Owner.SLOW, Owner.BODY]
    assert "SLOW_UPDATE" not in document


def test_appendix_markers_go_and_their_text_stays():
    text = f"{VALID}\n<!-- APPENDIX_START -->\n<!-- APPENDIX_END -->\n"
    assert normalise(Skill("demo", {"SKILL.md": text.encode()})).document == VALID
    text = f"{VALID}\n<!-- APPENDIX_START -->\nMore.\n<!-- APPENDIX_END -->\n"
    assert normalise(Skill("demo", {"SKILL.md": text.encode()})).document == f"{VALID}\nMore.\n"


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("name: Demo\ndescription: x", "cannot name a skill"),
        ("name: a--b\ndescription: x", "cannot name a skill"),
        ("name: demo", "has no description"),
        ("description: x", "has no name"),
        ("name: demo\ndescription: x\nname: other", "'name' twice"),
        ("name: demo\ndescription: [a, b]", "'description' in the frontmatter"),
        ("{name: demo, description: x}", "uses braces"),
        ("name: demo\ndescription: a --- b", "contains '---'"),
        (f"name: demo\ndescription: {'x' * 1025}", "has 1025 characters"),
        ("name: demo\ndescription: a: b", "is not YAML"),
        ("name: demo\ndescription: x\nmetadata: text", "'metadata' in the frontmatter"),
    ],
)
def test_frontmatter_that_breaks_a_rule_is_refused_with_a_hint(block, told):
    skill = Skill("demo", {"SKILL.md": f"---\n{block}\n---\n\n# Demo\n".encode()})
    with pytest.raises(SkillError, match=told.replace("(", r"\(")) as caught:
        normalise(skill)
    assert caught.value.hint


def test_all_six_keys_are_read_as_text():
    block = (
        'name: demo\ndescription: "It: works"\nlicense: MIT\ncompatibility: any\n'
        "metadata:\n  version: 1.0\nallowed-tools: Read Bash(git *)\n"
    )
    assert frontmatter.read(f"---\n{block}---\n") == {
        "name": "demo",
        "description": "It: works",
        "license": "MIT",
        "compatibility": "any",
        "metadata": {"version": "1.0"},
        "allowed-tools": "Read Bash(git *)",
    }


def test_an_open_frontmatter_a_link_and_a_missing_path_are_refused(tmp_path):
    with pytest.raises(SkillError, match="never closed"):
        normalise(Skill("demo", {"SKILL.md": b"---\nname: demo\n"}))
    write(tmp_path / "demo" / "SKILL.md", VALID)
    (tmp_path / "demo" / "link").symlink_to("/etc/hostname")
    with pytest.raises(SkillError, match="symbolic link"):
        read_seed(tmp_path / "demo")
    with pytest.raises(SkillError, match="there is no skill"):
        read_seed(tmp_path / "nowhere")
    with pytest.raises(SkillError, match="not UTF-8"):
        read_seed(write(tmp_path / "latin.md", b"# caf\xe9\n"))


@given(st.text(max_size=40), st.text(max_size=1500))
def test_composed_frontmatter_is_valid_whatever_it_is_made_of(name, description):
    block = frontmatter.compose(frontmatter.skill_name(name), f"x{description}")
    fields = frontmatter.read(f"{block}\n# Title\n")
    assert fields is not None
    assert fields["name"] == frontmatter.skill_name(name)


def test_normalising_twice_changes_nothing_more():
    once = starter("my-skill")
    assert normalise(once) == once


def test_a_seed_beyond_the_bound_is_refused(tmp_path):
    path = write(tmp_path / "demo" / "SKILL.md", VALID + "x" * MOST_DOCUMENT)
    for seed in (path, path.parent):
        with pytest.raises(SkillError, match=r"the text of 'SKILL\.md' is longer than 1 MiB"):
            read_seed(seed)
