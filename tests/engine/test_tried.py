from __future__ import annotations

import asyncio
from dataclasses import replace

from event_strategies import texts
from hypothesis import given
from hypothesis import strategies as st
from toy import History, ToyBackend, run_to_end, trainer

from skillgit.domain.proposal import Change, Tried
from skillgit.engine.evidence_files import read_tried, tried_file
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN, TRIED_TOKENS, tried_section


def candidate(step: int, text: str = "Answer in metres.") -> Tried:
    return Tried(
        run="theirs",
        step=step,
        base=1,
        commit="c" * 40,
        title=f"try {step}",
        changes=(Change(sign="+", text=text),),
        score=0.25,
        bound=True,
        current=0.5,
    )


@given(st.lists(st.builds(candidate, st.integers(1, 99), texts), max_size=3).map(tuple))
def test_what_is_written_is_read(tried):
    assert read_tried(tried_file(tried)) == tried


def test_nothing_tried_leaves_no_file_and_no_section():
    assert tried_file(()) == {}
    assert read_tried(None) == read_tried({}) == ()
    assert tried_section(()) == ""


def test_analysts_are_told_and_nobody_else():
    backend, history = ToyBackend(), History()
    made = trainer(backend, history)
    made = replace(made, session=replace(made.session, trials=(candidate(7),)))
    asyncio.run(run_to_end(made, history))
    prompts = ["\n".join(one.text for one in request.messages) for request in backend.requests]
    told = [text for text in prompts if "run theirs, step 7: try 7; scored at most 0.2500 against 0.5000" in text]
    assert told
    assert len(told) == sum("# Analyse" in text for text in prompts)
    assert all("  + Answer in metres." in text for text in told)


def test_the_newest_is_told_first_and_what_does_not_fit_is_left_out_in_the_open():
    room = TRIED_TOKENS * CHARACTERS_PER_TOKEN
    section = tried_section([candidate(step, "x" * (room // 3)) for step in range(1, 8)])
    assert [step for step in range(1, 8) if f"step {step}:" in section] == [6, 7]
    assert section.index("step 7:") < section.index("step 6:")
    assert "[... 5 earlier candidates left out ...]" in section
