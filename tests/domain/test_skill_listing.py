"""What agents list of a library: as the real programs did, and by the laws of their budgets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from listed_libraries import library, recorded

from skillgit.domain.skill_listing import (
    CLAUDE_DESCRIPTION,
    CODEX_DESCRIPTION,
    LibrarySkill,
    ListingAgent,
    ListingState,
    listing,
    neighbours,
)

SKILLS = st.lists(
    st.builds(
        LibrarySkill,
        name=st.from_regex(r"[a-z]{1,12}", fullmatch=True),
        description=st.text(max_size=80).filter(str.strip),
    ),
    max_size=6,
    unique_by=lambda skill: skill.name,
)
WINDOWS = st.integers(min_value=20_000, max_value=250_000)


def skill(name: str, description: str = "Does it.", **more: bool) -> LibrarySkill:
    return LibrarySkill(name=name, description=description, **more)


@pytest.mark.parametrize("record", recorded(), ids=lambda record: record.name)
def test_the_forecast_is_what_the_programs_listed(record):
    shown = listing(record.agent, library(record.project, record.users), record.window, record.roots)
    assert tuple(len(entry.text) for entry in shown.entries) == record.shown


def test_one_description_is_cut_where_each_agent_cuts_it():
    long = [skill("long", "x" * 2_000)]
    claude, codex = (listing(agent, long, 1_000_000).entries[0] for agent in ListingAgent)
    assert (claude.state, claude.text) == (ListingState.CUT, "x" * (CLAUDE_DESCRIPTION - 1) + "…")
    assert (codex.state, codex.text) == (ListingState.CUT, "x" * (CODEX_DESCRIPTION - 3) + "...")


def test_of_two_skills_of_a_name_the_users_wins_with_claude_code_and_both_stay_with_codex():
    pair = [skill("a", "project's"), skill("a", "user's", is_users=True)]
    claude, codex = (listing(agent, pair) for agent in ListingAgent)
    assert [(entry.text, entry.state) for entry in claude.entries] == [
        ("user's", ListingState.WHOLE),
        ("", ListingState.ABSENT),
    ]
    assert [entry.text for entry in codex.entries] == ["project's", "user's"]


def test_a_silent_skill_is_listed_by_codex_alone():
    silent = [skill("a", is_silent=True)]
    assert [listing(agent, silent).entries[0].state for agent in ListingAgent] == [
        ListingState.ABSENT,
        ListingState.WHOLE,
    ]


@given(SKILLS, WINDOWS, st.sampled_from(ListingAgent))
def test_every_skill_has_one_entry_and_over_the_budget_something_is_lost(skills, window, agent):
    shown = listing(agent, skills, window)
    assert sorted(entry.skill.name for entry in shown.entries) == sorted(each.name for each in skills)
    states = {entry.state for entry in shown.entries}
    if shown.size <= shown.budget:
        assert states <= {ListingState.WHOLE}
    for entry in shown.entries:
        assert (entry.text == "") == (entry.state in {ListingState.NAME, ListingState.ABSENT})


@given(SKILLS, WINDOWS)
def test_a_larger_window_shows_no_less_with_codex(skills, window):
    small, large = (listing(ListingAgent.CODEX, skills, each) for each in (window, 2 * window))
    texts = {entry.skill.name: entry.text for entry in large.entries}
    assert all(texts[entry.skill.name].startswith(entry.text) for entry in small.entries)


@given(SKILLS)
def test_nearness_is_mutual_and_at_most_one(skills):
    nearest = neighbours(skills)
    assert all(0 < each.share <= 1.0000001 and each.name != name for name, each in nearest.items())
    if nearest:
        most = max(nearest.values(), key=lambda each: each.share)
        assert any(nearest[each].share == most.share for each in nearest if each == most.name)


def test_rare_words_count_more_than_those_of_every_skill():
    common = "Use this skill when the user wants help with"
    ends = {"a": "invoices", "b": "receipts", "c": "invoices of hotels"}
    every = [skill(name, f"{common} {end}") for name, end in ends.items()]
    nearest = neighbours([*every, *(skill(f"n{n}", f"{common} thing{n}") for n in range(20))])
    assert (nearest["a"].name, nearest["c"].name) == ("c", "a")
    assert nearest["b"].share < nearest["a"].share
