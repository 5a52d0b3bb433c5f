"""A pushed repository holds its skills where installers look: by their documented rules, and by the real one."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from program import git, run, skillgit
from trained_runs import small_run

from skillgit.app.skill_format import frontmatter

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ("skills", "skills/.curated", "skills/.experimental", "skills/.system", ".agents/skills", ".claude/skills")
"""Where ``npx skills add`` looks for folders with a SKILL.md, besides the root."""
INSTALLER = "skills@1.3.9"
"""The installer's last version that runs on Node.js 20."""


@pytest.fixture(scope="module")
def cloned(tmp_path_factory) -> Path:
    """What a stranger gets who clones the repository from a host: a trained run with its best version promoted."""
    folder = tmp_path_factory.mktemp("host")
    here = shutil.copytree(small_run(tmp_path_factory), folder / "here")
    skillgit("promote", "best", cwd=here)
    git("init", "-q", "--bare", "-b", "main", "host.git", cwd=folder)
    git("push", "-q", folder / "host.git", "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*", cwd=here)
    git("clone", "-q", "--depth", "1", f"file://{folder}/host.git", "cloned", cwd=folder)
    return folder / "cloned"


def skills_found(repository: Path) -> dict[str, Path]:
    """Return name and folder of the skills that an installer offers."""
    folders = [repository, *(one for place in PLACES for one in sorted((repository / place).glob("*/")))]
    found = {}
    for folder in folders:
        document = folder / "SKILL.md"
        fields = (frontmatter.read(document.read_text()) if document.is_file() else None) or {}
        if fields.get("name") and fields.get("description") and "internal" not in dict(fields.get("metadata", {})):
            found[str(fields["name"])] = folder
    return found


def test_the_rules_of_installers_find_the_promoted_skill_and_nothing_of_ours_in_it(cloned):
    found = skills_found(cloned)

    assert {name: folder.relative_to(cloned).as_posix() for name, folder in found.items()} == {
        "searchqa": "skills/searchqa"
    }
    assert [path.name for path in (cloned / "skills/searchqa").rglob("*")] == ["SKILL.md"]
    best = skillgit("show", "origin/main:skills/searchqa/SKILL.md", cwd=cloned).bytes
    assert (cloned / "skills/searchqa/SKILL.md").read_bytes() == best
    assert sorted(path.name for path in cloned.iterdir()) == [".git", ".gitattributes", "skills"]


@pytest.mark.soak
def test_the_real_installer_copies_the_skill_byte_for_byte(cloned, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "DISABLE_TELEMETRY": "1", "CI": "1"}
    if not shutil.which("npx") or run("npx", "--yes", INSTALLER, "--version", env=environment, cwd=tmp_path).code:
        pytest.skip(f"npx cannot start {INSTALLER}: no Node.js, or no registry")
    project = tmp_path / "project"
    project.mkdir()

    done = run(
        *("npx", "--yes", INSTALLER, "add", cloned, "--skill", "searchqa", "--agent", "claude-code", "codex", "--yes"),
        cwd=project,
        env=environment,
    )

    assert done.code == 0, done
    for place in (".claude/skills", ".agents/skills"):
        assert (project / place / "searchqa/SKILL.md").read_bytes() == (
            cloned / "skills/searchqa/SKILL.md"
        ).read_bytes()
    # What the installer put there is no hand edit of ours, and undo gives its links back.
    adopting = shutil.copytree(cloned.parent / "here", tmp_path / "here")
    before = json.dumps(sorted(str(path.relative_to(project)) for path in project.rglob("*")))
    skillgit("install", "v1", "--to", project / ".claude/skills", "--yes", cwd=adopting)
    assert not (project / ".claude/skills/searchqa").is_symlink()
    skillgit("uninstall", cwd=adopting)
    assert json.dumps(sorted(str(path.relative_to(project)) for path in project.rglob("*"))) == before
