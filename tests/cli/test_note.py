from __future__ import annotations

import json
import os
import pty
import subprocess
from typing import TYPE_CHECKING

import pytest
from once import copy_folder, once
from program import QUICK, SKILLGIT, git, new_repository, refs, skillgit, surroundings
from trained_runs import RUN, small_run

from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "Answers must not repeat the clue."
ESCAPE = "\x1b]0;owned\x07"
TRAIN = ("train", "demo", "--run", "small", "--quiet", *QUICK)


@pytest.fixture
def trained(tmp_path_factory, tmp_path) -> Path:
    """A repository with a finished run."""
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


def noted(repository: Path, *words: str) -> list[dict[str, object]]:
    return json.loads(skillgit("note", "--list", *words, "--json", cwd=repository).out)["notes"]


def told(repository: Path, run: str) -> dict[str, list[str]]:
    """Return, for each step of a run, the notes that its evidence holds."""
    found = {}
    for line in skillgit("log", run, "--jsonl", cwd=repository).out.splitlines():
        event = json.loads(line)
        tree = event["evidence_tree"]
        if event["kind"] in {"accepted", "rejected", "skipped"} and tree:
            names = git("ls-tree", "--name-only", tree, cwd=repository).out.splitlines()
            held = (
                git("cat-file", "-p", f"{tree}:feedback.json", cwd=repository).out if "feedback.json" in names else "[]"
            )
            found[f"{event['kind']} {event['step']}"] = [row["text"] for row in json.loads(held)]
    return found


def test_a_note_is_listed_and_withdrawn(trained):
    done = skillgit("note", "v1", TEXT, cwd=trained)
    (row,) = noted(trained)
    assert done.out == f"note {row['id']} is on {RUN}/v1; undo: skillgit note --remove {row['id']}\n"
    assert (row["text"], row["row"]["version"], row["time"]) == (TEXT, 1, "2026-11-21T12:00:00Z")
    assert noted(trained, "v1") == noted(trained, RUN) == [row]
    assert noted(trained, "v2") == []
    cells = skillgit("note", "--list", "--plain", cwd=trained).out.rstrip("\n").split("\t")
    assert (cells[0], cells[1], cells[5]) == (row["id"], f"{RUN}/v1", TEXT)
    assert f"{row['id']}  {RUN}/v1" in skillgit("note", "--list", cwd=trained).out
    assert "no problems" in skillgit("fsck", cwd=trained).out

    skillgit("fork", "v1", "gone", cwd=trained)
    skillgit("note", "gone/v0", "A note outlives its run.", cwd=trained)
    for name in [name for name in refs(trained) if "/gone" in name]:
        git("update-ref", "-d", name, cwd=trained)
    assert noted(trained) == [row]

    gone = skillgit("note", "--remove", str(row["id"])[:4], cwd=trained)

    assert gone.out == f"note {row['id']} on {RUN}/v1 withdrawn: {TEXT}\n"
    assert noted(trained) == []
    assert skillgit("note", "--list", cwd=trained).out == "there are no notes\n"
    assert "there is no note" in skillgit("note", "--remove", str(row["id"]), cwd=trained, code=3).err


def test_a_rejected_candidate_can_be_noted_on(trained):
    rows = json.loads(skillgit("log", "--json", cwd=trained).out)["events"]
    name = f"{RUN}/r{next(row['step'] for row in rows if row['kind'] == 'rejected')}"
    assert f" is on {name}; " in skillgit("note", name, "Try this with units.", cwd=trained).out


def test_escapes_are_shown_and_credentials_are_masked(trained):
    key = "sk-ant-" + "a1B2" * 12
    for secret in (
        "hvs." + "Q7mX2kR9vL4pT8wZ1cN6bH3jF5",
        "the password is Gr4nite-moss-77",
        "ntn_12345678901" + "a1B2c" * 7,
    ):
        text = f"use {secret} there"
        assert (
            skillgit("note", "v1", text, cwd=trained).err == "something in it looked like a credential and was masked\n"
        )
        assert secret.split()[-1] not in git("notes", "--ref=skillgit/evals", "show", "small/v1", cwd=trained).out
    done = skillgit("note", "v1", f"Use {key} {ESCAPE}", cwd=trained)
    assert done.err == "something in it looked like a credential and was masked\n"
    listed = skillgit("note", "--list", cwd=trained).out
    assert ESCAPE not in listed
    assert "^[]0;owned^G" in listed
    assert key not in git("notes", "--ref=skillgit/evals", "show", "small/v1", cwd=trained).out


def test_text_may_come_from_stdin(trained):
    done = subprocess.run(
        [*SKILLGIT, "note", "v1", "-"],
        cwd=trained,
        env=surroundings(),
        input=b"one\ntwo\n",
        check=True,
        capture_output=True,
    )
    assert b" is on small/v1" in done.stdout
    assert noted(trained)[0]["text"] == "one\ntwo"


