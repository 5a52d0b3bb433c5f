from __future__ import annotations

import json

from program import git, refs
from sample_run import RUN


def test_a_remote_is_named_shown_changed_and_forgotten(host, ann, tmp_path):
    ann("remote", "add", "backup", host.path)
    assert ann("remote").out == "backup\norigin\n"
    assert "there is a remote 'backup' already" in ann("remote", "add", "backup", host.path, code=4).err
    ann("remote", "set-url", "backup", tmp_path / "elsewhere")
    assert ann.git("remote", "get-url", "backup").strip() == str(tmp_path / "elsewhere")
    assert "there is no remote 'nobody'" in ann("remote", "set-url", "nobody", host.path, code=3).err
    assert "git says: " in ann("remote", "add", "no name", host.path, code=2).err
    assert "git says: " in ann("remote", "add", "x..y", host.path, code=2).err
    assert "'-x' cannot be the name of a remote" in ann("remote", "add", "--", "-x", host.path, code=2).err
    ann("remote", "remove", "backup")
    assert ann("remote").out == "origin\n"


def test_a_remote_that_is_forgotten_takes_the_copies_of_its_refs_along_and_nothing_else(ann):
    own = ann.own()
    ann.push("--evidence")
    ann("fetch", "--rejected", "--evidence")
    assert any(name.startswith("refs/skillgit/remotes/origin/") for name in refs(ann.path))
    ann("remote", "remove", "origin")
    assert refs(ann.path) == own


def test_a_remote_is_compared_with_what_is_here(host, ann, clone):
    def states(person) -> dict[str, str]:
        shown = json.loads(person("remote", "show", "--json").out)
        return {row["run"]: row["state"] for row in shown["runs"]}

    assert states(ann) == {RUN: "only-here"}
    ann.push()
    bob = clone("bob")
    bob("fork", f"{RUN}/best", "bobs")
    bob.push()
    assert states(ann) == {RUN: "same", "bobs": "only-there"}
    git("update-ref", f"refs/heads/run/{RUN}", f"refs/tags/{RUN}/v1", cwd=host.path)
    assert states(ann)[RUN] == "ahead"
