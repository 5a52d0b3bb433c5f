"""A stranger's repository: what it names is neither run nor read nor written here, whichever command looks at it."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from hosts import Host, Person
from once import copy_folder
from program import QUICK, attempt, git, new_repository, refs

if TYPE_CHECKING:
    from pathlib import Path

RUN = "demo"
SHORT = (*QUICK, "-o", "train.num_epochs=1")
COMMIT = ("-c", "user.name=mallory", "-c", "user.email=mallory@localhost", "commit")
MEASURING = (
    ("eval", f"{RUN}/v0"),
    ("eval", "--fresh", "--sample", "5", f"{RUN}/v0"),
    ("eval", "--fresh", f"{RUN}/v0"),
    ("gate", "--base", "main", "--head", f"origin/run/{RUN}"),
    ("items", f"{RUN}/v0..run/{RUN}", "--measure", "--item", "t1"),
    ("ablate", f"{RUN}/v0"),
    ("shorten", RUN),
    ("shorten", RUN, "--words"),
)
"""Commands that measure as a run did unless the user names a configuration."""


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a repository whose run runs a program of its own on whoever measures it, and the mark that it leaves."""
    folder = tmp_path_factory.mktemp("trap")
    mark = folder / "mark"
    path = new_repository(folder / "mallory")
    check = {"type": "command", "command": ["sh", "-c", f"touch {mark}"]}
    rows = [
        {"id": f"t{number}", "prompt": f"Say {number}.", "check": check, "split": split}
        for number, split in enumerate(["train", "selection", "test"] * 4)
    ]
    (path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    git("add", "tasks.jsonl", cwd=path)
    git(*COMMIT, "-qm", "tasks", cwd=path)
    quick = ("-o", "train.num_epochs=1", "-o", "optimizer.use_slow_update=false")
    data = ("-o", "env.data_path=tasks.jsonl", "-o", "env.sandbox=none", "-o", "env.limit=4")
    Person(path)("train", "tasks/default", "--run", RUN, *data, *quick)
    assert mark.exists(), "its own maker runs it"
    mark.unlink()
    git("checkout", "-q", f"run/{RUN}", cwd=path)
    (document,) = path.glob("skills/*/SKILL.md")
    document.write_text(f"{document.read_text()}\nSay it twice.\n")
    git(*COMMIT, "-qam", "by hand", cwd=path)
    git("checkout", "-q", "main", cwd=path)
    return path, mark


@pytest.fixture
def victim(trap: tuple[Path, Path], host: Host, tmp_path: Path) -> Person:
    """Somebody who has cloned that repository with everything that it holds."""
    mallory = Person(trap[0])
    if "origin" not in mallory.git("remote"):
        mallory.git("remote", "add", "origin", str(host.path))
    mallory.git("remote", "set-url", "origin", str(host.path))
    mallory.push("--evidence", "--no-verify")
    Person(tmp_path)("clone", "--evidence", host.path, "victim")
    return Person(tmp_path / "victim")


@pytest.mark.parametrize("words", MEASURING, ids=lambda words: words[0])
def test_a_stranger_s_configuration_runs_nothing(trap, victim, words):
    done = victim(*words, code=2)
    assert f"run {RUN} was trained elsewhere, and its configuration sets env.data_path, env.sandbox" in done.err
    assert "--config" in done.err
    assert not trap[1].exists()


def test_a_file_of_a_stranger_s_is_no_configuration_that_nobody_named(trap, victim):
    (victim.path / "evil.py").write_text(
        f"open({str(trap[1])!r}, 'w')\nfrom skillgit_envs.tasks import Tasks as Evil\n"
    )
    (victim.path / "tasks").mkdir()
    (victim.path / "tasks/default.yaml").write_text("env: {name: ../evil.py:Evil}\n")
    (skill,) = victim.path.glob("skills/*")
    shutil.copy(victim.path / "tasks.jsonl", victim.path / f"tasks/{skill.name}.jsonl")
    for words in (
        ("propose", "--dry-run"),
        ("tasks", "draft", skill, "-f", "more.jsonl", "--dry-run"),
        ("tasks", "draft", skill.name, "--from", "sessions", "--rubric", "--dry-run"),
    ):
        done = attempt(*words, cwd=victim.path)
        assert "Traceback" not in done.err
    assert not trap[1].exists()


def test_a_fork_of_a_stranger_s_run_is_as_much_a_stranger_s(trap, victim):
    victim("fork", f"{RUN}/v0", "mine")
    assert "was trained elsewhere" in victim("eval", "mine/v0", code=2).err
    assert not trap[1].exists()


def test_trust_is_in_the_commit_that_began_a_run_not_in_its_name(trap, victim, tmp_path):
    """The recipe for diverged runs leaves the name of one's own run to a stranger's."""
    ann = Person(new_repository(tmp_path / "ann"))
    ann("train", "demo", "--run", RUN, *SHORT)
    own = ann.git("rev-parse", f"{RUN}/v0")
    for name in refs(ann.path):
        if f"/{RUN}" in name:
            ann.git("update-ref", "-d", name)
    ann.git("remote", "add", "origin", str(victim.git("remote", "get-url", "origin").strip()))
    ann("pull", "--evidence")
    assert ann.git("rev-parse", f"{RUN}/v0") != own
    ann.git("checkout", "-q", "origin/main")
    assert (ann.path / "tasks.jsonl").exists()
    assert "was trained elsewhere" in ann("eval", f"{RUN}/v0", code=2).err
    assert not trap[1].exists()


def test_the_pace_of_one_s_own_run_is_kept_here_and_not_in_its_commits(tmp_path):
    """What a run was told of this machine counts when its versions are measured, and changes no commit."""
    ends = []
    for name, pace in (("one", "3"), ("other", "5")):
        path = new_repository(tmp_path / name)
        Person(path)("train", "demo", "--run", RUN, *SHORT, "-o", f"calls.concurrency={pace}")
        ends.append(git("rev-parse", f"run/{RUN}", cwd=path).out)
        (note,) = (path / ".git/skillgit/own").iterdir()
        assert json.loads(note.read_text())["local"]["calls.concurrency"] == int(pace)
    assert ends[0] == ends[1]


def test_fsck_says_what_a_stranger_s_run_would_set_and_calls_it_no_damage(victim):
    done = victim("fsck")
    assert re.search(rf"^{RUN}  \w+: remark: ", done.out, re.MULTILINE)
    assert "began elsewhere, and its configuration sets env.data_path, env.sandbox, which only you may set" in done.out
    assert "no problems, 1 remark" in done.out


def test_a_folder_from_elsewhere_brings_no_marks_no_answers_and_no_record(trap, tmp_path):
    """A tarball of a repository has its maker's whole ``.git`` in it."""
    copy_folder(trap[0], tmp_path / "unpacked")
    person = Person(tmp_path / "unpacked")
    state = {"XDG_STATE_HOME": str(tmp_path / "state-of-the-victim")}
    done = person("eval", f"{RUN}/v0", code=2, **state)
    assert "was trained elsewhere" in done.err
    assert not trap[1].exists()
    told = person("fsck", **state).out
    assert "skillgit-elsewhere is another user's or another machine's and is not used" in told
    assert not (person.path / ".git/skillgit/ledger.db").exists()
    assert "nothing was installed" in person("install", "--list", **state).out
