"""Commits whose header names a codec: the words of a stranger choose none of ours."""

from __future__ import annotations

import subprocess

import pytest
from sample_run import RUN, write_run

from skillgit.store.history_reader import read_run
from skillgit.store.repo import Repo, message_of


@pytest.mark.parametrize(
    "codec", ["punycode", "idna", "rot13", "zlib", "hex", "unicode_escape", "utf-16", "no-such", "x\0y"]
)
def test_a_message_is_utf_8_whatever_its_header_says(tmp_path, codec):
    repo = Repo.init(tmp_path / "repository")
    write_run(repo)
    last = read_run(repo, RUN)[-1].commit
    before = message_of(repo.commit(last))
    raw = bytes(repo.raw[last].read_raw())
    head, _, body = raw.partition(b"\n\n")
    forged = head + b"\nencoding " + codec.encode() + b"\n\n" + body + b"a" * 100_000 + b"\n"
    command = ["git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin"]
    done = subprocess.run(command, cwd=repo.workdir, input=forged, capture_output=True, check=True)
    commit = repo.commit(done.stdout.decode().strip())
    assert message_of(commit).startswith(before)
