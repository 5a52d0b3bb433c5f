"""A pushed repository holds its skills where installers look: by their documented rules, and by the real one."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from once import copy_folder
from program import git, run, skillgit
from trained_runs import small_run

from skillgit.app.skill_format import frontmatter

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ("skills", "skills/.curated", "skills/.experimental", "skills/.system", ".agents/skills", ".claude/skills")
"""Where ``npx skills add`` looks for folders with a SKILL.md, besides the root."""
INSTALLER = "skills@1.3.9"
"""The installer's last version that runs on Node.js 20."""
NEWER = ("npx", "--yes", "--package=node@22", "--package=skills@1.5.18", "--", "skills")
"""One that reads the second draft of skill discovery, with the Node.js that it needs."""


@pytest.fixture(scope="module")
def cloned(tmp_path_factory) -> Path:
    """What a stranger gets who clones the repository from a host: a trained run with its best version promoted."""
    folder = tmp_path_factory.mktemp("host")
    here = copy_folder(small_run(tmp_path_factory), folder / "here")
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
    adopting = copy_folder(cloned.parent / "here", tmp_path / "here")
    before = json.dumps(sorted(str(path.relative_to(project)) for path in project.rglob("*")))
    skillgit("install", "v1", "--to", project / ".claude/skills", "--yes", cwd=adopting)
    assert not (project / ".claude/skills/searchqa").is_symlink()
    skillgit("uninstall", cwd=adopting)
    assert json.dumps(sorted(str(path.relative_to(project)) for path in project.rglob("*"))) == before


@pytest.fixture(scope="module")
def web_space(cloned, tmp_path_factory) -> Path:
    """A folder of static files with two skills, one of which has several files."""
    repository = copy_folder(cloned.parent / "here", tmp_path_factory.mktemp("web") / "repository")
    skill = repository / "skills/units"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: units\ndescription: Converts units.\n---\n# Units\n")
    (skill / "scripts/run.sh").write_text("#!/bin/sh\n")
    git("add", "-A", cwd=repository)
    git("-c", "user.name=P", "-c", "user.email=p@example.org", "commit", "-qm", "Units", cwd=repository)
    for _ in range(2):  # once more replaces what is there
        skillgit("export", "main", "site", "--as", "well-known", cwd=repository)
    return repository / "site"


def test_a_web_space_has_an_index_with_digests_of_what_it_serves(web_space):
    folder = web_space / ".well-known/agent-skills"
    entries = {entry["name"]: entry for entry in json.loads((folder / "index.json").read_text())["skills"]}
    assert {name: (entry["type"], entry["url"]) for name, entry in entries.items()} == {
        "searchqa": ("skill-md", "searchqa/SKILL.md"),
        "units": ("archive", "units.zip"),
    }
    for name, entry in entries.items():
        served = {"": entry["url"]} | {path: f"{name}/{path}" for path in entry["files"]}
        digests = {"": entry["digest"], **entry["digests"]}
        assert digests == {
            path: f"sha256:{hashlib.sha256((folder / file).read_bytes()).hexdigest()}" for path, file in served.items()
        }
        tree = git("rev-parse", f"main:skills/{name}", cwd=web_space.parent).out.strip()
        assert entry["gitTree"] == tree
    with zipfile.ZipFile(folder / "units.zip") as archive:
        assert archive.namelist() == entries["units"]["files"] == ["SKILL.md", "scripts/run.sh"]
    (web_space / "other/.well-known/agent-skills").mkdir(parents=True)
    (web_space / "other/.well-known/agent-skills/mine").write_text("")
    words = ("export", "main", "site/other", "--as", "well-known")
    assert "holds something that was not published there, mine" in skillgit(*words, cwd=web_space.parent, code=4).err
    copy_folder(web_space, web_space.parent / "own")
    own = web_space.parent / "own/.well-known/agent-skills"
    for place, name in (("added", "extra.txt"), ("changed", "units/SKILL.md")):
        folder = copy_folder(own, web_space.parent / place / ".well-known/agent-skills")
        (folder / name).write_text("mine")
        words = ("export", "main", place, "--as", "well-known")
        assert name in skillgit(*words, cwd=web_space.parent, code=4).err
        assert (folder / name).read_text() == "mine"
    (web_space.parent / "linked").mkdir()
    (web_space.parent / "linked/.well-known").symlink_to(own.parent)
    skillgit("export", "main", "linked", "--as", "well-known", cwd=web_space.parent, code=4)


@pytest.mark.soak
def test_the_real_installer_takes_skills_from_the_web_space_and_they_are_known_again(web_space, tmp_path):
    environment = {"HOME": str(tmp_path), "DO_NOT_TRACK": "1", "CI": "1"}
    if not shutil.which("npx") or run(*NEWER, "--version", env=environment, cwd=tmp_path).code:
        pytest.skip("npx cannot start the installer: no Node.js, or no registry")
    handler = partial(SimpleHTTPRequestHandler, directory=str(web_space))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        words = ("add", address, "--skill", "*", "--agent", "claude-code", "--yes")
        done = run(*NEWER, *words, cwd=tmp_path, env=environment)
        server.shutdown()
    assert done.code == 0, done
    assert (tmp_path / ".claude/skills/units/scripts/run.sh").read_text() == "#!/bin/sh\n"
    told = skillgit("install", "--list", tmp_path / ".claude/skills/searchqa", cwd=web_space.parent).out
    assert "small/v3" in told
    assert "unchanged" in told
