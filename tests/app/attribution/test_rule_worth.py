from __future__ import annotations

import json

import pygit2
import pytest
from asking import ask
from rule_run import UNITS, write_rule_run
from sample_run import RUN
from soaking import sampled

from skillgit.app.attribution.rule_lineage import RuleWorth, known_worth
from skillgit.app.attribution.why import why
from skillgit.app.workspace.workspace import Workspace
from skillgit.store import refs

ROW = {
    "rule": 2,
    "text": UNITS,
    "score": 0.5,
    "delta": -0.1,
    "fixed": [],
    "broken": ["q05"],
    "p": 0.5,
    "worth": "works",
}
NOTE = {"kind": "ablation", "split": "selection", "n": 10, "rules": [ROW]}
WORTH = RuleWorth(version=1, split="selection", n=10, score=0.5, delta=-0.1, fixed=0, broken=1, worth="works")


@pytest.fixture
def noted(context, repo):
    """Write a line as a note on v1 and return what is known of the rule then."""
    events = write_rule_run(repo)

    def write(*lines: object) -> tuple[RuleWorth, ...]:
        text = "".join(
            f"{line if isinstance(line, str) else json.dumps(line, separators=(',', ':'))}\n" for line in lines
        )
        person = pygit2.Signature("A", "a@b", 1_795_300_000, 0)
        repo.raw.create_note(text, person, person, events[1].commit, refs.NOTES)
        with Workspace(context) as workspace:
            return known_worth(workspace, RUN, UNITS)

    return write


def test_a_note_about_the_rule_is_told(noted, context) -> None:
    other = NOTE | {"rules": [ROW | {"text": "Another rule."}]}

    assert noted(other, NOTE, {"kind": "evaluation", "hard": 1}) == (WORTH,)
    assert ask(why, context, UNITS).worth == (WORTH,)


@pytest.mark.parametrize(
    "line",
    sampled(
        [
            "not json {ablation}",
            '"ablation"',
            NOTE | {"rules": 3},
            NOTE | {"n": "many"},
            NOTE | {"rules": [ROW | {"delta": "x"}]},
            NOTE | {"rules": [ROW | {"score": 10**400}]},
            NOTE | {"rules": [ROW | {"p": 10**400}]},
            NOTE | {"rules": [ROW | {"score": float("nan")}]},
            NOTE | {"rules": [ROW | {"fixed": 3}]},
            NOTE | {"kind": "guess"},
        ],
        4,
    ),
)
def test_a_damaged_note_is_left_out(noted, line) -> None:
    assert noted(line) == ()
