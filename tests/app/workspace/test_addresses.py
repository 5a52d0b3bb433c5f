"""Every event of a run is found by what it is called, in a real repository and wherever it is printed."""

from __future__ import annotations

import re

import pytest
from asking import ask
from chronicle import RUN, Chronicle
from hypothesis import given
from program import skillgit
from rule_run import write_rule_run
from sample_run import write_run
from soaking import examples, sampled_rows
from stories import COST, MODELS, PATCH, Story, moves, told
from trained_runs import user

from skillgit.app.attribution.provenance import blame
from skillgit.app.history.completion import revisions
from skillgit.app.history.diff.rules import rule_diff
from skillgit.app.recorded.outcomes import load
from skillgit.app.workspace.revision import resolve
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Origin
from skillgit.errors import RevisionNotFoundError
from skillgit.index import queries
from skillgit.store.repo import Repo
from skillgit.tui.screens.history import event_row
from skillgit.tui.screens.live import event_line
from skillgit.view.surface import Screen

ADDRESSES = "v0 v1 s2 r3 m1 e1 v2 i1 v3 v4 b4 v5 s5 s6 m2 e2 v6 end".split()  # noqa: SIM905 - reads as the run goes


def story() -> Story:
    """Return a run with every kind of event, and with everything that is called after a step or an epoch."""
    run = Story(RUN).proposed(0.5).skipped().proposed(0.25)
    run.step -= 1
    run.proposed(0.25, origin=Origin.META, epoch=1).slow(0.25)
    run.proposed(0.75, epoch=2).intervened(0.25).intervened(0.875).edited().measured(0.5).reverted(
        1
    ).skipped().skipped()
    place = {"epoch": 2, "step": run.step, "origin": Origin.META}
    run.events.append(
        Event(
            kind=EventKind.SKIPPED, **run.common, **place, title="nothing to say", patch=PATCH, models=MODELS, cost=COST
        )
    )
    return run.slow(0.875).finished()


@pytest.fixture
def chronicle(repo):
    return Chronicle(repo, story()).go_on().records


def test_the_run_has_every_kind_of_event(chronicle):
    assert {record.event.kind for record in chronicle} == set(EventKind)
    assert [record.event.address.label for record in chronicle] == ADDRESSES


def test_every_event_is_found_by_its_address(context, chronicle):
    with Workspace(context) as workspace:
        for record in chronicle:
            address = record.event.address
            found = resolve(workspace, str(address))
            assert found == resolve(workspace, address.label)
            assert (found.commit, found.row.address) == (record.commit, address)


@examples(0.3)
@given(moves)
def test_every_event_of_any_run_is_found_by_its_address(tmp_path_factory, made):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    records = Chronicle(repo, told(made).finished()).go_on().records
    with Workspace(user(repo.workdir.resolve())) as workspace:
        rows = queries.log_rows(workspace.index, RUN)
        assert {row.address for row in rows} == {record.event.address for record in records}
        for record in records:
            assert resolve(workspace, str(record.event.address)).commit == record.commit


def test_what_passed_the_gate_is_found_by_its_number_as_well(context, chronicle):
    assert ask(resolve, context, "i2").commit == ask(resolve, context, "v3").commit == chronicle[8].commit


@pytest.mark.parametrize(
    ("text", "place"),
    sampled_rows(
        [
            ("s2~1", "v1"),
            ("i1~1", "v2"),
            ("i1~2", "v1"),
            ("e2~1", "v5"),
            ("b4~1", "v4"),
            ("end~2", "v5"),
            ("m2~", "v5"),
        ],
        3,
    ),
)
@pytest.mark.usefixtures("chronicle")
def test_one_step_back_from_beside_the_line_is_the_version_that_the_run_stood_at(context, text, place):
    assert ask(resolve, context, text).commit == ask(resolve, context, place).commit


