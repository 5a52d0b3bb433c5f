from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.skill import Skill
from skillgit_envs.searchqa import CONTEXT_CHARACTERS, fit, system_prompt, user_prompt


def skill(body: str) -> Skill:
    return Skill(name="searchqa", files={"SKILL.md": f"---\nname: searchqa\ndescription: d\n---\n{body}".encode()})


def test_the_system_prompt_is_the_skill_between_its_marks():
    assert system_prompt(skill("\n# Rules\n\n- One {skill} word.\n")) == (
        '<skill name="searchqa">\n# Rules\n\n- One {skill} word.\n</skill>'
    )


def test_a_blank_skill_leaves_nothing():
    assert system_prompt(skill("\n\n")) == system_prompt(skill("")) == ""


def test_the_user_prompt_is_search_results_and_question():
    assert user_prompt("Who?", "[DOC] [TLE] t [PAR] p") == (
        "<context>\n[DOC] [TLE] t [PAR] p\n</context>\n\n<question>\nWho?\n</question>"
    )


def documents(*lengths: int) -> str:
    return " ".join("[DOC] " + "x" * (length - 6) for length in lengths)


def test_a_context_is_cut_at_whole_documents_and_keeps_their_markers():
    assert fit(documents(50, 49, 30), 100) == documents(50, 49)
    assert fit(documents(50, 50, 30), 100) == documents(50)
    assert fit(documents(50, 49), 100) == documents(50, 49)
    assert fit(documents(100, 10), 100) == documents(100)


def test_a_first_document_that_does_not_fit_is_cut_between_words():
    assert fit("[DOC] one two three four five", 19) == "[DOC] one two"
    assert fit("[DOC]" + "x" * 50, 20) == "[DOC]" + "x" * 15


def test_the_budget_is_6000_characters():
    assert CONTEXT_CHARACTERS == 6000
    assert len(user_prompt("q", documents(*[500] * 30))) < 6100


@given(st.lists(st.integers(7, 80), max_size=20), st.integers(20, 400))
def test_what_fits_is_a_beginning_of_whole_documents(lengths: list[int], limit: int):
    context = documents(*lengths)
    fitted = fit(context, limit)
    assert len(fitted) <= limit
    assert context.startswith(fitted)
    if lengths and lengths[0] <= limit:
        rest = context[len(fitted) :].lstrip()
        assert not rest or rest.startswith("[DOC]")
        assert not rest or len(fitted) + 1 + lengths[fitted.count("[DOC]")] > limit
