"""The analyst on household games: causes from transcripts, rules against them, harmful rules taken back."""

from __future__ import annotations

import json

import pytest

from skillgit.plugin.backend import system, user
from skillgit_backends import offline
from skillgit_backends.offline.analyst import causes
from skillgit_backends.offline.rules import HARMFUL, RULES, Chore
from skillgit_backends.offline.skills import rules_in
from skillgit_backends.offline.text import Briefing

ROOM = "You are in the middle of a room. Looking quickly around you, you see a {places}.\n\nYour task is to: {task}."
PLACES = "drawer 1, a drawer 2, a desk 1, a sinkbasin 1, and a cabinet 1"
DESK = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 2.")
TAKE = ("take mug 2 from desk 1", "You pick up the mug 2 from the desk 1.")
PUT = ("move mug 2 to sinkbasin 1", "You move the mug 2 to the sinkbasin 1.")
NOTHING = "Nothing happens."
CLOSED = [
    (f"go to drawer {number}", f"You arrive at drawer {number}. The drawer {number} is closed.") for number in (1, 2)
]
SEEN = [
    (f"go to {place}", f"You arrive at {place}. On the {place}, you see nothing.") for place in ("desk 1", "cabinet 1")
]
LOOK = ("look", "You are facing the sinkbasin 1.")
GAMES = {
    Chore.OPEN: ("put a mug in sinkbasin", CLOSED),
    Chore.CLEAN: ("put a clean mug in sinkbasin", [DESK, TAKE, PUT, LOOK]),
    Chore.HEAT: ("put a hot mug in sinkbasin", [DESK, TAKE, PUT, LOOK]),
    Chore.COOL: ("cool some mug and put it in sinkbasin", [DESK, TAKE, PUT, LOOK]),
    Chore.LAMP: ("look at mug under the desklamp", [DESK, TAKE, ("examine mug 2", "Nothing special.")]),
    Chore.BOTH: ("put two mug in sinkbasin", [DESK, TAKE, PUT, LOOK]),
    Chore.LIKELY: ("put a mug in sinkbasin", SEEN),
}


def turn(role: str, text: str) -> str:
    return f'<turn role="{role}">\n{text}\n</turn>'


def trajectory(item: str, task: str, steps: list[tuple[str, str]]) -> str:
    opening = ROOM.format(places=PLACES, task=task)
    turns = [turn("user", f"<observation>\n{opening}\n</observation>")]
    for command, seen in steps:
        turns += [
            turn("assistant", f"<action>{command}</action>"),
            turn("user", f"<observation>\n{seen}\n</observation>"),
        ]
    shown = "\n".join([*turns, "<answer>\nnot won in 9 steps\n</answer>", "<feedback>\nnot done\n</feedback>"])
    return f'<trajectory id="{item}" task_type="x" hard="0" soft="0.00">\n{shown}\n</trajectory>'


def briefing(games: list[str], rules: str = "", budget: int = 4) -> str:
    document = f"---\nname: home\ndescription: Plays.\n---\n\n# Home\n\nDo it.\n{rules}"
    skill = f'<skill name="home">\n<file path="SKILL.md">\n{document}\n</file>\n</skill>'
    return f"{skill}\n<budget>{budget}</budget>\n<trajectories>\n{chr(10).join(games)}\n</trajectories>"


def answered(heading: str, text: str) -> dict:
    return json.loads(offline.complete([system(f"# {heading}\n\nDo it."), user(text)]))


@pytest.mark.parametrize("chore", GAMES)
def test_the_cause_is_seen_in_the_transcript(chore):
    (attempt,) = Briefing(trajectory("a", *GAMES[chore])).attempts
    assert causes(attempt)[0] is chore


def test_a_closed_target_is_a_cause():
    steps = [DESK, TAKE, ("go to cabinet 1", "You arrive at cabinet 1. The cabinet 1 is closed.")]
    steps += [("put mug 2 in/on cabinet 1", NOTHING)] * 3
    (attempt,) = Briefing(trajectory("a", "put a mug in cabinet", steps)).attempts
    assert causes(attempt)[0] is Chore.OPEN


