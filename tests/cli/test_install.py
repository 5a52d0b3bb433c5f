from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from multi_file_skill import FILES, NAME, PROGRAMS, files_in, programs_in, sums_repository
from once import copy_folder, once
from program import SKILLGIT, git, skillgit, surroundings
from soaking import soak
from trained_runs import RUN, small_run

from skillgit.app.skill_format.folder_contents import read_entries
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

ESCAPE = "\x1b]0;owned\x07"


@pytest.fixture
def trained(tmp_path_factory, tmp_path) -> Path:
    """A repository with a finished run."""
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


@pytest.fixture
def place(tmp_path) -> Path:
    """The folder of the skill in the agent's folder of skills."""
    return tmp_path / "home" / "skills" / "searchqa"


@pytest.fixture
def claude(place) -> dict[str, str]:
    """Surroundings in which Claude Code has that folder."""
    return {"CLAUDE_CONFIG_DIR": str(place.parent.parent)}


def by_hand(place: Path) -> None:
    """Put something at ``place`` that has everything that a copy could lose."""
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(f"---\nname: searchqa\ndescription: Mine.\n---\n\n# Mine {ESCAPE}\n")
    (place / "SKILL.md").chmod(0o600)
    (place / "empty").mkdir(mode=0o700)
    (place / "tool").write_bytes(b"\x7fELF\x00")
    (place / "tool").chmod(0o751)
    (place / "link").symlink_to("../somewhere")
    os.utime(place / "SKILL.md", (1_000_000, 1_000_000))
    place.chmod(0o705)


def test_the_folder_holds_the_files_of_the_version_and_nothing_else(trained, place, claude):
    told = skillgit("install", "v1", "--to", "claude", cwd=trained, env=claude)

    assert list(files_in(place)) == ["SKILL.md"]
    assert files_in(place)["SKILL.md"] == skillgit("show", "v1:SKILL.md", cwd=trained).bytes
    assert list(place.parent.iterdir()) == [place]
    assert told.out == f"{place} holds {RUN}/v1; back: skillgit uninstall --to {place}\n"
    assert told.err == ""
    assert git("status", "--porcelain", cwd=trained).out == ""


@pytest.mark.parametrize(
    ("typed", "meant"), [("cluade", "claude"), soak("Codex", "codex"), soak("co-pilot", "copilot")]
)
def test_a_misspelt_agent_makes_no_folder(trained, typed, meant):
    told = skillgit("install", "v1", "--to", typed, cwd=trained, code=ExitCode.USAGE)

    assert f"there is no agent and no folder '{typed}'" in told.err
    assert f"hint: did you mean '{meant}'? Agents are claude, codex, copilot, " in told.err
    assert told.err.endswith(f"a new folder is --to ./{typed}\n")
    assert not (trained / typed).exists()
    skillgit("install", "v1", "--to", f"./{typed}", cwd=trained)
    skillgit("install", "v1", "--to", typed, cwd=trained)
    assert [child.name for child in (trained / typed).iterdir()] == ["searchqa"]


def test_several_files_and_the_right_to_run_them_are_adopted(tmp_path, tmp_path_factory):
    repository = copy_folder(once(tmp_path_factory, "sums", sums_repository) / "repository", tmp_path / "r")
    skillgit("install", "main", "--to", tmp_path / "skills", cwd=repository)
    assert files_in(tmp_path / "skills" / NAME) == FILES
    assert programs_in(tmp_path / "skills" / NAME) == PROGRAMS


def test_nothing_is_asked_from_version_to_version_and_undo_goes_back_one_by_one(trained, place, claude):
    for version in ("v1", "v2", "v3"):
        skillgit("install", version, "--to", "claude", cwd=trained, env=claude)
    again = skillgit("install", "v3", "--to", "claude", cwd=trained, env=claude)
    assert again.out == f"{place} holds {RUN}/v3 already\n"

    for version in ("v2", "v1"):
        told = skillgit("uninstall", cwd=trained)
        assert told.out == f"{place} holds {RUN}/{version} again\n"
        assert files_in(place)["SKILL.md"] == skillgit("show", f"{version}:SKILL.md", cwd=trained).bytes
    assert skillgit("uninstall", cwd=trained).out == f"{place} holds nothing again\n"
    assert not place.parent.parent.exists(), "nobody else came into the folders that were made"
    assert "nothing that was installed" in skillgit("uninstall", cwd=trained, code=ExitCode.NOT_FOUND).err


