"""What a strategy works with: chance that repeats, train items only, questions with their material, a kept budget."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from toy import SEED, WORDS, History, ToyBackend, items, run_to_end, trainer

from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import StrategyError
from skillgit.strategies import Draft, Edit, Op, Proposal, Search, Strategy, solved


class Probe(Strategy):
    """Does what a test wants in its first step, and nothing after that."""

    name = "probe"
    summary = "does what a test wants"

    def __init__(self, work) -> None:
        self.work = work
        self.result = None

    async def propose(self, search: Search) -> Proposal:
        if search.step > 1:
            return search.propose(Draft())
        self.result = await self.work(search)
        return self.result if isinstance(self.result, Proposal) else search.propose(Draft())


def searched(work, backend=None, **options):
    """Return what ``work`` makes of the search of a first step, and the history of the run."""
    history, probe = History(), Probe(work)
    made = trainer(backend or ToyBackend(), history, strategy=probe, **options)
    asyncio.run(run_to_end(made, history))
    return probe.result, history


def additions(*texts: str) -> Draft:
    return Draft(proposals=tuple(Edit(op=Op.APPEND, content=text) for text in texts), title="more words")


def test_chance_repeats_and_differs_by_purpose_step_and_seed():
    async def draws(search):
        later = replace(search, step=2)
        return [one.random() for one in (search.random("a"), search.random("a"), search.random("b"), later.random("a"))]

    first, second, other, later = searched(draws)[0]
    assert first == second
    assert len({first, other, later}) == 3
    assert searched(draws)[0] == [first, second, other, later]
    assert searched(draws, train={"num_epochs": 2, "batch_size": 4, "seed": 2})[0][0] != first


def test_the_items_of_the_steps_of_an_epoch_are_all_train_items_once():
    async def every(search):
        return [item.id for step in (1, 2) for item in replace(search, step=step).items]

    assert sorted(searched(every)[0]) == [item.id for item in items("train", 8)]


def test_train_items_are_rolled_out_with_the_base_or_another_skill_and_others_are_refused():
    async def rolled(search):
        better = search.propose(additions("- amber birch coral dune")).application.skill
        return [await search.roll_out(search.items, skill) for skill in (None, better)]

    before, after = searched(rolled)[0]
    assert not any(map(solved, before))
    assert all(map(solved, after))

    async def strange(search):
        return await search.roll_out([*search.items, *items("selection", 1)])

    with pytest.raises(StrategyError, match="rolls out selection0, which no train item is"):
        searched(strange)

    async def forged(search):
        return await search.roll_out([replace(search.items[0], content={"needs": "amber"})])

    with pytest.raises(StrategyError, match="which no train item is"):
        searched(forged)


def test_of_the_items_only_those_of_the_train_split_are_here():
    async def splits(search):
        return set(search.session.task.items), search.session.outcomes(0), set(search.outcomes(0))

    here, hidden, scores = searched(splits)[0]
    assert here == {Split.TRAIN}
    assert hidden is None
    assert scores == {item.id for item in items("selection", 8)}


def test_a_question_shows_the_skill_the_rollouts_and_sections_that_nothing_can_forge():
    async def asked(search):
        rollouts = await search.roll_out(search.items[:2])
        return await search.ask("Look for words.", rollouts, note="first\n</note>\nlast")

    edits = [{"op": "append", "content": "- amber", "items": ["train0", "train99"]}]
    backend = ToyBackend(script={"Propose edits": lambda _: json.dumps({"title": "t", "edits": edits})})
    draft, _ = searched(asked, backend)
    (request,) = [request for request in backend.requests if request.messages[0].text.startswith("# Propose edits")]
    assert "Look for words." in request.messages[0].text
    shown = request.messages[1].text
    assert "- begin well" in shown
    assert shown.count("<trajectory-") == 2
    assert "<note-1>\nfirst\n</note>\nlast\n</note-1>" in shown
    (edit,) = draft.edits
    assert (draft.title, edit.content) == ("t", "- amber")
    assert "train99" not in edit.items


def test_questions_of_a_step_differ_by_number():
    async def asked(search):
        return [await search.ask("Look.", number=number) for number in (0, 0, 1)]

    backend = ToyBackend(script={"Propose edits": lambda _: json.dumps({"edits": []})})
    searched(asked, backend)
    assert sum(request.messages[0].text.startswith("# Propose edits") for request in backend.requests) == 2


def test_a_reply_that_cannot_be_used_is_a_step_without_a_candidate_and_says_so():
    async def asked(search):
        return search.propose(await search.ask("Look."))

    backend = ToyBackend(script={"Propose edits": lambda _: "Sorry, no."})
    proposal, history = searched(asked, backend)
    assert proposal.pool.unusable == ("strategy",)
    skipped = history[1].event
    assert skipped.kind is EventKind.SKIPPED
    assert skipped.title == "no usable reply"


@pytest.mark.parametrize(("control", "count"), [("fixed", 2), ("none", 4)])
def test_a_proposal_keeps_the_budget_of_the_step(control, count):
    async def proposed(search):
        return search.propose(additions(*(f"- {word}" for word in WORDS)))

    optimizer = {"learning_rate": 2, "lr_scheduler": "constant", "lr_control_mode": control}
    proposal, history = searched(proposed, optimizer=optimizer)
    assert len(proposal.edits) == count
    assert proposal.budget.limit == (2 if control == "fixed" else None)
    event = history[1].event
    assert event.kind is EventKind.ACCEPTED
    assert event.patch.applied == count
    assert event.patch.merged == 4


def test_an_edit_without_a_place_is_reported_and_the_others_are_made():
    async def proposed(search):
        lost = Edit(op=Op.DELETE, anchor="no such line")
        return search.propose(replace(additions("- amber"), proposals=(lost, *additions("- amber").proposals)))

    proposal, _ = searched(proposed)
    assert proposal.application.skill.document == SEED.document.rstrip("\n") + "\n- amber\n"
    assert [report.edit.op for report in proposal.losses] == [Op.DELETE]
