from __future__ import annotations

import pytest
from asking import ask

from skillgit.app.history.show import show
from skillgit.errors import RevisionNotFoundError


def test_every_event_is_shown_as_it_was_written(context, records):
    for record in records:
        found = ask(show, context, record.commit)
        assert (found.event, found.parents, found.evidence_tree) == (record.event, record.parents, record.evidence)
        assert (found.row.commit, found.row.kind) == (record.commit, record.event.kind)
        assert found.message.rstrip().endswith(f"Skillgit-Evidence: {record.evidence}" if record.evidence else "")


@pytest.mark.usefixtures("records")
def test_a_step_comes_with_its_text_and_its_items(context):
    found = ask(show, context, "v1")
    assert "-- Always answer in metres." in found.diff
    assert "+- Answer in the unit the question asks for, and say it." in found.diff
    assert "Six of forty rollouts lost points" in found.message
    assert [change.item for change in found.items if change.change == "fixed"] == ["q05", "q06", "q07"]
    assert [change.item for change in found.items if change.change == "broken"] == ["q04"]


@pytest.mark.usefixtures("records")
def test_the_seed_shows_all_of_its_text_and_items_without_a_before(context):
    found = ask(show, context, "v0")
    assert "+# Demo" in found.diff
    assert {change.change for change in found.items} == {"missing"}
    assert all(change.before is None for change in found.items)


def test_a_merge_shows_what_it_brought_to_the_run_and_a_skip_shows_nothing(context, records):
    merged = ask(show, context, "v2")
    assert "+Prefer the shortest answer" in merged.diff
    assert [change.item for change in merged.items if change.change == "fixed"] == ["q04"]
    skipped = ask(show, context, records[3].commit)
    assert (skipped.diff, skipped.items) == ("", ())


def test_what_is_no_event_is_not_shown(context):
    with pytest.raises(RevisionNotFoundError):
        ask(show, context, "HEAD")