def test_undo_brings_back_what_stood_there_to_the_last_bit(trained, place, claude):
    by_hand(place)
    before = read_entries(place)

    skillgit("install", "v1", "--to", "claude", "--yes", cwd=trained, env=claude)
    assert list(files_in(place)) == ["SKILL.md"]
    skillgit("uninstall", "--to", "claude", cwd=trained, env=claude)

    assert read_entries(place) == before
    assert (place / "SKILL.md").stat().st_mtime == 1_000_000
    assert list(place.parent.iterdir()) == [place]


def test_a_link_of_another_installer_is_replaced_and_what_it_leads_to_is_not(trained, place, claude):
    shared = place.parent.parent / "shared"
    by_hand(shared)
    place.parent.mkdir()
    place.symlink_to("../shared")
    before = read_entries(shared)

    refused = skillgit("install", "v1", "--to", "claude", cwd=trained, env=claude, code=ExitCode.CONFLICT)
    assert "gone: the link .\n" in refused.err
    skillgit("install", "v1", "--to", "claude", "-y", cwd=trained, env=claude)
    assert not place.is_symlink()
    assert read_entries(shared) == before
    skillgit("uninstall", cwd=trained)
    assert str(place.readlink()) == "../shared"


def test_a_pipe_is_shown_the_difference_and_refused(trained, place, claude):
    skillgit("install", "v1", "--to", "claude", cwd=trained, env=claude)
    with (place / "SKILL.md").open("a") as file:
        file.write(f"- Mine. {ESCAPE}\n")
    before = read_entries(place)

    refused = skillgit("install", "v2", "--to", "claude", cwd=trained, env=claude, code=ExitCode.CONFLICT)

    assert "\n-- Mine. ^[]0;owned^G\n" in refused.err
    assert ESCAPE not in refused.err
    assert "it was left as it is" in refused.err
    assert "hint: --yes replaces it" in refused.err
    assert read_entries(place) == before
    agreed = skillgit("install", "v2", "--to", "claude", "--yes", cwd=trained, env=claude)
    assert "-- Mine." in agreed.err, "the difference is shown though nobody is asked"
    assert f"instead of an edited {RUN}/v1" in agreed.out
    assert skillgit("uninstall", cwd=trained).out == f"{place} holds an edited {RUN}/v1 again\n"
    assert read_entries(place) == before


def test_undo_asks_before_it_gives_up_changes_by_hand(trained, place, claude):
    skillgit("install", "v1", "--to", "claude", cwd=trained, env=claude)
    (place / "mine.md").write_text("mine\n")

    refused = skillgit("uninstall", cwd=trained, code=ExitCode.CONFLICT)

    assert "-mine" in refused.err
    assert (place / "mine.md").read_text() == "mine\n"
    skillgit("uninstall", "--yes", cwd=trained)
    assert not place.exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", ExitCode.OK), ("n\n", ExitCode.CONFLICT)])
