"""Games are the same every time, can be won, are quick without being others, and fit gymnasium's interface."""

from __future__ import annotations

import pytest
from household_games import POTATO, shipped

from skillgit_envs.alfworld.games import TASK_TYPES

pytestmark = pytest.mark.slow


def test_the_same_recipe_makes_the_same_game_and_another_seed_another_one(expert):
    first, second, other = expert("build", [POTATO, POTATO, {"recipe": {**POTATO["recipe"], "seed": 4}}])
    assert first == second
    assert first["pddl_problem"] != other["pddl_problem"]


@pytest.mark.soak
def test_the_planner_wins_every_shipped_game(expert):
    rows = shipped()
    played = expert("planner", [{"recipe": row["recipe"]} for row in rows])
    assert [row["id"] for row, game in zip(rows, played, strict=True) if not game["won"]] == []
    assert {row["recipe"]["task"] for row in rows} == set(TASK_TYPES)
    openings = [game["seen"][0] for game in played]
    assert all("Your task is to: " in text and not text.startswith("-=") for text in openings)


@pytest.mark.soak
def test_no_two_shipped_games_are_the_same(expert):
    games = expert("build", [{"recipe": row["recipe"]} for row in shipped()])
    assert len({game["pddl_problem"] for game in games}) == len(games)


@pytest.mark.soak
def test_the_replaced_engine_plays_the_same_game_byte_by_byte(expert):
    openings = [{"recipe": shipped()[place]["recipe"]} for place in (1, 5)]
    assert expert("plain", openings, 12) == expert("quick", openings, 12)


@pytest.mark.soak
def test_gymnasium_finds_nothing_to_complain_about(expert):
    assert expert("check", [POTATO]) == [[]]
