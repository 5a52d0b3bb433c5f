from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sample_run import PATH, RUN, seed_skill

from skillgit.app.interventions.fork import fork
from skillgit.app.interventions.requests import RevertRequest
from skillgit.app.interventions.revert import restore
from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.run_state import fold
from skillgit.errors import ConflictError, RevisionNotFoundError, UsageError
from skillgit.index import queries
from skillgit.index.refresh import open_index
from skillgit.store import history_reader, refs
from skillgit.store.evidence import read_evidence
from skillgit.store.tree import with_skill


@pytest.fixture(autouse=True)
def _run(records):
    assert records


def test_a_fork_begins_with_text_and_score_of_the_version(context, repo, records):
    result = fork(context, "v2", "other")

    (record,) = history_reader.read_run(repo, "other")
    started = records[0].event
    assert (result.run, result.source, result.hard) == ("other", f"{RUN}/v2", 0.7)
    assert record.parents == (records[5].commit,)
    assert record.tree == records[5].tree
    assert record.event.fork_of == f"{RUN}/v2"
    assert record.event.evaluation == fold(one.event for one in records[:6]).evaluation(2)
    assert (record.event.config, record.event.splits, record.event.environment) == (
        started.config,
        started.splits,
        started.environment,
    )
    assert record.event.cost.calls == 0
    assert repo.tip(refs.version_tag("other", 0)) == repo.tip(refs.best_branch("other")) == record.commit
    assert check_run(repo, "other") == check_run(repo, RUN) == []


def test_evidence_is_the_plan_of_the_source_and_the_outcomes_of_the_version(context, repo, records):
    fork(context, "v3", "other")

    (record,) = history_reader.read_run(repo, "other")
    kept, measured = read_evidence(repo, record.evidence), read_evidence(repo, records[6].evidence)
    assert kept["selection.json"] == measured["selection.json"]
    own = {"config.json", "splits.json", "environment.json", "pinned.json", "selection.json", "tried.json"}
    assert set(kept) <= own | {path for path in measured if path.startswith("selection")}
    with open_index(repo) as index:
        ours, theirs = (queries.row_of_version(index, run, version) for run, version in (("other", 0), (RUN, 3)))
        assert queries.item_rows(index, ours) == queries.item_rows(index, theirs)


def test_the_newest_run_is_the_default_one_unless_another_was_chosen(context, repo):
    later = replace(context, clock=lambda: datetime(2030, 1, 1, tzinfo=UTC))
    assert fork(later, "v1", "one").default
    assert not fork(later, f"{RUN}/v1", "two", dry_run=True).default
    repo.set_config("skillgit.run", RUN)
    assert not fork(later, "v1", "three").default


def test_names_are_made_where_none_is_given(context):
    assert [fork(context, f"{RUN}/v1").run for _ in range(3)] == [f"{RUN}-fork", f"{RUN}-fork2", f"{RUN}-fork3"]


def test_a_fork_can_be_forked(context, repo):
    fork(context, f"{RUN}/v1", "one")
    revert_to_seed = fork(context, "one/v0", "two")
    assert revert_to_seed.source == "one/v0"
    (record,) = history_reader.read_run(repo, "two")
    assert record.event.fork_of == "one/v0"
    assert check_run(repo, "two") == []


def test_inherited_scores_are_followed(context):
    restore(context, RevertRequest(to="v1"))
    assert fork(context, "v4", "other").hard == 0.6


@pytest.mark.parametrize(
    ("revision", "name", "error", "said"),
    [
        ("r2", None, UsageError, "r2 is not a version"),
        ("v9", None, RevisionNotFoundError, "has no v9"),
        ("v1", RUN, ConflictError, f"exists already, as run/{RUN}$"),
        ("v1", "No Name", UsageError, "No Name"),
    ],
)
def test_what_cannot_be_forked_is_said(context, revision, name, error, said):
    with pytest.raises(error, match=said) as caught:
        fork(context, revision, name)
    assert caught.value.hint


def test_a_version_without_a_score_is_measured_by_training(context, repo):
    branch = refs.run_branch(RUN)
    tip = repo.commit(repo.tip(branch))
    tree = with_skill(repo, tip.tree, PATH, seed_skill("demo"))
    who = tip.author
    repo.raw.create_commit(branch, who, who, "by hand\n", tree.id, [tip.id])
    with pytest.raises(UsageError, match=r"/v4 has no score yet") as caught:
        fork(context, "v4", "other")
    assert caught.value.hint.startswith(f"skillgit train --from {RUN}/v4")
    assert repo.tip(refs.run_branch("other")) is None


def test_a_dry_run_moves_nothing(context, repo):
    before = repo.tips()
    result = fork(context, "v1", dry_run=True)
    assert (result.run, result.event) == (f"{RUN}-fork", None)
    assert repo.tips() == before
