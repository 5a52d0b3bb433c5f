from __future__ import annotations

import pytest

from skillgit.app.setup.run_setup import set_up
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_decision import GateRule, NoRegression
from skillgit.domain.gate_policies import PAIRED
from skillgit.errors import ConfigError


def test_the_gate_is_the_papers_by_default(load) -> None:
    assert load().values.method.rule() == GateRule()


def test_the_gates_settings_become_its_rule(load) -> None:
    rule = load(
        "gate: {policy: paired, alpha: 0.1, no_regression: all}\nevaluation: {gate_metric: soft}\n"
    ).values.method.rule()
    assert (rule.policy, rule.alpha, rule.no_regression) == (PAIRED, 0.1, NoRegression.ALL)
    assert load("gate: {policy: margin, margin: 0.02}\n").values.method.rule().margin == 0.02


@pytest.mark.parametrize(
    "text",
    [
        "alpha: 0",
        "alpha: 1",
        "margin: -0.1",
        "repeats: -1",
        "policy: lenient",
        "no_regression: pinned",
        "early_stop: 3",
    ],
)
def test_a_gate_that_makes_no_sense_is_refused(load, text) -> None:
    with pytest.raises(ConfigError):
        load(f"gate: {{{text}}}\n")


PINNED = "gate: {no_regression: pinned, pinned: pinned.txt}\n"


def test_pinned_items_are_read_from_a_file_beside_the_configuration(load, write) -> None:
    write("pinned.txt", "")
    items = [item.id for item in set_up(load(PINNED)).task.items[Split.SELECTION]]
    write("pinned.txt", f"# never break these\n{items[3]}\n\n{items[5]}  # the second\n")
    setup = set_up(load(PINNED))
    assert setup.pins == {items[3], items[5]}
    assert "pinned.json" in setup.evidence()
    write("pinned.txt", items[3])
    assert set_up(load(PINNED)).config_digest != setup.config_digest, "what is pinned is part of what a run does"
    assert load(PINNED).digest == load(PINNED.replace("pinned.txt", "other.txt")).digest, "where it stands is not"


def test_a_file_of_pinned_items_that_is_wrong_is_named(load, write) -> None:
    with pytest.raises(ConfigError, match=r"gate\.pinned cannot be read"):
        set_up(load(PINNED))
    write("pinned.txt", "nobody\n")
    with pytest.raises(ConfigError, match="names 'nobody', which is not a selection item"):
        set_up(load(PINNED))