def test_a_terminal_is_asked(trained, place, claude, answer, code):
    by_hand(place)
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, answer.encode())
        done = subprocess.run(
            [*SKILLGIT, "install", "v1", "--to", "claude"],
            cwd=trained,
            env=surroundings(**claude),
            stdin=terminal,
            capture_output=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert done.returncode == code, done
    assert f"{place} was changed by hand. Replace it? [y/N]" in done.stderr.decode()
    assert ("Mine" in (place / "SKILL.md").read_text()) == (code != ExitCode.OK)


def test_the_list_tells_what_became_of_each_place(trained, tmp_path):
    events = json.loads(skillgit("log", "--json", cwd=trained).out)["events"]
    newest = f"v{max(event['version'] for event in events if event['version'] is not None)}"
    first, last = (skillgit("rev-parse", version, cwd=trained).out.strip() for version in ("v1", newest))
    for folder, version in (("a", "v1"), ("b", newest), ("c", "v1"), ("d", "v1")):
        skillgit("install", version, "--to", tmp_path / folder, cwd=trained)
    (tmp_path / "c/searchqa/SKILL.md").chmod(0o755)
    shutil.rmtree(tmp_path / "d")

    rows = json.loads(skillgit("install", "--list", "--json", cwd=trained).out)["places"]

    assert [(row["place"], row["name"], row["commit"], row["state"], row["newer"]) for row in rows] == [
        (str(tmp_path / "a/searchqa"), f"{RUN}/v1", first, "unchanged", f"{RUN}/{newest}"),
        (str(tmp_path / "b/searchqa"), f"{RUN}/{newest}", last, "unchanged", ""),
        (str(tmp_path / "c/searchqa"), f"{RUN}/v1", first, "changed by hand", f"{RUN}/{newest}"),
        (str(tmp_path / "d/searchqa"), f"{RUN}/v1", first, "gone", f"{RUN}/{newest}"),
    ]
    plain = skillgit("install", "--list", "--plain", cwd=trained).out.splitlines()
    assert [line.split("\t")[3] for line in plain] == ["unchanged", "unchanged", "changed by hand", "gone"]
    text = skillgit("install", "--list", cwd=trained).out
    assert f"unchanged        {tmp_path}/a/searchqa   newer: {RUN}/{newest}\n" in text
    several = skillgit("uninstall", cwd=trained, code=ExitCode.USAGE)
    assert f"hint: skillgit uninstall --to {tmp_path}/a/searchqa" in several.err
    skillgit("uninstall", "--to", tmp_path / "b/searchqa", cwd=trained)
    assert not (tmp_path / "b").exists()


def test_a_place_that_is_gone_can_be_adopted_to_again(trained, place, claude):
    skillgit("install", "v1", "--to", "claude", cwd=trained, env=claude)
    shutil.rmtree(place)
    skillgit("install", "v1", "--to", "claude", cwd=trained, env=claude)
    assert list(files_in(place)) == ["SKILL.md"]


def test_a_project_has_folders_of_its_own(trained, tmp_path):
    for agent, folder in (("claude", ".claude"), ("codex", ".agents"), ("copilot", ".github")):
        skillgit("install", "v1", "--to", agent, "--scope", "project", cwd=trained / "skills")
        assert (trained / folder / "skills/searchqa/SKILL.md").is_file()
        skillgit("uninstall", "--to", agent, "--scope", "project", cwd=trained)
        assert not (trained / folder).exists()
    git("clone", "-q", "--bare", trained, tmp_path / "bare.git", cwd=tmp_path)
    refused = skillgit("install", "HEAD", "--to", "codex", "--scope", "project", cwd=tmp_path / "bare.git", code=2)
    assert "an agent cannot work in a bare repository" in refused.err


def test_a_dry_run_tells_and_does_nothing(trained, place, claude):
    by_hand(place)
    before = read_entries(place)
    told = skillgit("install", "v1", "--to", "claude", "--dry-run", cwd=trained, env=claude)
    assert told.out.startswith(f"would put {RUN}/v1 at {place} instead of what did not come from here\ndiff --git")
    assert ESCAPE not in told.out
    assert read_entries(place) == before
    assert skillgit("install", "--list", cwd=trained).out == "nothing was installed from here\n"
    skillgit("install", "v1", "--to", "claude", "--yes", cwd=trained, env=claude)
    told = skillgit("uninstall", "-n", cwd=trained)
    assert told.out.startswith(f"would bring back what did not come from here to {place}\n")
    assert list(files_in(place)) == ["SKILL.md"]


def test_documents_name_what_was_there_before(trained, place, claude):
    by_hand(place)
    adopted = json.loads(skillgit("install", "v1", "--to", "claude", "-y", "--json", cwd=trained, env=claude).out)
    assert adopted["schema"] == "skillgit.adopt/1"
    assert (adopted["name"], adopted["place"], adopted["written"]) == (f"{RUN}/v1", str(place), True)
    assert adopted["before"] == {"name": "", "by_hand": True}
    assert [change["status"] for change in adopted["changes"]] == ["changed", "removed", "removed"]
    undone = json.loads(skillgit("uninstall", "--json", cwd=trained).out)
    assert (undone["name"], undone["restored"]) == (f"{RUN}/v1", {"name": "", "by_hand": True})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give either one REV or --list"),
        (("v1", "--to", "x", "--list"), "--list cannot be combined with --to"),
        (("v1",), "--to is missing: claude, codex, copilot or a folder of skills"),
        (("v1", "--to", "x", "--scope", "user"), "--scope needs an agent's name, and 'x' is a folder"),
        (("v1", "--to", "x", "--plain"), "needs --list"),
    ],
)
def test_what_makes_no_sense_is_refused(trained, words, said):
    assert said in skillgit("install", *words, cwd=trained, code=ExitCode.USAGE).err


