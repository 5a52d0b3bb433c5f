from __future__ import annotations

import asyncio
import json

from toy import ONE_STEP, SEED, History, ToyBackend, ToyEnvironment, run, run_to_end, trainer

from skillgit.domain.evaluation import FailedToEvaluate, Scored
from skillgit.domain.trajectory import Item, Rollout, Trajectory
from skillgit.engine.reflect import diverse, probed

ON = {"use_deep_reflect": True, "deep_reflect_failures": 3, "deep_reflect_successes": 1}
PROBE = "Say which word you miss."


def probing(backend: ToyBackend) -> list[object]:
    return [r for r in backend.requests if r.model == "target" and PROBE in r.messages[0].text]


def test_failures_and_successes_are_rolled_out_again_with_the_probe_and_analysed_as_one_more_draft():
    backend = ToyBackend()
    history = run(backend, train=ONE_STEP | {"num_epochs": 2}, gradient=ON)
    assert len(probing(backend)) == 3 + 4, "in the first step nothing is solved yet"
    analysts = [r for r in backend.requests if "## These tasks were probed" in r.messages[0].text]
    assert len(analysts) == 2
    assert 'outcome="probed" count="3"' in analysts[0].messages[1].text
    assert f"<probe>\n{PROBE}\n</probe>" in analysts[0].messages[1].text
    assert "hard 0, answered: no" in analysts[0].messages[1].text
    told = json.loads(history[1].evidence["probe.json"])
    assert (told["probe"], len(told["items"])) == (PROBE, 3)
    assert len(json.loads(history[1].evidence["probed.json"])) == 3
    merges = [r for r in backend.requests if r.messages[0].text.startswith("# Merge patches")]
    assert history[1].event.patch.merged >= 1
    assert merges or history[1].event.patch.merged == 1


def test_the_probe_is_never_part_of_a_version_or_a_candidate_or_a_selection_rollout():
    backend = ToyBackend()
    history = run(backend, gradient=ON)
    assert not any(PROBE in t.skill.document for t in history if t.skill is not None)
    assert all("train" in request.messages[1].text for request in probing(backend))


def test_a_probed_rollout_is_not_taken_for_one_without_a_probe():
    seen = []

    class Remembering(ToyEnvironment):
        async def rollout(self, item, skill, target):
            seen.append((item.id, skill.digest))
            return await super().rollout(item, skill, target)

    run(ToyBackend(), train=ONE_STEP, gradient=ON, environment=Remembering())
    assert len(seen) == len(set(seen))
    assert probed(SEED, PROBE).digest != SEED.digest


def test_without_a_probe_nothing_is_rolled_out_again():
    for reply in (json.dumps({"probe": ""}), "no", json.dumps({"probe": "<!-- skillgit:slow -->"})):
        backend = ToyBackend(script={"Write a probe": lambda _, reply=reply: reply})
        history = run(backend, train=ONE_STEP, gradient=ON)
        assert json.loads(history[1].evidence["probe.json"])["probe"] == ""
        assert "probed.json" not in history[1].evidence
        assert not any("## These tasks were probed" in r.messages[0].text for r in backend.requests)


def test_nothing_is_probed_where_nothing_failed_or_it_is_switched_off():
    words = SEED.with_text("SKILL.md", SEED.document + "- amber birch coral dune\n")
    for options in ({"gradient": ON}, {}):
        backend, history = ToyBackend(), History()
        made = trainer(backend, history, train=ONE_STEP, **options)
        if options:
            object.__setattr__(made.start, "skill", words)
        asyncio.run(run_to_end(made, history))
        assert not any(r.messages[0].text.startswith("# Write a probe") for r in backend.requests)


def test_an_item_that_cannot_be_evaluated_is_not_probed():
    backend = ToyBackend()
    run(
        backend,
        train=ONE_STEP,
        gradient=ON | {"deep_reflect_failures": 9},
        environment=ToyEnvironment(frozenset({"train0"})),
    )
    assert len(probing(backend)) == 7


def made(name: str, kind: str, hard: float | None = 0.0) -> Rollout:
    outcome = FailedToEvaluate("x") if hard is None else Scored(hard=hard, soft=hard)
    item = Item(id=name, content={}, task_type=kind)
    return Rollout(item=item, trajectory=Trajectory(item_id=name, turns=(), answer=""), outcome=outcome)


def test_the_choice_is_diverse_in_types_and_independent_of_the_order():
    session = trainer(ToyBackend(), History()).session
    found = [made(f"a{number}", "a") for number in range(9)] + [made("b1", "b"), made("c1", "c"), made("c2", "c")]
    chosen = diverse(session, found, 4, step=1)
    assert [rollout.item.task_type for rollout in chosen] == ["a", "c", "b", "a"]
    assert diverse(session, found[::-1], 4, step=1) == chosen
    assert diverse(session, found, 0, step=1) == ()
    assert {rollout.item.id for rollout in diverse(session, found, 99, step=2)} == {r.item.id for r in found}
