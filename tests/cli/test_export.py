from __future__ import annotations

import json
import os
import shutil
import tarfile
import zipfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from multi_file_skill import DOCUMENT, FILES, NAME, PROGRAMS, files_in, programs_in, sums_repository
from once import copy_folder, once
from program import git, run, skillgit
from trained_runs import RUN, small_run

from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def sums(tmp_path_factory) -> Path:
    """A repository with a skill of several files; nobody changes it."""
    return once(tmp_path_factory, "sums", sums_repository) / "repository"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A repository with a finished run; nobody changes it."""
    return small_run(tmp_path_factory)


def archived(repository: Path, commit: str, folder: str) -> dict[str, bytes]:
    """Return the files of a folder as ``git archive`` writes them."""
    with TemporaryDirectory() as place:
        git("archive", "-o", f"{place}/a.tar", f"{commit}:{folder}", cwd=repository)
        with tarfile.open(f"{place}/a.tar") as archive:
            return {one.name: archive.extractfile(one).read() for one in archive.getmembers() if one.isfile()}


def test_a_folder_holds_what_git_archive_writes(sums, tmp_path):
    told = skillgit("export", "main", tmp_path / NAME, cwd=sums)

    assert files_in(tmp_path / NAME) == archived(sums, "main", "skills/sums") == FILES
    assert programs_in(tmp_path / NAME) == PROGRAMS
    assert told.out.endswith("4 files\n")
    assert told.err == ""
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_version_is_the_text_that_cat_prints(trained, tmp_path):
    skillgit("export", f"{RUN}/v1", tmp_path / "searchqa", cwd=trained)

    assert (tmp_path / "searchqa" / "SKILL.md").read_bytes() == skillgit(
        "show", f"{RUN}/v1:SKILL.md", cwd=trained
    ).bytes


def test_a_rejected_candidate_can_be_taken_out_too(trained, tmp_path):
    rows = json.loads(skillgit("log", "--json", cwd=trained).out)["events"]
    refused = next(row for row in rows if row["kind"] == "rejected")
    skillgit("export", f"{RUN}/r{refused['step']}", tmp_path / "searchqa", cwd=trained)
    assert files_in(tmp_path / "searchqa") == archived(trained, refused["commit"], "skills/searchqa")


def test_the_same_again_writes_nothing(trained, tmp_path):
    place = tmp_path / "searchqa"
    skillgit("export", "v1", place, cwd=trained)
    before = place.stat().st_ino

    again = skillgit("export", "v1", place, cwd=trained)

    assert again.out == f"{place} holds v1 of {RUN} already\n"
    assert place.stat().st_ino == before


def test_other_content_is_replaced_only_by_force_and_what_would_change_is_told_before(trained, tmp_path):
    place = tmp_path / "searchqa"
    skillgit("export", "v1", place, cwd=trained)
    (place / "mine.md").write_text("mine")
    before = files_in(place)

    refused = skillgit("export", "v2", place, cwd=trained, code=ExitCode.CONFLICT)

    assert refused.err.splitlines()[:2] == ["M  SKILL.md", "D  mine.md"]
    assert "2 of its files would change" in refused.err
    assert "hint: --force" in refused.err
    assert files_in(place) == before
    document = json.loads(skillgit("export", "v2", place, "--force", "--json", cwd=trained).out)
    assert [(change["path"], change["status"]) for change in document["changes"]] == [
        ("SKILL.md", "changed"),
        ("mine.md", "removed"),
    ]
    assert list(files_in(place)) == ["SKILL.md"]
    assert [path.name for path in tmp_path.iterdir()] == ["searchqa"]


@pytest.mark.parametrize("option", [(), ("--force",)])
@pytest.mark.parametrize("holds", ["notes.txt", ".git/config"])
def test_a_folder_that_is_no_skill_is_never_replaced(trained, tmp_path, holds, option):
    place = tmp_path / "home"
    (place / holds).parent.mkdir(parents=True)
    (place / holds).write_text("precious")
    (place / "SKILL.md").write_text("precious") if holds.startswith(".git") else None
    before = files_in(place)

    refused = skillgit("export", "v1", place, *option, cwd=trained, code=ExitCode.USAGE)

    assert f"hint: write to {place}/searchqa" in refused.err
    assert files_in(place) == before


def test_a_folder_with_another_name_is_remarked_on(trained, tmp_path):
    told = skillgit("export", "v1", tmp_path / "elsewhere", cwd=trained)
    assert told.err == "agents look for this skill in a folder called searchqa\n"


@pytest.mark.parametrize("name", ["sums.zip", "sums.skill"])
def test_an_archive_holds_one_folder_with_modes_that_unzip_restores(sums, tmp_path, name):
    skillgit("export", "main", tmp_path / name, cwd=sums)

    with zipfile.ZipFile(tmp_path / name) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == sorted(f"{NAME}/{path}" for path in FILES)
        assert {archive.read(one) for one in archive.namelist()} == set(FILES.values())
        modes = {one.filename: one.external_attr >> 16 for one in archive.infolist()}
    assert {path: mode for path, mode in modes.items() if mode != 0o100644} == {f"{NAME}/scripts/add.sh": 0o100755}
    if unzip := shutil.which("unzip"):
        assert run(unzip, "-q", tmp_path / name, cwd=tmp_path).code == 0
        assert (files_in(tmp_path / NAME), programs_in(tmp_path / NAME)) == (FILES, PROGRAMS)


def test_equal_skills_give_equal_archives_whenever_and_however_they_are_written(sums, tmp_path):
    skillgit("export", "main", tmp_path / "a.zip", cwd=sums)
    later = {"SKILLGIT_CLOCK": "2031-01-01T00:00:00Z", "TZ": "Asia/Tokyo"}
    skillgit("export", "main", tmp_path / "b.skill", cwd=sums, env=later)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.skill").read_bytes()


def test_an_archive_with_other_content_is_replaced_only_by_force(trained, tmp_path):
    file = tmp_path / "a.zip"
    skillgit("export", "v1", file, cwd=trained)
    before = file.read_bytes()
    assert "already" in skillgit("export", "v1", file, cwd=trained).out
    skillgit("export", "v2", file, cwd=trained, code=ExitCode.CONFLICT)
    assert file.read_bytes() == before
    skillgit("export", "v2", file, "--force", cwd=trained)
    assert file.read_bytes() != before


def test_markers_are_left_out_of_the_exported_text_only(sums, tmp_path):
    skillgit("export", "main", tmp_path / NAME, "--strip-markers", cwd=sums)

    text = (tmp_path / NAME / "SKILL.md").read_text()
    assert text.splitlines() == [line for line in DOCUMENT.splitlines() if "skillgit:" not in line]
    assert files_in(tmp_path / NAME) == FILES | {"SKILL.md": text.encode()}
    assert skillgit("show", "main:skills/sums/SKILL.md", cwd=sums).out == DOCUMENT


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("v1",), ExitCode.USAGE, "say where to write"),
        (("v99", "x"), ExitCode.NOT_FOUND, "has no v99"),
        (("v1", "a-file"), ExitCode.USAGE, "is not a folder"),
        (("v1", "a-file/x"), ExitCode.USAGE, "a file is where a folder must be"),
        (("v1", "a-folder.zip"), ExitCode.USAGE, "is a folder"),
        (("v1", "a-pipe"), ExitCode.CONFLICT, "neither a file nor a folder"),
    ],
)
def test_places_and_names_that_cannot_be_are_refused_in_one_sentence(trained, tmp_path, words, code, said):
    (tmp_path / "a-file").write_text("text")
    (tmp_path / "a-folder.zip").mkdir()
    os.mkfifo(tmp_path / "a-pipe")
    placed = [tmp_path / word if number else word for number, word in enumerate(words)]
    refused = skillgit("export", *placed, cwd=trained, code=code)
    assert said in refused.err
    assert (tmp_path / "a-file").read_text() == "text"


def test_a_commit_with_several_skills_is_not_guessed_at(sums, tmp_path):
    repository = copy_folder(sums, tmp_path / "repository")
    copy_folder(repository / "skills" / NAME, repository / "skills" / "other")
    git("add", ".", cwd=repository)
    git("-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-qm", "other", cwd=repository)
    refused = skillgit("export", "main", tmp_path / "x", cwd=repository, code=ExitCode.USAGE)
    assert "main has 2 skills: other, sums" in refused.err
