from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime

from toy import History, ToyBackend, run_to_end, trainer

from skillgit.domain.proposal import Feedback
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN, FEEDBACK_TOKENS, feedback_section


def said(text: str, day: int = 1) -> Feedback:
    return Feedback(commit="c" * 40, text=text, author="Ada", time=datetime(2026, 1, day, tzinfo=UTC))


def run_with(*feedback: tuple[Feedback, ...]) -> tuple[ToyBackend, History]:
    """Run the toy; each step finds the next of ``feedback``, and the last one stays."""
    backend, history = ToyBackend(), History()
    made, given = trainer(backend, history), iter(feedback)
    last: list[tuple[Feedback, ...]] = [()]

    def now() -> tuple[Feedback, ...]:
        last.append(next(given, last[-1]))
        return last[-1]

    made = replace(made, session=replace(made.session, feedback=now))
    return backend, asyncio.run(run_to_end(made, history))


def prompts(backend: ToyBackend, model: str) -> list[str]:
    return ["\n".join(one.text for one in request.messages) for request in backend.requests if request.model == model]


def test_analysts_are_told_and_nobody_else():
    backend, _ = run_with((said("Mind the units."),))
    told = [text for text in prompts(backend, "optimizer") if "Mind the units." in text]
    assert told
    assert all("# Analyse" in text for text in told)
    assert len(told) == sum("# Analyse" in text for text in prompts(backend, "optimizer"))
    assert not any("units" in text for text in prompts(backend, "target"))


def test_the_evidence_of_a_step_holds_what_its_analysts_were_told_and_no_more():
    first, second = said("One.", 1), said("Two.", 2)
    _, history = run_with((), (first,), (first, second))
    held = [json.loads(one.evidence.get("feedback.json", b"[]")) for one in history if "patch.json" in one.evidence]
    texts = [[row["text"] for row in rows] for rows in held]
    assert texts[:3] == [[], ["One."], ["One.", "Two."]]
    assert held[1] == [
        {"author": "Ada", "commit": "c" * 40, "id": first.id, "text": "One.", "time": "2026-01-01T00:00:00Z"}
    ]


def test_without_feedback_prompts_and_evidence_are_what_they_were():
    backend, history = run_with(())
    plain, other = ToyBackend(), History()
    asyncio.run(run_to_end(trainer(plain, other), other))
    assert prompts(backend, "optimizer") == prompts(plain, "optimizer")
    assert [one.evidence for one in history] == [one.evidence for one in other]


def test_the_newest_is_told_first_and_what_does_not_fit_is_left_out_in_the_open():
    room = FEEDBACK_TOKENS * CHARACTERS_PER_TOKEN
    many = [said(f"note {day} " + "x" * (room // 3), day) for day in range(1, 8)]
    section = feedback_section(many)
    assert [day for day in range(1, 8) if f"note {day} " in section] == [6, 7]
    assert section.index("note 7 ") < section.index("note 6 ")
    assert "[... 5 earlier notes left out ...]" in section
    assert 'date="2026-01-07">' in section
    assert feedback_section([]) == ""
    assert len(feedback_section([said("y" * 3 * room)])) < 2 * room
