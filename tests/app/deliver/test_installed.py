"""An installed skill is mapped back to its version, whoever installed it and whatever became of it since."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from asking import ask
from once import copy_folder
from program import git
from trained_runs import RUN, small_run, user

from skillgit.app.deliver.export.folder import export_skill
from skillgit.app.deliver.install import InstallRequest, install
from skillgit.app.deliver.installed import list_installed
from skillgit.app.interventions.promote import promote
from skillgit.errors import NotFoundError

if TYPE_CHECKING:
    from pathlib import Path

SKILL = "searchqa"


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A repository whose best version was released, and a release before it."""
    folder = copy_folder(small_run(tmp_path_factory), tmp_path_factory.mktemp("whence") / "repository")
    for setting in ("user.name=P", "user.email=p@example.org"):
        git("config", *setting.split("="), cwd=folder)
    promote(user(folder), "v1", release="1.0.0")
    promote(user(folder), "v3", release="1.1.0")
    return folder


@pytest.fixture
def place(home, tmp_path) -> Path:
    """The text of version 2, which nobody released, in a project of somebody else."""
    target = tmp_path / "project/.agents/skills" / SKILL
    ask(export_skill, user(home), "v2", str(target))
    return target


def origin(home: Path, place: Path, **environ: str):
    (found,) = ask(list_installed, replace(user(home), environ=environ), (str(place),))
    return found


def as_gh_installs(place: Path, tree: str) -> None:
    """Write metadata as ``gh skill install`` does: a YAML round trip, keys sorted, scripts executable."""
    document = place / "SKILL.md"
    _, head, body = document.read_text().split("---\n", 2)
    fields = yaml.safe_load(head)
    told = {
        "github-repo": "https://github.com/o/r",
        "github-ref": "v1",
        "github-tree-sha": tree,
        "github-path": "skills",
    }
    fields["metadata"] = {**fields.get("metadata", {}), **told}
    document.write_text(f"---\n{yaml.safe_dump(fields, sort_keys=True)}---\n{body}")
    document.chmod(0o755)


def test_a_copy_is_known_by_its_tree(home, place, tmp_path):
    found = origin(home, place)
    assert (found.name, found.release, found.state, found.source) == (f"{RUN}/v2", "", "unchanged", "its tree")
    link = tmp_path / "project/.claude/skills" / SKILL
    link.parent.mkdir(parents=True)
    link.symlink_to("../../.agents/skills/searchqa")
    assert origin(home, link).name == f"{RUN}/v2"
    assert [found.name for found in ask(list_installed, user(home), (str(place.parent),))] == [f"{RUN}/v2"]


@pytest.mark.parametrize(("tag", "version"), [("v1.0.0", "v1"), ("v1.1.0", "v3")])
def test_a_release_is_known_as_such(home, tmp_path, tag, version):
    git(
        "-c",
        "advice.detachedHead=false",
        "clone",
        "-q",
        "-b",
        f"{SKILL}/{tag}",
        home.as_uri(),
        tmp_path / "c",
        cwd=tmp_path,
    )
    found = origin(home, tmp_path / "c/skills" / SKILL)
    assert (found.name, found.release) == (f"{RUN}/{version}", f"{SKILL}/{tag}")
    assert found.commit == git("rev-parse", f"{SKILL}/{tag}^{{commit}}", cwd=home).out.strip()


def test_what_gh_installs_is_known_though_it_rewrites_the_document(home, place):
    tree = git("rev-parse", f"{RUN}/v2:skills/{SKILL}", cwd=home).out.strip()
    as_gh_installs(place, "0" * 40)
    found = origin(home, place)
    assert (found.name, found.state) == (f"{RUN}/v2", "unchanged")
    assert found.source == "its files, but for metadata of an installer"
    as_gh_installs(place, tree)
    (place / "SKILL.md").write_text((place / "SKILL.md").read_text() + "- Mine.\n")
    found = origin(home, place)
    assert (found.name, found.state) == (f"{RUN}/v2", "changed by hand")
    assert found.source == "metadata.github-tree-sha"


def test_lock_files_say_what_a_changed_copy_was(home, place, tmp_path):
    tree = git("rev-parse", f"{RUN}/v2:skills/{SKILL}", cwd=home).out.strip()
    (place / "SKILL.md").write_text((place / "SKILL.md").read_text() + "- Mine.\n")
    assert origin(home, place).name == ""
    lock = tmp_path / "user/.agents/.skill-lock.json"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"version": 3, "skills": {SKILL: {"skillFolderHash": tree}}}))
    found = origin(home, place, HOME=str(tmp_path / "user"))
    assert (found.name, found.state, found.source) == (f"{RUN}/v2", "changed by hand", ".skill-lock.json")
    assert origin(home, place, HOME="/", XDG_STATE_HOME="/nowhere").name == ""


def test_the_record_of_an_install_says_it_too(home, tmp_path):
    context = user(home)
    install(context, InstallRequest(words=("v1",), to=str(tmp_path / "mine")), lambda *_: False)
    assert [found.name for found in ask(list_installed, context)] == [f"{RUN}/v1"]
    (tmp_path / "mine" / SKILL / "SKILL.md").write_text("Mine.\n")
    (found,) = ask(list_installed, context)
    assert (found.name, found.state, found.source) == (
        f"{RUN}/v1", "changed by hand", "the record of skillgit install",
    )  # fmt: skip
    shutil.rmtree(tmp_path / "mine")
    assert ask(list_installed, context)[0].state == "gone"
    install(context, InstallRequest(words=("r1",), to=str(tmp_path / "tried")), lambda *_: False)
    (candidate,) = (found for found in ask(list_installed, context) if found.state != "gone")
    assert (candidate.name, candidate.state) == (f"{RUN}/r1", "unchanged"), "no version has this text"


@pytest.mark.parametrize(
    "lock",
    ["[]", "{", '{"skills": []}', '{"skills": {"searchqa": 1}}', '{"skills": {"searchqa": {"computedHash": [""]}}}',
     "[" * 5000, "x" * (2 << 20)],
    ids=range(7),
)  # fmt: skip
def test_a_strangers_lock_names_nothing(home, place, lock):
    (place / "SKILL.md").write_text("---\nname: searchqa\nmetadata:\n  github-tree-sha: ''\n---\nMine.\n")
    (place.parents[2] / "skills-lock.json").write_text(lock)
    assert origin(home, place).name == ""


def test_where_there_is_no_skill_that_is_said(home, tmp_path):
    with pytest.raises(NotFoundError, match="there is no skill in"):
        ask(list_installed, user(home), (str(tmp_path),))


@pytest.mark.parametrize("put", ["v0", "v2", "v3"])
def test_a_version_that_someone_put_over_an_installed_one_is_that_version(home, tmp_path, put):
    context = user(home)
    install(context, InstallRequest(words=("v1",), to=str(tmp_path / put)), lambda *_: False)
    ask(export_skill, context, put, str(tmp_path / put / SKILL), force=True)
    (found,) = (row for row in ask(list_installed, context) if row.place.startswith(str(tmp_path)))
    assert (found.name, found.state, found.source) == (f"{RUN}/{put}", "unchanged", "its tree")
    assert found == ask(list_installed, context, (found.place,))[0]
