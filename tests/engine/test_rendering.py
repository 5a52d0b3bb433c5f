from __future__ import annotations

from remembered import remembered

from skillgit.domain.event import Event
from skillgit.domain.gate_decision import Decision
from skillgit.domain.proposal import Change
from skillgit.domain.skill import Skill
from skillgit.engine.optimizer_memory import HISTORY_TOKENS, history_section
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN, template_section


def step(number: int, lines: int = 1) -> Event:
    return remembered(
        epoch=1,
        step=number,
        decision=Decision.REJECT,
        title="t",
        changes=tuple(Change(sign="+", text=f"rule {line} " + "x" * 60) for line in range(lines)),
        broken=("b7",),
    )


def test_the_history_is_newest_first_and_counts_what_was_broken():
    shown = history_section([step(1), step(2)])
    assert shown.index("step 2 ") < shown.index("step 1 ")
    assert shown.count("equal score: 0 items fixed, 1 broken") == 2


def test_a_long_history_is_bounded_and_says_what_is_missing():
    shown = history_section([step(number, 40) for number in range(1, 200)])
    assert len(shown) <= HISTORY_TOKENS * CHARACTERS_PER_TOKEN + 200
    assert "step 199 " in shown
    assert "earlier steps left out" in shown
    assert "16 changed lines left out" in shown


def test_the_writer_sees_the_editable_text_and_placeholders_for_what_is_protected():
    text = "---\nname: s\n---\n\n# T\n\n<!-- skillgit:keep -->\nk\n<!-- /skillgit:keep -->\n- rule\n"
    shown = template_section(Skill("s", {"SKILL.md": text.encode(), "run.sh": b"echo"}))
    body = shown[shown.index("<body") : shown.index("</body")]
    assert "skillgit:keep" not in body
    assert "name: s" not in body
    assert "[[protected:1]]" in body
    assert 'owner="keep" placeholder="[[protected:1]]"' in shown
    assert "run.sh" in shown
