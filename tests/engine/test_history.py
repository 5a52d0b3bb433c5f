from __future__ import annotations

import asyncio
import re

from remembered import remembered
from toy import History, ToyBackend, run_to_end, trainer

from skillgit.calls.ledger import Ledger
from skillgit.domain.event import Event
from skillgit.domain.gate_decision import Decision
from skillgit.domain.proposal import Change, Origin
from skillgit.engine.prompt_sections import history_section, record_section


def step(number: int, **changes) -> Event:
    facts = {
        "epoch": (number - 1) // 2 + 1,
        "step": number,
        "decision": Decision.REJECT,
        "title": f"rule {number}",
        "why": f"cause {number}\n\n2 of 8 rollouts: finding {number} (a1)\n\nleft out: edit {number}",
        "changes": (Change(sign="+", text=f"- rule {number} " + "x" * 80),),
        "score": 0.5,
        "current": 0.75,
        "fixed": ("q1",),
        "broken": ("q2", "q3"),
    }
    return remembered(**{**facts, **changes})


def test_history_covers_all_epochs_newest_first_with_the_number_of_items_that_moved():
    text = history_section([step(1), step(2), step(3)])
    assert [line for line in text.splitlines() if line.startswith("step")] == [
        "step 3 (epoch 2) reject 0.5000 against 0.7500: rule 3",
        "step 2 (epoch 1) reject 0.5000 against 0.7500: rule 2",
        "step 1 (epoch 1) reject 0.5000 against 0.7500: rule 1",
    ]
    assert text.count("  held out: 1 items fixed, 2 broken") == 3
    assert "  because: cause 3\n  left out: edit 3\n" in text, "the reasons of the newest epoch"
    assert "cause 1" not in text
    assert "finding" not in text
    assert not re.search(r"\bq\d", text), "no id of a held-out item"


def test_what_does_not_fit_is_told_by_its_title_and_then_left_out_in_the_open():
    steps = [step(number) for number in range(1, 41)]
    text = history_section(steps, 400)
    assert len(text) < 400 * 4 + 100
    lines = text.splitlines()
    assert lines[1].startswith("step 40 ")
    told = sum(line.startswith("step ") for line in lines)
    assert lines[-2] == f"[... {40 - told} earlier steps left out ...]"
    assert 0 < sum("broken" in line for line in lines) <= told


def test_the_newest_step_is_told_however_long_it_is_and_its_lists_are_cut_in_the_open():
    long = step(1, changes=tuple(Change(sign="-", text=f"line {number}") for number in range(60)))
    text = history_section([long], 1)
    assert "[... 36 changed lines left out ...]" in text


def test_a_record_tells_reasons_and_gains_and_a_reflection_by_its_epoch():
    steps = [step(1), step(1, origin=Origin.META, decision=Decision.ACCEPT_NEW_BEST)]
    text = record_section(steps, 2000, has_findings=True)
    assert "epoch 1 reflection accept_new_best 0.5000 against 0.7500: rule 1" in text
    assert "  because: cause 1\n  because: 2 of 8 rollouts: finding 1 (a1)\n  left out: edit 1\n" in text
    assert "finding 1" not in record_section(steps, 2000)
    assert "  held out: 1 items fixed, 2 broken" in text
    assert history_section([]) == ""
    assert "skipped: rule 1" in record_section([step(1, decision=None)], 2000)


def test_a_resumed_run_shows_the_same_history_in_its_prompts():
    def prompts(backend: ToyBackend) -> list[str]:
        return [r.messages[-1].text for r in backend.requests if "<history>" in r.messages[-1].text]

    unbroken, history = ToyBackend(), History()
    asyncio.run(run_to_end(trainer(unbroken, history), history))
    assert any("step 1 (epoch 1)" in text and "step 3 (epoch 2)" in text for text in prompts(unbroken))
    first, second, history, ledger = ToyBackend(), ToyBackend(), History(), Ledger.in_memory()
    asyncio.run(run_to_end(trainer(first, history, ledger=ledger), history, limit=4))
    asyncio.run(run_to_end(trainer(second, history, ledger=ledger), history))
    assert prompts(first) + prompts(second) == prompts(unbroken)


def test_what_persons_did_is_told_as_such():
    edited = step(2, decision=None, author="Ada Lovelace", fixed=(), broken=())
    pruned = step(2, origin=Origin.PRUNE)

    text = history_section([step(1), pruned, edited])

    heads = [line for line in text.splitlines() if "rule" in line and not line.startswith("  ")]
    assert heads == [
        "a person edited the skill by hand after step 2 (epoch 1): rule 2",
        "prune that a person asked for after step 2 (epoch 1) reject 0.5000 against 0.7500: rule 2",
        "step 1 (epoch 1) reject 0.5000 against 0.7500: rule 1",
    ]
    assert "Ada" not in text
