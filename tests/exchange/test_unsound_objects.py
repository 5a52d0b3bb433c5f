"""Objects are checked as they arrive: what git would not check out does not come in, and old mistakes do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hosts import Person
from program import attempt, git
from pygit2.enums import ObjectType
from soaking import sampled

from skillgit.app.exchange.pull import clone
from skillgit.app.workspace.context import Context
from skillgit.store.repo import Repo

SOUND = "author A <a@b> 1700000000 +0000"
MISTAKES = (
    "author A <a@b>1700000000 +0000",
    "author <a@b> 1700000000 +0000",
    "author A <a@b> 01700000000 +0000",
    "author A <a@b> 1700000000 +99999",
)
"""Of programs of twenty years."""


def stranger(folder, names: list[bytes], author: str = SOUND, mode: str = "100644") -> Repo:
    """Make a repository whose only commit is written as it is given."""
    repo = Repo.init(folder)
    blob = repo.raw.create_blob(b"x\n")
    raw = b"".join(b"%s %s\0%s" % (mode.encode(), name, blob.raw) for name in names)
    root = repo.raw.write(ObjectType.TREE, raw)
    text = f"tree {root}\n{author}\ncommitter A <a@b> 1700000000 +0000\n\nx\n".encode()
    written = subprocess.run(
        ["git", "-C", folder, "hash-object", "-t", "commit", "--literally", "-w", "--stdin"],
        input=text,
        capture_output=True,
        check=True,
    )
    git("update-ref", "refs/heads/main", written.stdout.decode().strip(), cwd=folder)
    return repo


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ([b".."], "contains '..'"),
        ([b"."], "contains '.'"),
        ([b".git"], "contains '.git'"),
        ([b"GIT~1"], "contains '.git'"),
        ([".g\u200cit".encode()], "contains '.git'"),
        ([b"../../x"], "contains full pathnames"),
        ([b"/abs"], "contains full pathnames"),
        ([b"a", b"a"], "contains duplicate file entries"),
    ],
    ids=repr,
)
def test_trees_that_lead_elsewhere_do_not_come_in(tmp_path, names, what):
    stranger(tmp_path / "theirs", names)
    mine = Repo.init(tmp_path / "mine")
    git("remote", "add", "origin", "../theirs", cwd=mine.workdir)
    someone = Person(tmp_path)

    for done in (
        someone("clone", "theirs", "copy", code=5),
        *(_in(mine, *words) for words in (("pull", "--dry-run"), ("pull",))),
    ):
        assert "has an object that is not let in: " in done.err
        assert f" {what}\nhint: " in done.err
    assert not (tmp_path / "copy").exists()
    assert git("count-objects", cwd=mine.workdir).out.startswith("0 objects")
    assert git("for-each-ref", cwd=mine.workdir).out == ""


def _in(repo: Repo, *words: str):
    return Person(repo.workdir)(*words, code=5)


@pytest.mark.parametrize("author", MISTAKES)
def test_old_mistakes_that_hurt_nobody_come_in(tmp_path, author):
    stranger(tmp_path / "theirs", [b"a"], author)

    Person(tmp_path)("clone", "theirs", "copy")

    assert (tmp_path / "copy" / "a").read_text() == "x\n"


def test_modes_with_a_zero_in_front_come_in(tmp_path):
    stranger(tmp_path / "theirs", [b"a"], mode="0100644")

    Person(tmp_path)("clone", "theirs", "copy")


def test_reading_starts_no_program_that_the_repository_names(tmp_path, ann):
    """An archive of a repository brings its configuration, its hooks and its attributes along."""
    place, owned = ann.path, tmp_path / "owned"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {owned}\ncat\n')
    program.chmod(0o755)
    for key in (
        *("core.fsmonitor", "core.pager", "core.editor", "diff.external", "diff.markdown.textconv", "gpg.program"),
        *("diff.markdown.command", "filter.x.clean", "filter.x.smudge", "core.alternateRefsCommand", "pager.log"),
    ):
        git("config", key, str(program), cwd=place)
    git("config", "log.showSignature", "true", cwd=place)
    hooks = place / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "pre-push"):
        (hooks / name).symlink_to(program)
    (place / ".git" / "info" / "attributes").write_text("*.md diff=markdown filter=x\n")

    for words in (
        *(("log", "-p"), ("show", "v1"), ("diff", "v0", "v1"), ("diff", "v0", "v1", "--stat"), ("blame", "v1")),
        *(
            ("fsck",),
            ("runs",),
            ("status",),
            ("show", "v1:SKILL.md"),
            ("report", "--output", "-"),
            ("pull", "--dry-run"),
            ("export", "v1", "out"),
        ),
    ):
        attempt(*words, cwd=place, env=ann.env)
        assert not owned.exists(), (words, owned.read_text())


ODD_DATES = ("99999999999999", "18446744073709551615", "99999999999999999999999", "-5", "x")


@pytest.mark.parametrize("date", sampled(ODD_DATES, 4))
def test_an_odd_commit_on_main_ends_nothing_and_fsck_names_it(tmp_path, ann, date):
    """Runs, releases and notes have nothing to do with what somebody commits to main with another program."""
    Person(tmp_path)("clone", "--evidence", str(ann.path), "early")
    odd = _odd_commit(ann.path, date)
    git("update-ref", "refs/heads/main", odd, cwd=ann.path)

    Person(tmp_path)("clone", "--evidence", str(ann.path), "late")
    Person(tmp_path / "early")("pull")

    for name in ("early", "late"):
        copy = Person(tmp_path / name)
        assert git("rev-parse", "main", cwd=copy.path).out.strip() == odd
        assert copy.own() == ann.own()
        assert copy("pull").code == 0
        assert f"main: commit {odd[:12]} " in copy("fsck").out


def test_an_encoding_that_nobody_knows_is_no_fault_of_main(tmp_path, ann):
    git("update-ref", "refs/heads/main", _odd_commit(ann.path, "1700000000", "encoding klingon\n"), cwd=ann.path)

    Person(tmp_path)("clone", str(ann.path), "copy")

    assert Person(tmp_path / "copy")("fsck").out.endswith("no problems\n")


def _odd_commit(folder, date: str, header: str = "") -> str:
    """Write a commit after main, dated and encoded as nobody does; return its id."""
    parent = git("rev-parse", "main", cwd=folder).out.strip()
    tree = git("rev-parse", "main^{tree}", cwd=folder).out.strip()
    signed = f"A <a@b> {date} +0000"
    text = f"tree {tree}\nparent {parent}\nauthor {signed}\ncommitter {signed}\n{header}\nx\n"
    command = ["git", "-C", folder, "hash-object", "-t", "commit", "--literally", "-w", "--stdin"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode().strip()


@pytest.mark.parametrize("there", [False, True], ids=["no folder", "an empty folder"])
@pytest.mark.parametrize("names", [[b"n" * 300], [b"a", b"n" * 300]], ids=["alone", "beside others"])
def test_a_file_that_cannot_be_checked_out_is_named_and_leaves_nothing(tmp_path, names, there):
    stranger(tmp_path / "theirs", names)
    if there:
        (tmp_path / "copy").mkdir()

    done = Person(tmp_path)("clone", "theirs", "copy", code=5)

    assert "has a file that cannot be checked out here, 'nnn" in done.err
    assert "': file name too long\nhint: " in done.err
    assert "git clone --no-checkout" in done.err
    assert (list((tmp_path / "copy").iterdir()) == []) if there else not (tmp_path / "copy").exists()


@pytest.mark.parametrize("step", ["pull", "check_out_trunk"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_whatever_ends_a_clone_leaves_nothing(tmp_path, monkeypatch, step, error):
    """Git has done its part by then."""
    stranger(tmp_path / "theirs", [b"a"])

    def failing(*_arguments, **_options):
        assert (tmp_path / "copy" / "a").exists()
        raise error

    monkeypatch.setattr(f"skillgit.app.exchange.pull.{step}", failing)
    with pytest.raises(error):
        clone(Context.from_process(tmp_path), "theirs", Path("copy"))
    assert not (tmp_path / "copy").exists()
