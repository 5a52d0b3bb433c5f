from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from program import git, skillgit
from sample_run import RUN
from trained_runs import RUN as SMALL
from trained_runs import Quiet, small_run, user

from skillgit.app.history.bisect import bisect
from skillgit.app.history.items import items
from skillgit.app.history.requests import ItemsRequest
from skillgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def found_in(context, item: str, *ends: str, **request):
    return ask(bisect, context, ItemsRequest(item=item, run="..".join(ends) or None, **request))


@pytest.mark.usefixtures("records")
def test_the_newest_flip_answers_without_ends(context):
    found = found_in(context, "q08")
    assert (found.run, found.first, found.last) == (RUN, "v0", "v3")
    assert (found.flip.older, found.flip.newer, found.flip.change) == ("v2", "v3", "fixed")
    assert found.suspects == ("v3",)
    assert found.row.title == "quote the span"
    assert [edit.op.value for edit in found.edits] == ["append"]
    assert "+- Quote the span that you rely on." in found.diff
    assert (found.older.outcome.solved, found.newer.outcome.solved) == (False, True)
    assert found.cost is None


@pytest.mark.usefixtures("records")
def test_an_outcome_that_went_back_and_forth_is_told_in_full(context):
    found = found_in(context, "q04")
    assert [(flip.older, flip.newer, flip.change) for flip in found.flips] == [
        ("v0", "v1", "broken"),
        ("v1", "v2", "fixed"),
    ]
    assert found.suspects == ("v2",)
    assert found.row.kind == "slow-merged"
    assert "skillgit:slow" in found.diff


@pytest.mark.usefixtures("records")
def test_between_two_versions_it_is_what_broke_the_item_in_either_order(context):
    for ends in (("v0", "v1"), ("v1", "v0")):
        found = found_in(context, "q04", *ends)
        assert (found.flip.change, found.suspects) == ("broken", ("v1",))


@pytest.mark.usefixtures("records")
def test_the_same_outcome_at_both_ends_names_nobody(context):
    same = found_in(context, "q04", "v0", "v3")
    assert (same.flip, same.suspects, len(same.flips)) == (None, (), 2)
    never = found_in(context, "q10")
    assert (never.flip, never.flips, never.newer.name) == (None, (), "v3")


@pytest.mark.usefixtures("records")
@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        (("v1", "r2"), "r2 is not a version"),
        (("v1", "v1"), "the two versions are the same"),
    ],
)
def test_ends_are_two_versions(ends, sentence, context):
    with pytest.raises(UsageError, match=sentence):
        found_in(context, "q04", *ends)


@pytest.mark.usefixtures("records")
def test_an_unknown_item_names_near_ones(context):
    with pytest.raises(NotFoundError, match="no selection item 'q04x'") as caught:
        found_in(context, "q04x")
    assert "q04" in caught.value.hint


def edit_by_hand(folder: Path, run: str, skill: str, text: str) -> str:
    """Commit a change of the skill on a run's branch, as a person does, and return the commit."""
    git("checkout", "-q", f"run/{run}", cwd=folder)
    document = folder / skill / "SKILL.md"
    document.write_text(document.read_text() + text)
    git("-c", "user.name=U", "-c", "user.email=u@x", "commit", "-qam", "by hand", cwd=folder)
    git("checkout", "-q", "--detach", cwd=folder)
    return git("rev-parse", f"run/{run}", cwd=folder).out.strip()


@pytest.mark.usefixtures("records")
def test_a_version_that_nobody_measured_is_no_end(context):
    edit_by_hand(context.directory, RUN, "skills/demo", "\nBy hand.\n")
    with pytest.raises(NotFoundError, match="v4 was not measured on q08") as caught:
        found_in(context, "q08", "v3", "v4")
    assert "--measure" in caught.value.hint
    assert found_in(context, "q08").last == "v4", "without ends it looks as far as it can"


@pytest.fixture
def trained(tmp_path_factory, tmp_path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


def fixed_item(repository: Path) -> tuple[str, int]:
    """Return an item that the newest version solves and the seed does not, and the newest version."""
    table = ask(items, user(repository), SMALL, ItemsRequest(solved=True))
    line = next(line for line in table.rows if line.first not in {"", "v0"})
    return line.item, len(table.columns) - 1


def test_missing_outcomes_narrow_the_answer_to_a_range_until_they_are_asked_for(trained):
    """A person spoils the skill in two commits, goes back, and nobody has measured any of that."""
    item, newest = fixed_item(trained)
    folder = "skills/searchqa"
    edit_by_hand(trained, SMALL, folder, "\n- Spelling counts.\n")
    edit_by_hand(trained, SMALL, folder, '\n- Answer "unknown" when in doubt.\n- Answer in a whole sentence.\n')
    edit_by_hand(trained, SMALL, folder, "\n- Take care.\n")
    skillgit("revert", "--to", "v0", cwd=trained)
    found = ask(bisect, user(trained), ItemsRequest(item=item))
    names = [f"v{newest + number}" for number in range(1, 5)]
    assert (found.flip.change, found.suspects) == ("broken", tuple(names))
    assert (found.row, found.diff, found.edits) == (None, "", ())
    watcher = Quiet()
    asked = ask(bisect, user(trained), ItemsRequest(item=item, measure=True), watcher)
    assert asked.measured == tuple(name for name, _ in watcher.results)
    assert 1 <= len(asked.measured) <= 2, "three were missing, and halving asks two at most"
    assert len(asked.suspects) == 1
    assert asked.row.version == int(asked.suspects[0][1:])
    assert asked.cost.calls == len(asked.measured)
    again = ask(bisect, user(trained), ItemsRequest(item=item))
    assert again.suspects == asked.suspects, "the notes tell it from now on"
    quiet = ask(bisect, user(trained), ItemsRequest(item=item, measure=True), Quiet())
    assert (quiet.measured, quiet.cost.calls) == ((), 0)
    skillgit("fsck", cwd=trained)


def test_it_measures_as_the_run_did_or_not_at_all(trained):
    item, newest = fixed_item(trained)
    edit_by_hand(trained, SMALL, "skills/searchqa", "\n- Spelling counts.\n")
    request = ItemsRequest(item=item, run=f"v0..v{newest + 1}", measure=True)
    other = replace(request, overrides=("model.target=agent",))
    with pytest.raises(UsageError, match="the target is offline/agent here, and was offline/reader"):
        ask(bisect, user(trained), other, Quiet())
    fewer = replace(request, overrides=("evaluation.sel_env_num=5",))
    with pytest.raises(UsageError, match="the items are not those of run small"):
        ask(bisect, user(trained), fewer, Quiet())
