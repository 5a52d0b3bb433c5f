"""An object that is cut short, at whatever length, is an error and never a wait without an end."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sample_run import RUN

from skillgit.store import refs

READ = """
import sys
from pathlib import Path

import pygit2

from skillgit.store.repo import Repo

repo = Repo.discover(Path(sys.argv[1]))
for read in (repo.raw.get, repo.raw.__getitem__, repo.raw.odb.read):
    try:
        read(pygit2.Oid(hex=sys.argv[2]))
    except pygit2.GitError:
        continue
    else:
        raise AssertionError("it is read")
"""


def objects(git):
    """Return one object of each kind."""
    git("-c", "user.name=a", "-c", "user.email=a@b", "tag", "-m", "annotated", "one", refs.run_branch(RUN))
    names = {"commit": refs.run_branch(RUN), "tree": f"{refs.run_branch(RUN)}^{{tree}}", "tag": "refs/tags/one"}
    found = {kind: git("rev-parse", name).strip() for kind, name in names.items()}
    return found | {"blob": git("rev-parse", f"{refs.run_branch(RUN)}:.gitattributes").strip()}


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("kind", ["commit", "tree", "blob", "tag"])
def test_an_object_that_is_cut_short_is_an_error(kind, repo, git):
    oid = objects(git)[kind]
    path = repo.common_dir / "objects" / oid[:2] / oid[2:]
    whole = path.read_bytes()
    path.chmod(0o644)
    for length in sorted({0, 1, 2, 3, 9, len(whole) // 2, len(whole) - 5, len(whole) - 1}):
        path.write_bytes(whole[:length])
        command = [sys.executable, "-c", READ, repo.workdir, oid]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (length, done.stderr)


@pytest.mark.usefixtures("history")
def test_whole_objects_are_read_as_git_reads_them(repo, git):
    for kind, oid in objects(git).items():
        size = int(git("cat-file", "-s", oid))
        found, content = repo._loose.read_cb(oid)
        assert (found.name.lower(), len(content)) == (kind, size)
        assert repo._loose.read_header_cb(oid) == (found, size)
        assert repo.raw[oid].type_str == kind
