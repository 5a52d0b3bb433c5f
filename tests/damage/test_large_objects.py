"""What git packs into a few kilobytes and unpacks into gigabytes is told by its size, before any of it is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from program import git, skillgit, surroundings
from sample_run import PATH, RUN, write_run
from soaking import soak

from skillgit.domain.untrusted.file_names import DEPTH

MOST_RSS = 130 << 20
"""Bytes of memory for a command; an empty repository takes some 60 MB."""
MEASURED = """
import resource, subprocess, sys
code = subprocess.run([sys.executable, "-m", "skillgit", *sys.argv[1:]]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, file=sys.stderr)
sys.exit(code)
"""
COMMANDS = (("runs",), ("status",), ("show", RUN), ("blame", RUN), ("diff", f"run/{RUN}~1", f"run/{RUN}"), ("fsck",))


def measured(repository: Path, *words: str) -> tuple[int, str, int]:
    """Return how a command ended, what it said, and the most memory that it had."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words], cwd=repository, env=surroundings(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    *said, peak = done.stderr.splitlines()
    return done.returncode, "\n".join([done.stdout, *said]), int(peak)


def stored(repository: Path, content: bytes) -> str:
    done = subprocess.run(
        ["git", "-c", "core.looseCompression=1", "hash-object", "-w", "--stdin"], cwd=repository, input=content,
        capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout.decode().strip()


def folder_of(repository: Path, rows: list[str]) -> str:
    made = subprocess.run(
        ["git", "mktree"], cwd=repository, input="\n".join([*rows, ""]), capture_output=True, text=True, check=True
    )
    return made.stdout.strip()


def committed(repository: Path, skill: str) -> None:
    """Put a commit that no event made, with the tree ``skill`` as the skill's folder, on the run's line."""
    for name in reversed(PATH.split("/")):
        skill = folder_of(repository, [f"040000 tree {skill}\t{name}"])
    words = ("-c", "user.name=a", "-c", "user.email=a@localhost", "commit-tree", "-p", f"run/{RUN}", "-m", "x", skill)
    commit = git(*words, cwd=repository).out.strip()
    git("update-ref", f"refs/heads/run/{RUN}", commit, cwd=repository)


@pytest.fixture
def repository(repo) -> Path:
    write_run(repo)
    return repo.workdir


def document(repository: Path) -> str:
    return git("rev-parse", f"run/{RUN}:{PATH}/SKILL.md", cwd=repository).out.strip()


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [130, soak(400)])
@pytest.mark.parametrize("name", ["SKILL.md", soak("notes.md"), soak("picture.png")])
def test_a_large_text_takes_no_memory(repository, name, megabytes):
    rows = {"SKILL.md": document(repository), name: stored(repository, b"a" * (megabytes << 20))}
    skill = folder_of(repository, [f"100644 blob {oid}\t{path}" for path, oid in rows.items()])
    committed(repository, skill)
    for words in COMMANDS:
        code, said, peak = measured(repository, *words)
        assert "Traceback" not in said
        assert peak < MOST_RSS, (words, peak)
        assert (code, "MiB" in said) == (code, True), (words, said)
        assert (code != 0) == (words != ("runs",)), (words, said)


@pytest.mark.parametrize("place", ["notes", "evidence"])
def test_a_large_note_and_a_large_file_of_evidence_are_named(repository, place):
    blob = stored(repository, b"a" * ({"notes": 9, "evidence": 70}[place] << 20))
    if place == "notes":
        tip = git("rev-parse", f"run/{RUN}", cwd=repository).out.strip()
        words = ("-c", "user.name=a", "-c", "user.email=a@localhost", "notes", "--ref=skillgit/evals")
        git(*words, "add", "-C", blob, tip, cwd=repository)
        assert skillgit("runs", cwd=repository).code == 0
        assert "its note is larger than 8 MiB" in skillgit("fsck", cwd=repository, code=1).out
    else:
        root = folder_of(repository, [f"100644 blob {blob}\tconfig.json"])
        assert skillgit("show", root, cwd=repository, code=3).err


def test_deep_folders_and_many_files_are_a_sentence(repository):
    blob = stored(repository, b"x")
    nest = folder_of(repository, [f"100644 blob {blob}\tx"])
    for _ in range(DEPTH + 20):
        nest = folder_of(repository, [f"040000 tree {nest}\td"])
    many = folder_of(repository, [f"100644 blob {blob}\tf{number}" for number in range(10_500)])
    for name, inside in (("deep", nest), ("many", many)):
        rows = [f"100644 blob {document(repository)}\tSKILL.md", f"040000 tree {inside}\t{name}"]
        committed(repository, folder_of(repository, sorted(rows, key=lambda row: row.partition("\t")[2])))
    done = skillgit("fsck", cwd=repository, code=1)
    assert "more than 10000 files" in done.out
    assert "more than 10000 files" in skillgit("install", RUN, "--to", "out", cwd=repository, code=6).err


@pytest.mark.parametrize("words", [("install", "--list", "deep/demo"), ("install", "--to", "deep", RUN)])
def test_deep_folders_on_disk_are_a_sentence(repository, words):
    place = repository / "deep" / "demo"
    for _ in range(DEPTH + 2):
        place = place / "d"
    place.mkdir(parents=True)
    (repository / "deep" / "demo" / "SKILL.md").write_text("---\nname: deep\ndescription: Use when x.\n---\n# x\n")
    assert f"nested more than {DEPTH} levels deep" in skillgit(*words, cwd=repository, code=4).err
