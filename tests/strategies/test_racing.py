"""What racing, pareto and compose hold for any run, any outcomes and any level."""

from __future__ import annotations

import asyncio
import json
import re
from types import SimpleNamespace

import pytest
from branching import carried_out
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import History, ToyBackend, run_to_end, trainer

from skillgit.domain.edit import EditStatus
from skillgit.domain.evaluation import Scored
from skillgit.domain.event import CANDIDATES, Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.domain.outcomes import read_outcomes
from skillgit.domain.run_state import fold
from skillgit.domain.statistics import sign_test
from skillgit.domain.untrusted.json_limits import loads
from skillgit.engine.rounds import OUTRUN_LEVEL
from skillgit.engine.strategy import TrainSearch
from skillgit.strategies import Draft, Edit, Op
from skillgit.strategies.compose import switches
from skillgit.strategies.pareto import front
from skillgit.strategies.racing import Racing

SEEDS = range(1, 3)


def run(name, **sections):
    _, history = asyncio.run(carried_out(name, **sections))
    return history


def test_an_edit_that_solves_none_of_its_items_alone_is_set_aside_and_said():
    reasons = {
        edit["detail"]
        for seed in SEEDS
        for transition in run("racing", train={"seed": seed}, gate={"screening": 0})
        if "patch.json" in transition.evidence
        for edit in loads(transition.evidence["patch.json"])["edits"]
        if edit["status"] == EditStatus.SET_ASIDE
    }
    assert reasons
    pattern = r'alone, it solves none of its train items: \w+ answers ".*"'
    assert all(re.fullmatch(pattern, reason) for reason in reasons), "which items, and what they answer now"


LISTS = (
    "Answer with one of these sections: admin, comm, perl, libs, x11, utils.",
    "The allowed sections are admin, comm, perl, libs, x11, utils and science.",
    "Sections: admin, comm, perl, libs, x11, utils, science, web.",
)


def test_steps_that_propose_the_same_list_in_other_words_bring_it_once():
    """The steps of a round are merged by a last call where they share words, and put in a row where they do not."""

    async def united(*contents: str):
        merge = json.dumps({"edits": [{"op": "append", "content": LISTS[-1], "joins": [*range(len(contents))]}]})
        backend, history = ToyBackend(script={"Merge patches": lambda _: merge}), History()
        made = trainer(backend, history, strategy=Racing())
        await run_to_end(made, history, limit=1)
        search = TrainSearch.within(made.rounds.search(history.state(), 1))
        drafts = [Draft(proposals=(Edit(op=Op.APPEND, content=content, items=("train0",)),)) for content in contents]
        union = await Racing().unite(search, [search.propose(draft) for draft in drafts])
        merges = [request for request in backend.requests if request.messages[0].text.startswith("# Merge patches")]
        return union, len(merges)

    union, merges = asyncio.run(united(*LISTS))
    assert union.application.skill.document.count("admin, comm, perl") == merges == 1
    assert [edit.items for edit in union.edits] == [("train0",)]
    union, merges = asyncio.run(united("Give years in four digits.", "Name the author first."))
    assert (len(union.edits), merges) == (2, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_round_costs_one_measurement_where_its_union_is_accepted(seed):
    events = [transition.event for transition in run("racing", train={"seed": seed}, gate={"screening": 0})]
    unions = [
        event
        for event in events
        if event.kind is EventKind.ACCEPTED and event.patch.budget is None and event.step % 2 == 0
    ]
    for union in unions:
        [other] = [event for event in events if getattr(event, "step", 0) == union.step - 1 and not _is_late(event)]
        assert other.kind is EventKind.SKIPPED
        assert other.taken_up_by is not None or not other.patch.applied
        assert (other.title == "no edit helps alone") is (not other.patch.applied and other.patch.merged > 0)
    assert unions or seed not in (1, 2), "the sample has unions"


def _is_late(event):
    return event.kind in {"slow-proposed", "slow-merged", "run-finished"}


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_race_at_most_one_is_accepted_and_who_was_outrun_was_behind(seed):
    history = run("racing", train={"seed": seed, "round_steps": 4}, gate={"screening": 0, "policy": "paired"})
    by_step = {getattr(t.event, "step", 0): t for t in history if t.event.kind in CANDIDATES}
    rounds: dict[tuple[int, int], list[Event]] = {}
    for transition in by_step.values():
        event = transition.event
        rounds.setdefault((event.base, (event.step - 1) // 4), []).append(event)
    for events in rounds.values():
        assert sum(event.kind is EventKind.ACCEPTED for event in events) <= 1
        for event in events:
            if event.verdict.outrun:
                assert event.verdict.decision is not Decision.ACCEPT
                assert not _is_ahead(by_step[event.step], by_step[event.verdict.outrun])


def _is_ahead(loser, winner):
    """Say whether the one that lost was ahead on the items that both tried, as far as the test goes."""
    ours, theirs = (read_outcomes(side.evidence["selection.json"]) for side in (loser, winner))
    common = [item for item in ours if item in theirs]
    hard = lambda outcome: outcome.hard if isinstance(outcome, Scored) else 0.0  # noqa: E731 - short
    gains = [hard(ours[item]) - hard(theirs[item]) for item in common]
    return sign_test(sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)) <= OUTRUN_LEVEL


@pytest.mark.parametrize("seed", SEEDS)
def test_the_level_of_all_candidates_of_a_round_is_at_most_that_of_one(seed):
    history = run("racing", train={"seed": seed, "round_steps": 4}, gate={"screening": 0, "policy": "paired"})
    spent: dict[tuple[int, int], float] = {}
    for transition in history:
        event = transition.event
        if event.kind in CANDIDATES:
            key = (event.base, (event.step - 1) // 4)
            spent[key] = spent.get(key, 0.0) + event.verdict.alpha
    assert spent
    assert all(level <= 0.05 + 1e-12 for level in spent.values())


items = st.frozensets(st.sampled_from("abcdefgh"))


@settings(max_examples=300)
@given(st.dictionaries(st.integers(0, 9), items, max_size=8))
def test_the_front_has_every_item_once_and_no_superfluous_version(by_version):
    weights = front(by_version)
    union = frozenset().union(*by_version.values()) if by_version else frozenset()
    assert sum(weights.values()) == pytest.approx(len(union))
    for version in weights:
        assert not any(by_version[version] < other for other in by_version.values())
        assert not any(by_version[version] == other and version < rival for rival, other in by_version.items())


@settings(max_examples=300)
@given(st.integers(0, 40), st.frozensets(st.integers(1, 40)), st.integers(1, 9))
def test_compose_switches_after_a_plateau_and_never_back(step, bests, plateau):
    def state(at):
        versions = [SimpleNamespace(step=best, was_best=True) for best in bests if best <= at]
        return SimpleNamespace(step=at, versions=versions)

    counts = [switches(state(at), plateau) for at in range(step + 1)]
    assert counts[0] == 0
    for before, after, at in zip(counts, counts[1:], range(1, step + 1), strict=False):
        assert after - before in {0, 1}
        assert after == before or not any(at - plateau < best <= at for best in bests)


@pytest.mark.parametrize("name", ["racing", "pareto", "compose"])
def test_the_state_in_which_a_round_began_is_that_of_its_time(name):
    history = run(name)
    events = [transition.event for transition in history]
    final = fold(events)
    for count in range(1, len(events)):
        state = fold(events[:count])
        if getattr(events[count], "step", None) == state.step + 1:
            before = final.before(state.step + 1)
            assert before.memory == state.memory
            assert [version.bases for version in before.versions] == [version.bases for version in state.versions]
            assert before.best == state.best
