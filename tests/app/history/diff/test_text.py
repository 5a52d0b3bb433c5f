from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import count

import pytest
from asking import ask
from sample_run import PATH, RUN, clock_from, started

from skillgit.app.history.diff.items import items
from skillgit.app.history.diff.rules import rule_diff
from skillgit.app.history.diff.stat import stat
from skillgit.app.history.diff.text import diff
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError
from skillgit.index import queries
from skillgit.store import history_reader
from skillgit.store.event_writer import RunWriter


def git(folder, *arguments, stdin=b""):
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True, input=stdin).stdout


@pytest.fixture
def plain(repo, records):
    """A commit of a person with the text of v0, which is no event."""
    author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return git(repo.workdir, *author, "commit-tree", f"{records[0].commit}^{{tree}}", "-m", "x").decode().strip()


@pytest.mark.usefixtures("records")
def test_text_is_what_git_prints(context, repo):
    found = ask(diff, context, "v0", "v3")
    assert found.text == git(repo.workdir, "diff", f"{RUN}/v0", f"{RUN}/v3", "--", PATH)
    assert found.text == git(repo.workdir, "diff", f"{RUN}/v0", f"{RUN}/v3")
    assert b"+- Quote the span that you rely on." in found.text
    assert (found.a.version, found.b.version) == (0, 3)
    assert found.files == ()
    same = ask(diff, context, "v1", "v1", as_data=True)
    assert (same.text, same.files) == (b"", ())


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("options", [(), ("-U0",), ("-U1",), ("--word-diff=plain",)])
def test_options_mean_what_they_mean_to_git(options, context, repo):
    lines = int(options[0][2:]) if options and options[0].startswith("-U") else None
    found = ask(diff, context, "v0", "v3", lines=lines, words="--word-diff=plain" in options)
    assert found.text == git(repo.workdir, "diff", *options, f"{RUN}/v0", f"{RUN}/v3")


@pytest.mark.usefixtures("records")
def test_git_applies_what_it_is_given(context, repo):
    git(repo.workdir, "switch", "-q", "--detach", f"{RUN}/v0")
    git(repo.workdir, "apply", "-", stdin=ask(diff, context, "v0", "v3").text)
    assert git(repo.workdir, "diff", f"{RUN}/v3") == b""


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize("lines", [0, 1, 3, 30])
def test_as_data_it_has_the_hunks_of_git(lines, context, repo):
    found = ask(diff, context, "v0", "v3", lines=lines, as_data=True)
    heads = [line for line in found.text.decode().splitlines() if line.startswith("@@ ")]
    (file,) = found.files
    assert file.path == f"{PATH}/SKILL.md"
    assert (file.added, file.removed) == (7, 1)
    assert len(file.hunks) == len(heads)
    assert [hunk.heading for hunk in file.hunks] == ["# Demo"] * len(heads)
    git(repo.workdir, "config", "diff.context", str(lines))
    assert ask(diff, context, "v0", "v3", as_data=True).files == found.files


@pytest.mark.usefixtures("records")
def test_a_setting_that_is_no_number_is_told(context, repo):
    git(repo.workdir, "config", "diff.context", "1k")
    with pytest.raises(UsageError, match=r"diff\.context is '1k', not a number of lines"):
        ask(diff, context, "v0", "v3", as_data=True)


@pytest.mark.usefixtures("records")
def test_one_revision_is_compared_with_what_it_was_made_from(context, plain, repo):
    assert ask(diff, context, "v1").text == ask(diff, context, "v0", "v1").text
    assert ask(diff, context, "r5").text == ask(diff, context, "v3", "r5").text
    child = git(
        repo.workdir,
        *("-c", "user.name=a", "-c", "user.email=a@localhost", "commit-tree", f"{RUN}/v1^{{tree}}", "-p", plain),
        *("-m", "by hand"),
    )
    by_hand = ask(diff, context, child.decode().strip())
    assert by_hand.text == git(repo.workdir, "diff", plain, child.decode().strip())
    with pytest.raises(RevisionNotFoundError, match="v0 was made from no other version"):
        ask(diff, context, "v0")


def test_a_fork_is_compared_with_the_version_that_it_started_from_and_with_other_runs(context, repo, records):
    skill = history_reader.skill_at(repo, records[1].commit, PATH)
    sample = started("fork", PATH, skill)
    event = replace(sample.event, fork_of=f"{RUN}/v1")
    RunWriter(repo, "fork", clock_from(count())).append(event, skill, sample.evidence, start=records[1].commit)
    found = ask(diff, context, "fork/v0")
    assert (found.a.run, found.a.version, found.text) == (RUN, 1, b"")
    across = ask(diff, context, f"{RUN}/v3", "fork/v0")
    assert (across.a.run, across.b.run) == (RUN, "fork")
    assert across.text == git(repo.workdir, "diff", f"{RUN}/v3", f"{RUN}/v1")
    assert [row.by for row in ask(rule_diff, context, f"{RUN}/v3", "fork/v0").rows] == [RUN, RUN]
    assert ask(items, context, f"{RUN}/v3", "fork/v0").notes == ()


@pytest.mark.usefixtures("records")
def test_files_are_those_of_the_skill_or_of_the_repository(context, repo):
    units = git(repo.workdir, "diff", f"{RUN}/v3", f"rejected/{RUN}/0005", "--", f"{PATH}/references")
    for name in ("references/units.md", f"{PATH}/references/units.md", "./references/", "references"):
        assert ask(diff, context, "v3", "r5", [name]).text == units
    assert ask(diff, context, "v3", "r5", ["SKILL.md"]).text == b""
    with pytest.raises(NotFoundError, match=r"neither side has a file 'nope\.md'") as caught:
        ask(diff, context, "v3", "r5", ["nope.md"])
    assert caught.value.hint == "there are SKILL.md, references/units.md, scripts/convert.sh"


@pytest.mark.usefixtures("records")
def test_commits_that_are_no_events_have_a_text(context, repo, records, plain):
    found = ask(diff, context, plain, "v1")
    assert found.a is None
    assert found.text == git(repo.workdir, "diff", plain, records[1].commit)


def test_the_summary_counts_lines_rules_and_items(context, repo, records, plain):
    found = ask(stat, context, "v0", "v3")
    assert found.text == git(repo.workdir, "diff", "--stat", records[0].commit, f"{RUN}/v3").decode()
    assert (found.rules_added, found.rules_removed, found.rules_changed, found.rules_moved) == (3, 1, 0, 0)
    assert (found.fixed, found.broken, found.compared, found.missing) == (4, 0, 10, 0)
    assert (found.length.before, found.length.after) == (20, 61)
    unknown = ask(stat, context, plain, "v3")
    assert (unknown.fixed, unknown.broken, unknown.rules_added) == (None, None, 3)
    assert (unknown.compared, unknown.missing) == (None, None)
    assert ask(stat, context, "v3", "r5", ["references"]).rules_added == 1


@pytest.mark.usefixtures("records")
def test_the_summary_counts_the_items_that_only_one_side_measured(context, monkeypatch):
    every = queries.item_rows
    monkeypatch.setattr(queries, "item_rows", lambda index, row: every(index, row)[: None if row.version == 0 else 4])
    found = ask(stat, context, "v0", "v3")
    assert (found.compared, found.missing) == (4, 6)
    assert (found.fixed, found.broken) == (0, 0)
