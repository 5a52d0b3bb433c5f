"""Objects are checked as they arrive: what git would not check out does not come in, and old mistakes do."""

from __future__ import annotations

import subprocess

import pytest
from hosts import Person
from program import attempt, git
from pygit2.enums import ObjectType

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

    for done in (someone("clone", "theirs", "copy", code=5), *(_in(mine, word) for word in ("fetch", "pull"))):
        assert "has an object that is not let in: " in done.err
        assert f" {what}\nhint: " in done.err
    assert not (tmp_path / "copy").exists()
    assert git("count-objects", cwd=mine.workdir).out.startswith("0 objects")
    assert git("for-each-ref", cwd=mine.workdir).out == ""


def _in(repo: Repo, word: str):
    return Person(repo.workdir)(word, code=5)


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
            ("cat", "v1"),
            ("report", "-o", "-"),
            ("fetch",),
            ("export", "v1", "--to", "out"),
        ),
    ):
        attempt(*words, cwd=place, env=ann.env)
        assert not owned.exists(), (words, owned.read_text())