def test_a_damaged_record_is_named_and_nothing_is_overwritten(trained, place, claude):
    skillgit("install", "v1", "--to", "claude", cwd=trained, env=claude)
    record = trained / ".git/skillgit/adopted/places.json"
    good = record.read_text()
    for text in ("{", "[]", good.replace("adopted/1", "adopted/2"), good.replace('"found"', '"fund"')):
        record.write_text(text)
        before = read_entries(place)
        for words in (("install", "v2", "--to", "claude", "--yes"), ("uninstall",), ("install", "--list")):
            refused = skillgit(*words, cwd=trained, env=claude, code=ExitCode.HISTORY)
            assert str(record) in refused.err
        assert read_entries(place) == before


def test_a_copy_that_is_gone_cannot_be_brought_back(trained, place, claude):
    by_hand(place)
    skillgit("install", "v1", "--to", "claude", "--yes", cwd=trained, env=claude)
    shutil.rmtree(trained / ".git/skillgit/adopted/kept")
    refused = skillgit("uninstall", cwd=trained, code=ExitCode.NOT_FOUND)
    assert "is missing from" in refused.err
    assert list(files_in(place)) == ["SKILL.md"]


def test_candidates_and_commits_are_called_as_people_read_them(trained, place, claude):
    rows = json.loads(skillgit("log", "--json", cwd=trained).out)["events"]
    name = next(f"{RUN}/r{row['step']}" for row in rows if row["kind"] == "rejected" and row["origin"] == "step")
    assert skillgit("install", name, "--to", "claude", cwd=trained, env=claude).out.startswith(
        f"{place} holds {name}; "
    )
    head = git("rev-parse", "main", cwd=trained).out.strip()
    done = skillgit("install", "main", "--to", "claude", cwd=trained, env=claude).out
    assert done.startswith(f"{place} holds {head[:7]} instead of {name}; ")
    assert skillgit("install", "--list", cwd=trained).out.startswith(f"{head[:7]}  unchanged  {place}")
    (row,) = json.loads(skillgit("install", "--list", "--json", cwd=trained).out)["places"]
    assert row["name"] == row["commit"] == head


def test_an_empty_place_is_refused_and_a_hint_with_spaces_works(trained, tmp_path):
    for words in (("install", "v1"), ("uninstall",)):
        refused = skillgit(*words, "--to", "", cwd=trained, code=ExitCode.USAGE)
        assert refused.err.startswith("skillgit: --to is empty\n")
    assert "is empty" in skillgit("export", "v1", "", cwd=trained, code=ExitCode.USAGE).err
    for folder in ("a b", "b c"):
        skillgit("install", "v1", "--to", tmp_path / folder, cwd=trained)
    refused = skillgit("uninstall", cwd=trained, code=ExitCode.USAGE)
    hint = shlex.split(refused.err.rpartition("hint: skillgit ")[2])
    assert skillgit(*hint, cwd=trained).out == f"{tmp_path / 'a b' / 'searchqa'} holds nothing again\n"