@pytest.mark.parametrize(
    ("text", "message"),
    sampled_rows(
        [
            ("v7", "has no v7"),
            ("r2", "rejected nothing at step 2"),
            ("s3", "did not skip step 3"),
            ("m3", "did not reflect on epoch 3"),
            ("i0", "has no intervention 0"),
            ("e3", "has no slow update of epoch 3"),
            ("e1234", "has no slow update of epoch 1234"),
            ("b0", "did not measure v0 on its own"),
        ],
        3,
    ),
)
@pytest.mark.usefixtures("chronicle")
def test_an_address_that_no_event_has_is_refused_with_a_reason(context, text, message):
    with pytest.raises(RevisionNotFoundError, match=message) as caught:
        ask(resolve, context, text)
    assert caught.value.hint


def test_a_run_without_an_end_has_not_finished(context, repo):
    Chronicle(repo, story()).go_on(3)
    with pytest.raises(RevisionNotFoundError, match="has not finished"):
        ask(resolve, context, "end")


def test_git_is_asked_where_a_branch_is_named_like_an_event_of_no_run(context, repo, chronicle):
    repo.raw.references.create("refs/heads/topic/s2", chronicle[0].commit)
    assert ask(resolve, context, "topic/s2").commit == chronicle[0].commit


def test_the_beginning_of_an_id_may_look_like_an_address(context, repo, chronicle):
    tip = repo.commit(chronicle[0].commit)
    signature = tip.author
    for count in range(20_000):
        made = str(repo.raw.create_commit(None, signature, signature, f"{count}\n", tip.tree_id, []))
        if re.match(r"[eb]\d{5}", made):
            break
    assert ask(resolve, context, made[:6]).commit == made


def labels_in(lines):
    """Return what each line of a list calls its event: the first word behind the signs."""
    return [re.match(r"\W*(\w+)", line)[1] for line in lines]


def test_every_label_of_the_log_is_a_revision(repo, chronicle):
    for options in ((), ("--graph",)):
        listed = labels_in(skillgit("log", *options, cwd=repo.workdir).out.splitlines())
        assert sorted(listed) == sorted(ADDRESSES)
    found = skillgit("rev-parse", *listed, cwd=repo.workdir).out.split()
    commits = {record.event.address.label: record.commit for record in chronicle}
    assert found == [commits[label] for label in listed]
    for label in ADDRESSES:
        shown = skillgit("show", label, cwd=repo.workdir).out
        assert shown.split()[0] == label
        assert commits[label] in shown


def test_every_label_of_the_screens_and_the_shell_is_a_revision(context, chronicle):
    del chronicle
    with Workspace(context) as workspace:
        rows = queries.log_rows(workspace.index, RUN)
        painted = [event_row(row, Screen(width=100), rows[0].time) for row in rows]
        live = [event_line(row, Screen(width=100))[2:] for row in rows]
        for listed in (painted, live):
            texts = ["".join(part.text for part in parts) for parts in listed]
            found = [resolve(workspace, label).commit for label in labels_in(texts)]
            assert found == [row.commit for row in rows]
        columns = load(workspace, RUN, with_rejected=True).texts
        assert {"r3", "m1", "i1", "e1"} < {column.label for column in columns}
        for column in columns:
            assert resolve(workspace, column.label).commit == column.commit
    completed = {word.value for word in revisions(context, f"{RUN}/")}
    assert completed == {f"{RUN}/{label}" for label in (*ADDRESSES, "best", "head")}


@pytest.mark.parametrize("write", [write_rule_run, write_run])
def test_what_a_line_and_a_rule_are_said_to_come_from_is_their_event(context, repo, write):
    write(repo)
    lines = [line for line in ask(blame, context).lines if line.address is not None]
    changes = [row for row in ask(rule_diff, context, "v0", "head").rows if row.address is not None]
    assert lines
    assert changes
    for row in (*lines, *changes):
        assert ask(resolve, context, str(row.address)).commit == row.commit
