"""Every benchmark keeps the promises of an environment, and its own right answers are right: one row for each card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import skillgit_envs
from skillgit.plugin.card import CARD
from skillgit.plugin.registry import load_environment
from skillgit.testing import check_environment

ELSEWHERE = {
    "alfworld": "alfworld/test_rollout.py",
    "inspect": "inspect/test_items.py",
    "spreadsheetbench": "spreadsheetbench/test_rollout.py",
    "swebench": "swebench/test_swebench.py",
}
"""Where the promises of those are kept that need a stand-in, or programs, for a rollout."""


def tagged(answer: object) -> str:
    return f"<answer>{answer}</answer>"


def of_statements(item) -> str:
    """Return the letter of the right statement in the order in which the environment shows them."""
    choices = load_environment("livemathematicianbench", Path())({}, Path()).answer_choices(item)
    return tagged(next(f"({label})" for label, text in choices.items() if text == item.content["correct"]))


def of_checks(item) -> str:
    check = item.content["checks"][0]
    return tagged(check["answers"][0] if "answers" in check else check["pattern"])


def of_pictures(item) -> str:
    return tagged(", ".join(item.content["answer"]) if item.content["options"] else item.content["answer"])


def first(item) -> str:
    return tagged(item.content["answers"][0])


def only(item) -> str:
    return tagged(str(item.content["answer"]).replace("\n", ", "))


LOOKS = {"image_detail": "low"}
LONG = {"mode": "documents", "subset": "longseal"}
ROWS = (
    ("babyvision", {}, only, LOOKS, {}),
    ("docvqa", {}, first, LOOKS, {}),
    ("livemathematicianbench", {}, of_statements, {"scorer": "skillopt"}, {}),
    ("mathverse", {}, only, LOOKS, {}),
    ("mmrb", {}, of_pictures, LOOKS, {}),
    ("officeqa", {}, only, {"scorer": "skillopt", "tolerance": 0.01}, {}),
    ("sealqa", {}, only, {"scorer": "skillopt", "revision": "a"}, {"verdict": "A"}),
    ("sealqa", LONG, only, {"scorer": "skillopt", "revision": "a"}, {"verdict": "A"}),
    ("sealqa", {"mode": "search"}, only, {}, {"verdict": "A"}),
    ("searchqa", {}, first, {"scorer": "skillopt"}, {}),
    ("tasks", {}, of_checks, {"check_timeout": 5.0}, {"rollouts": 10}),
    ("trigger", {}, None, {"client": "codex"}, {}),
)


@pytest.mark.parametrize("case", ROWS, ids=[f"{row[0]} {json.dumps(row[1])}" for row in ROWS])
def test_a_benchmark_keeps_every_promise(case, tmp_path):
    name, options, answers, scoring, more = case
    more |= {"answers": answers} if answers else {}
    check_environment(load_environment(name, tmp_path), options, tmp_path, scoring_options=scoring or None, **more)


def test_every_card_has_a_row_or_a_place_where_its_promises_are_kept():
    cards = {path.parent.name for path in Path(skillgit_envs.__path__[0]).glob(f"*/{CARD}")}
    assert cards - {"harbor"} == {row[0] for row in ROWS} | ELSEWHERE.keys(), "harbor alone brings no items"
    for place in ELSEWHERE.values():
        assert "check_environment(" in (Path(__file__).parent / place).read_text()
