from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillgit.errors import SkillError
from skillgit.plugin.seed_folder import read_skill

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_is_read_with_its_companions(tmp_path: Path):
    folder = tmp_path / "trees"
    (folder / "scripts" / "__pycache__").mkdir(parents=True)
    (folder / "SKILL.md").write_text("# Trees\n")
    (folder / "scripts" / "run.sh").write_text("true\n")
    (folder / "scripts" / "run.sh").chmod(0o755)
    (folder / "scripts" / "__pycache__" / "x.pyc").write_bytes(b"\0")
    (folder / ".hidden").write_text("no")
    skill = read_skill(folder)
    assert skill.name == "trees"
    assert list(skill.files) == ["SKILL.md", "scripts/run.sh"]
    assert skill.executable == {"scripts/run.sh"}


def test_a_folder_without_a_document_is_no_skill(tmp_path: Path):
    with pytest.raises(SkillError, match=r"has no SKILL\.md"):
        read_skill(tmp_path)
    with pytest.raises(SkillError, match="there is no skill folder"):
        read_skill(tmp_path / "nowhere")