def test_without_a_text_a_terminal_opens_the_editor(trained, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "from the editor\\n" > "$1"\n')
    editor.chmod(0o755)
    keyboard, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [*SKILLGIT, "note", "v1"],
            cwd=trained,
            env=surroundings(EDITOR=str(editor), VISUAL=str(editor)),
            stdin=terminal,
            check=False,
            capture_output=True,
            timeout=60,
        )
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert done.returncode == 0, done
    assert noted(trained)[0]["text"] == "from the editor"


def test_what_cannot_be_noted_is_refused_in_one_sentence(trained):
    before = refs(trained)
    for words, code, sentence in (
        ((), ExitCode.USAGE, "give either REV and TEXT, --list or --remove ID"),
        (("v1",), ExitCode.USAGE, "give TEXT, or - to read it from stdin"),
        (("v1", " \n"), ExitCode.USAGE, "a note without a text says nothing"),
        (("v1", "x" * 4001), ExitCode.USAGE, "has 4001 characters, and 4000 are allowed"),
        (("v99", "x"), ExitCode.NOT_FOUND, "has no v99"),
        (("main", "x"), ExitCode.NOT_FOUND, "belongs to no run"),
        (("v1", "x", "--list"), ExitCode.USAGE, "TEXT cannot be combined with --list"),
        (("v1", "x", "--plain"), ExitCode.USAGE, "--plain needs --list"),
        (("--remove", ""), ExitCode.USAGE, "--remove is empty"),
    ):
        assert sentence in skillgit("note", *words, cwd=trained, code=code).err
    assert refs(trained) == before


@pytest.fixture(scope="module")
def halfway(tmp_path_factory) -> Path:
    """A repository whose run stopped at a cap, with a note after that."""

    def fill(folder: Path) -> None:
        repository = new_repository(folder / "repository")
        skillgit(*TRAIN, "--max-calls", "110", cwd=repository, code=ExitCode.BUDGET)
        skillgit("note", "small", TEXT, cwd=repository)

    return once(tmp_path_factory, "noted", fill) / "repository"


@pytest.mark.slow
def test_later_steps_are_told_and_a_stop_between_them_changes_nothing(halfway, tmp_path):
    straight, stopped = (copy_folder(halfway, tmp_path / name) for name in ("straight", "stopped"))
    before = told(straight, "small")

    skillgit(*TRAIN, cwd=straight)
    skillgit(*TRAIN, "--max-calls", "180", cwd=stopped, code=ExitCode.BUDGET)
    skillgit(*TRAIN, cwd=stopped)

    after = told(straight, "small")
    later = {step: notes for step, notes in after.items() if step not in before}
    assert before
    assert not any(before.values())
    assert later
    assert all(notes == [TEXT] for notes in later.values())
    assert refs(stopped) == refs(straight)
    assert "all came out as recorded" in skillgit("fsck", "small", "--deep", cwd=straight).out


@pytest.mark.slow
def test_a_run_that_begins_at_a_version_hears_what_was_said_of_it(trained):
    skillgit("note", "v1", TEXT, cwd=trained)
    skillgit("note", "v2", "Not for those who begin at v1.", cwd=trained)
    gone = skillgit("note", "v1", "Withdrawn.", cwd=trained).out.split()[1]
    skillgit("note", "--remove", gone, cwd=trained)

    skillgit("train", "demo", "--run", "again", "--from", "small/v1", "-q", *QUICK, cwd=trained)

    assert set(map(tuple, told(trained, "again").values())) == {(TEXT,)}
    document = json.loads(skillgit("log", "again", "--json", cwd=trained).out)
    assert document["events"][-1]["version"] == 0
    (seed, source) = (
        git("show", f"{name}:skills/searchqa/SKILL.md", cwd=trained).out for name in ("again/v0", "small/v1")
    )
    assert seed == source


def test_show_tells_the_notes_that_count(trained):
    skillgit("note", "v1", f"{TEXT}\nTwice. {ESCAPE}", cwd=trained)
    skillgit("note", "v1", "Not this.", cwd=trained)
    withdrawn, counting = sorted(noted(trained), key=lambda row: str(row["text"]).startswith(TEXT))
    gone = skillgit("note", "--remove", str(withdrawn["id"]), cwd=trained)
    assert gone.out == f"note {withdrawn['id']} on {RUN}/v1 withdrawn: Not this.\n"

    shown = skillgit("show", "v1", cwd=trained).out
    assert "\nnoted   " in shown
    assert counting["id"] in shown
    assert withdrawn["id"] not in shown
    assert "\x1b" not in shown
    (told_,) = json.loads(skillgit("show", "v1", "--json", cwd=trained).out)["feedback"]
    assert told_["text"] == counting["text"]
    assert "noted" not in skillgit("show", "v0", cwd=trained).out


def test_a_long_note_that_is_withdrawn_is_told_shortened_and_the_hint_of_a_wrong_id_works(trained):
    skillgit("note", "v1", "word " * 700, cwd=trained)
    (row,) = noted(trained)
    assert len(skillgit("note", "--remove", row["id"], cwd=trained).out) < 200
    refused = skillgit("note", "--remove", "zzz", cwd=trained, code=ExitCode.NOT_FOUND)
    hint = refused.err.rpartition("hint: skillgit ")[2].split()
    skillgit(*hint, cwd=trained)
