"""A run ends as it would have ended, whatever befalls its calls; and where no call passes, it stops and says so."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from program import QUICK, new_repository, skillgit
from soaking import soak

from wire import Faults, wire_server
from wire.faults import PASSING
from wire.training import course, over, paid_twice, questions, train

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wire import Entry, Wire

EVERY = (*PASSING, "hang", "slow_stream", "no_usage")
"""All that a run survives without a trace: a hanging call ends at its deadline, the last two are answers after all."""
PATIENT = ("-o", "calls.max_retries=7", "-o", "env.exec_timeout=3", "-o", "calls.timeout_s=3")
HASTY = ("-o", "calls.max_retries=0")
COUNTS = re.compile(r" n=(\d+) scored=(\d+) ")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    """One server for all runs of this file, so that its address is part of none of the differences."""
    with wire_server() as running:
        yield running


@pytest.fixture(scope="module")
def whole(wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Entry]]:
    """A run of chat completions that nothing befalls, and the server's log of it."""
    repository = new_repository(tmp_path_factory.mktemp("whole") / "repository")
    wire.change(faults=Faults())
    wire.clear()
    train(repository, *QUICK, *over(wire, "chat"))
    return repository, questions(wire)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


@pytest.mark.parametrize("dialect", [soak("chat"), soak("responses"), soak("messages")])
def test_a_tenth_of_all_calls_fails_in_every_way_and_nothing_is_different_or_paid_twice(dialect, wire, whole, tmp_path):
    untroubled = whole[0]
    if dialect != "chat":
        untroubled = new_repository(tmp_path / "untroubled")
        wire.change(faults=Faults())
        train(untroubled, *QUICK, *over(wire, dialect))
    troubled = new_repository(tmp_path / "troubled")
    wire.clear()
    wire.change(faults=Faults(rate=0.1, kinds=EVERY, seed=7, retry_after=0.1))
    train(troubled, *QUICK, *PATIENT, *over(wire, dialect))
    log = questions(wire)
    assert len({entry.fault for entry in log} - {""}) >= 8, "many kinds befell it"
    assert paid_twice(log) == []
    assert course(troubled) == course(untroubled)


@pytest.mark.parametrize(
    "kind", ["context_length", soak("refusal"), soak("malformed_text"), soak("content_filter"), soak("empty_text")]
)
def test_what_no_repetition_mends_is_left_out_of_scores_and_the_run_goes_on(kind, wire, repository):
    wire.clear()
    wire.change(faults=Faults(rate=0.04, row=99, kinds=(kind,), seed=5, model="reader"))
    train(repository, *QUICK, *HASTY, "-o", "gate.early_stop=false", *over(wire, "chat"))
    log = questions(wire)
    befallen = {entry.digest for entry in log if entry.fault}
    assert befallen, "some questions meant trouble"
    counts = [(int(asked), int(scored)) for asked, scored in COUNTS.findall("\n".join(course(repository)))]
    missing = sum(asked - scored for asked, scored in counts)
    if kind == "malformed_text":
        assert missing == 0, "it is an answer of the model, however bad: it counts"
    else:
        assert missing > 0, "what was not answered is not a score"
    skillgit("fsck", "--deep", cwd=repository)


@pytest.mark.parametrize("kind", ["malformed_text", soak("refusal")])
def test_an_optimizer_that_never_says_anything_of_use_proposes_nothing_and_the_run_goes_on_or_says_why(
    kind, wire, repository
):
    wire.clear()
    wire.change(faults=Faults(rate=1.0, kinds=(kind,), model="analyst"))
    ended = train(repository, *QUICK, *over(wire, "chat"), "--json", code=0 if kind == "malformed_text" else 5)
    outcome = json.loads(ended.out)["outcome"]
    assert outcome == ("no-candidates" if kind == "malformed_text" else "provider-failure")
    skillgit("fsck", "--deep", cwd=repository)


OUTAGES = [
    *(soak("baseline", "server_error"), soak("baseline", "unauthorized")),
    *(soak("rollout", "malformed"), soak("rollout", "unavailable")),
    *(soak("reflect", "unauthorized"), soak("reflect", "reset")),
    *(("gate", "truncated"), soak("gate", "wrong_shape")),
]


def begin_of(moment: str, log: list[Entry]) -> int:
    """Return how many calls pass before all fail, so that they begin to in the midst of a part of the run."""
    roles = [entry.role for entry in log]
    reflect = roles.index("optimizer")
    gate = roles.index("target", reflect)
    begins = {"baseline": 2, "late baseline": 14, "last of baseline": 19}
    return {**begins, "rollout": reflect - 18, "reflect": reflect + 1, "gate": gate + 2}[moment]


@pytest.mark.parametrize(("moment", "kind"), OUTAGES)
def test_when_nothing_passes_any_more_the_run_stops_scores_nothing_and_goes_on_later(
    moment, kind, wire, whole, repository
):
    untroubled, log = whole
    wire.clear()
    wire.change(faults=Faults(rate=1.0, kinds=(kind,), after=begin_of(moment, log)))
    ended = train(repository, *QUICK, *HASTY, *over(wire, "chat"), "--json", code=5)
    assert json.loads(ended.out)["outcome"] == "provider-failure"
    assert set(course(repository)) <= set(course(untroubled)), "what was recorded is what an untroubled run records"
    wire.change(faults=Faults())
    train(repository, *QUICK, *over(wire, "chat"))
    assert course(repository) == course(untroubled)
    assert paid_twice(questions(wire)) == []


@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        ("last of baseline", "server_error"),
        soak("last of baseline", "unauthorized"),
        *(soak("late baseline", "server_error"), soak("late baseline", "unauthorized")),
    ],
)
def test_an_outage_that_takes_the_last_calls_of_an_evaluation_leaves_no_evaluation(
    moment, kind, wire, whole, repository
):
    untroubled, log = whole
    wire.clear()
    wire.change(faults=Faults(rate=1.0, kinds=(kind,), after=begin_of(moment, log)))
    train(repository, *QUICK, *HASTY, *over(wire, "chat"), code=5)
    assert set(course(repository)) <= set(course(untroubled))