@pytest.mark.parametrize("chore", GAMES)
def test_several_games_lost_alike_lead_to_the_rule_against_it(chore):
    games = [trajectory(f"g{number}", *GAMES[chore]) for number in range(4)]
    found = answered("Analyse failures", briefing(games))
    asked = {one for edit in found["edits"] for one in rules_in(edit["content"])}
    assert chore in asked
    assert len(asked - {chore}) <= 1
    assert found["findings"][0]["items"] == ["g0", "g1", "g2", "g3"]
    assert all(edit["op"] in {"append", "insert_after"} for edit in found["edits"])


@pytest.mark.parametrize(
    ("chore", "steps"),
    [
        (
            Chore.CHECK,
            [step for one in (*SEEN, *SEEN) for step in (one, ("inventory", "You are not carrying anything."))],
        ),
        (Chore.SURFACES, CLOSED),
    ],
)
def test_a_harmful_rule_is_taken_back_where_it_shows(chore, steps):
    rule = f"- {RULES[chore].wordings[0]}"
    found = answered("Analyse failures", briefing([trajectory("a", "put a mug in sinkbasin", steps)], f"{rule}\n"))
    assert rule in [edit["anchor"] for edit in found["edits"] if edit["op"] in {"delete", "replace"}]


def test_the_budget_is_kept_and_what_was_rejected_is_not_said_again():
    games = [trajectory(f"g{number}", *GAMES[chore]) for number, chore in enumerate([*GAMES] * 2)]
    assert len(answered("Analyse failures", briefing(games, budget=1))["edits"]) <= 1
    lines = "\n".join(f"    + - {text}" for text in RULES[Chore.OPEN].wordings[:2])
    history = f"<history>\nstep 1 reject\n{lines}\n</history>\n"
    games = [trajectory(f"g{number}", *GAMES[Chore.OPEN]) for number in range(3)]
    found = answered("Analyse failures", history + briefing(games))
    said = {edit["content"].removeprefix("- ") for edit in found["edits"]}
    assert not said & set(RULES[Chore.OPEN].wordings[:2])


def test_equal_rules_in_other_words_are_joined_and_titled():
    entries = [
        {"title": "t", "reasoning": "r", "edits": [edit]}
        for edit in (
            {"op": "append", "file": "SKILL.md", "anchor": "", "content": f"- {text}", "support": 2, "number": number}
            for number, text in enumerate(RULES[Chore.OPEN].wordings)
        )
    ]
    skill = briefing([]).partition("<budget>")[0]
    text = f'{skill}<patches source="failure" level="1">\n{json.dumps(entries)}\n</patches>'
    found = answered("Merge patches", text)
    assert [edit["joins"] for edit in found["edits"]] == [[0, 1]]
    assert found["title"] == "open what is closed"


def test_guidance_and_memory_are_written_from_games():
    def pair(item: str, chore: Chore) -> str:
        inner = trajectory(item, *GAMES[chore]).partition(">\n")[2].removesuffix("\n</trajectory>")
        return f'<pair id="{item}" category="persistent_fail">\n<current>\n{inner}\n</current>\n</pair>'

    text = briefing([]) + "\n" + "\n".join(pair(f"p{number}", Chore.LAMP) for number in range(3))
    guidance = answered("Slow update", text)
    assert rules_in(guidance["guidance"]) == {Chore.LAMP}
    rule = RULES[Chore.CHECK].wordings[0]
    history = f"<history>\nstep 1 reject\n    + - {rule}\n</history>\n"
    memory = answered("Optimizer memory", history + text)["memory"]
    assert "check the inventory" in memory
    assert "Still failing: use the lamp" in memory


def test_harmless_advice_is_all_that_successes_lead_to():
    games = [trajectory(f"g{number}", *GAMES[Chore.OPEN]) for number in range(3)]
    for number in range(40):
        found = answered("Analyse successes", briefing([*games, trajectory(f"n{number}", *GAMES[Chore.OPEN])]))
        assert not any(rules_in(edit["content"]) & HARMFUL for edit in found["edits"])
