"""Rows that are made of an event's plain values are those that are made of the event."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import event_strategies as strategies
import pytest
from chronicle import RUN, Chronicle
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sample_run import transitions
from stories import Story, moves, told

from skillgit.domain.cost import Cost, CostPart
from skillgit.domain.event import Accepted, EditRecord, Rejected, Skipped, SlowMerged, SlowProposed, event_name
from skillgit.domain.order import event_at
from skillgit.index.event_rows import Beside, Proof, rows_of
from skillgit.index.usual_rows import flip_rows
from skillgit.store import history, reader, refs, usual
from skillgit.store.codec import SlowText, decode_exactly, encode
from skillgit.store.message import read_flips
from skillgit.store.record import Recorded
from skillgit.store.repo import Repo
from skillgit.store.sketches import Sketch, sketch, sketch_run

EVIDENCE, COMMIT = "3f0b6c1d" * 5, "0badcafe" * 5
AT, GUIDANCE = 7, "Name the unit."
TIME = datetime(2026, 11, 21, 12, tzinfo=UTC)
USUAL = [
    sample.event
    for sample in transitions()
    if isinstance(sample.event, Accepted | Rejected | Skipped | SlowProposed | SlowMerged)
]
CANDIDATES = [sample.event for sample in transitions() if isinstance(sample.event, Accepted | Rejected)]
BESIDE = Beside(
    seed=lambda _: "",
    proof=lambda kind, tree: Proof(outcomes=[(kind, "t", 1.0, 0.5, "")], plan=None) if tree else None,
)


def rows_of_event(text):
    found = decode_exactly(text, lambda _: SlowText(guidance=GUIDANCE, memory=""))
    event, at = found.event, event_at(found.event)
    recorded = Recorded(
        event=event,
        commit=COMMIT,
        parents=(),
        time=TIME,
        evidence=found.evidence,
        tree="",
        branch=refs.branch_of(event),
        at=AT if at is None else at,
    )
    return rows_of(event.run, [recorded], BESIDE)


def rows_of_facts(facts):
    at = next((version for version in (facts.version, facts.base) if version is not None), AT)
    guidance = GUIDANCE if facts.kind == usual.SLOW_PROPOSED else ""
    return rows_of(facts.run, [sketch(COMMIT, int(TIME.timestamp()), at, facts, guidance)], BESIDE)


files = st.sampled_from(["SKILL.md", "references/a.md"])
edits = strategies.edits.flatmap(
    lambda one: st.builds(replace, st.just(one), fixed=st.none(), broken=st.none(), file=files)
)
usual_candidates = st.builds(
    replace,
    st.sampled_from(CANDIDATES),
    epoch=strategies.counts,
    step=strategies.counts,
    base=strategies.counts,
    title=strategies.texts,
    why=strategies.texts,
    changes=st.lists(strategies.changes, max_size=8).map(tuple),
    edits=st.lists(edits, max_size=8).map(tuple),
    patch=strategies.patches,
    fixed=st.lists(st.sampled_from(["q1", "q2", "a/b"]), unique=True).map(tuple),
)


@settings(max_examples=300)
@given(usual_candidates, st.sampled_from(["", EVIDENCE]))
def test_any_candidate_has_the_rows_of_its_event(event, evidence):
    text = encode(event, evidence)
    facts = usual.read_facts(text)

    assert facts is not None
    assert rows_of_facts(facts) == rows_of_event(text)


@settings(max_examples=300)
@given(st.sampled_from(USUAL), st.data())
def test_an_event_that_somebody_changed_has_the_rows_of_its_event(event, data):
    text = encode(event, EVIDENCE)
    if data.draw(st.booleans()):
        text = text.replace("\n\nSkillgit", "\n\n  + added\n  - removed\n\nfixed: q1\n\nSkillgit", 1)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 3, len(text))))
    text = text[:start] + data.draw(st.text("0123456789-+.e= %:\r\t\nÄ٣abc\x1b", max_size=3)) + text[end:]
    facts = usual.read_facts(text)
    assume(facts is not None)

    assert rows_of_facts(facts) == rows_of_event(text)


def test_costs_by_role_and_every_edit_that_is_shown_have_rows():
    (event, *_) = [one for one in CANDIDATES if isinstance(one, Accepted)]
    part = CostPart(role="target", stage="rollout", cost=Cost(calls=1, tokens_in=2, tokens_out=3, usd=0.5, seconds=1.5))
    edits = tuple(
        EditRecord(op=event.edits[0].op, file=f"{n}.md", support=n, source=event.edits[0].source) for n in range(24)
    )
    text = encode(replace(event, cost=Cost(calls=1, usd=0.5, parts=(part,)), edits=edits), EVIDENCE)
    longer = text.replace(
        "\nSkillgit-Patch", "\nSkillgit-Edit: op=append file=25.md support=1 source=failure\nSkillgit-Patch"
    )
    for message in (text, longer):
        rows = rows_of_facts(usual.read_facts(message))
        assert rows == rows_of_event(message)
        assert (len(rows.tables["spent"]), len(rows.tables["edit"])) == (1, 24)


@settings(max_examples=15, deadline=None)
@given(moves)
def test_any_run_has_the_rows_of_its_events(tmp_path_factory, made):
    repo = Repo.init(tmp_path_factory.mktemp("repo"))
    Chronicle(repo, told(made)).go_on()
    found = sketch_run(repo, history.sources(repo, RUN, repo.tips()))
    assume(found is not None)

    assert rows_of(RUN, found, BESIDE) == rows_of(RUN, reader.read_run(repo, RUN), BESIDE)


@pytest.mark.parametrize("event", USUAL, ids=lambda event: f"{event_name(event)}: {event.title}")
@pytest.mark.parametrize("evidence", ["", EVIDENCE])
def test_usual_events_have_the_rows_of_their_events(event, evidence):
    text = encode(event, evidence)

    assert rows_of_facts(usual.read_facts(text)) == rows_of_event(text)


def test_usual_events_are_not_made_into_events(repo):
    Chronicle(repo, Story(RUN).proposed(0.5).proposed(0.375).skipped().finished()).go_on()

    found = sketch_run(repo, history.sources(repo, RUN, repo.tips()))

    assert [isinstance(one, Sketch) for one in found] == [False, True, True, True, False]


@pytest.mark.parametrize("story", [Story(RUN).proposed(0.5).edited()], ids=["edited"])
def test_a_run_that_a_person_edited_is_left_to_a_closer_look(repo, story):
    Chronicle(repo, story).go_on()

    assert sketch_run(repo, history.sources(repo, RUN, repo.tips())) is None


def test_names_of_items_that_no_database_takes_are_left_out_and_each_is_told_once():
    assert [*flip_rows(7, ("a", "a", "\ud800"), ("a", "b"))] == [(7, "a", 1), (7, "b", 0)]
    assert read_flips("fixed: %ffffff;, b") == {"fixed": ("%ffffff;", "b"), "broken": ()}
