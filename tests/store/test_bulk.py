from __future__ import annotations

import zlib

import pygit2
import pytest

from skillgit.store.history_reader import bulk_reading
from skillgit.store.repo import Repo


def swapped(repo):
    """Return the id of an object whose file says something else."""
    oid = repo.raw.create_blob(b"one")
    path = repo.common_dir / "objects" / str(oid)[:2] / str(oid)[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 3\0two"))
    return oid


def test_objects_are_hashed_but_for_bulk_reading(tmp_path):
    oid = swapped(Repo.init(tmp_path))

    def content():
        # a repository that is open remembers what it has read
        return Repo.discover(tmp_path).raw[oid].data

    with bulk_reading():
        assert content() == b"two"
    with pytest.raises(pygit2.GitError, match="hash"):
        content()


def test_an_error_ends_bulk_reading(tmp_path):
    oid = swapped(Repo.init(tmp_path))

    with pytest.raises(RuntimeError), bulk_reading():
        raise RuntimeError

    with pytest.raises(pygit2.GitError, match="hash"):
        _ = Repo.discover(tmp_path).raw[oid].data
