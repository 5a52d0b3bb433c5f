from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from sample_run import RUN

from skillgit.app.deliver.export.folder import checkout
from skillgit.errors import ConflictError, RevisionNotFoundError, UsageError

RULE = "Answer in the unit the question asks for"


def test_a_version_comes_into_the_work_tree(context, repo, records):
    found = checkout(context, "v1")
    assert (found.row.version, found.commit) == (1, records[1].commit)
    assert "skills/demo/SKILL.md" in found.files
    assert RULE in (context.directory / "skills" / "demo" / "SKILL.md").read_text()
    assert repo.head() == ("", records[1].commit)


@pytest.mark.usefixtures("records")
def test_changes_are_not_overwritten(context):
    checkout(context, "v1")
    document = context.directory / "skills" / "demo" / "SKILL.md"
    document.write_text("mine")
    for paths in ((), ("skills/demo/SKILL.md",)):
        with pytest.raises(ConflictError) as caught:
            checkout(context, f"{RUN}/v0", paths)
        assert caught.value.hint
    assert document.read_text() == "mine"


def test_single_files_are_written_and_head_stays(context, repo, records):
    checkout(context, "v1")
    inside = replace(context, directory=context.directory / "skills" / "demo")
    found = checkout(inside, "v0", ("SKILL.md",))
    assert found.files == ("skills/demo/SKILL.md",)
    assert RULE not in (context.directory / "skills" / "demo" / "SKILL.md").read_text()
    assert repo.head() == ("", records[1].commit)


@pytest.mark.usefixtures("records")
def test_paths_that_are_not_there_or_outside_are_refused(context):
    with pytest.raises(RevisionNotFoundError):
        checkout(context, "v0", ("nothing.md",))
    with pytest.raises(UsageError, match="outside"):
        checkout(context, "v0", ("../SKILL.md",))


def on(repo, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repo.workdir, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.usefixtures("records")
def test_the_way_back_is_the_branch_that_was_left_however_many_versions_later(context, repo):
    on(repo, "switch", "-q", "-c", "mine", f"run/{RUN}")
    assert checkout(context, "v1").back == "mine"
    assert checkout(context, "v2").back == "mine"
    on(repo, "switch", "-q", "mine")
    assert repo.head()[0] == "mine"
    checkout(context, "v1")
    on(repo, "branch", "-q", "-D", "mine")
    assert checkout(context, "v2").back != "mine", "a branch that is gone is no way back"


@pytest.mark.usefixtures("records")
def test_a_branch_is_gone_to_and_a_run_is_a_version(context, repo):
    on(repo, "branch", "mine", f"{RUN}/v1")
    checkout(context, "v2")
    found = checkout(context, "mine")
    assert (found.branch, found.row.version) == ("mine", 1)
    assert repo.head()[0] == "mine"
    again = checkout(context, "mine")
    assert (again.branch, again.back, again.files) == ("mine", "", ())
    assert checkout(context, RUN).branch == ""
    assert repo.head()[0] == ""
