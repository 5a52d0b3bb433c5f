"""A run some of whose questions are never answered finishes, at its true cost, and asks each such question once."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest
from program import QUICK, SKILLGIT, new_repository, refs, skillgit, surroundings
from soaking import soak

from wire import Faults, wire_server
from wire.training import ENVIRONMENT, RUN, course, over, questions, train

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wire import Entry, Wire

NEVER_ANSWERED = ("content_filter", "context_length", "odd_item", "refusal", "withheld", "used_up", "empty_text")
ATTEMPTS = 2
"""What an empty answer takes: another attempt might bring more, no other kind is tried again."""
PREFLIGHT = 2
"""Questions before the first item; were they refused too, no run would begin."""
ANSWERED = 20
"""Questions after which the preflight is on record for certain, so that no resumed run has to repeat it."""
OPTIONS = (
    *QUICK,
    "-o",
    "evaluation.min_coverage=0.4",
    "-o",
    f"calls.max_retries={ATTEMPTS - 1}",
    "-o",
    "calls.concurrency=8",
)
LATENCY_S = 0.02
COUNTS = re.compile(r" n=(\d+) scored=(\d+) ")

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbroken:
    """A run of which a share of the target's questions is never answered, and what the server saw of it."""

    share: float
    refs: dict[str, str]
    log: list[Entry]


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with wire_server(latency=LATENCY_S, process=True) as running:
        yield running


def begin(wire: Wire, share: float) -> None:
    shares = (("reader", share), ("analyst", 0.2))
    wire.change(faults=Faults(kinds=NEVER_ANSWERED, shares=shares, lasting=True, seed=3, after=PREFLIGHT))
    wire.clear()


@pytest.fixture(scope="module", params=[soak(0.05), soak(0.13), 0.3])
def unbroken(request: pytest.FixtureRequest, wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    repository = new_repository(tmp_path_factory.mktemp("unbroken") / "repository")
    begin(wire, request.param)
    train(repository, *OPTIONS, *over(wire, "chat"))
    log = questions(wire)
    told = skillgit("cost", RUN, "--json", cwd=repository)
    total = json.loads(told.out)["total"]
    assert total["calls"] == len(log), "every question that was sent is a call"
    assert total["tokens_in"] == sum(entry.tokens_in for entry in log), "every token that was billed is in the cost"
    assert total["tokens_out"] == sum(entry.tokens_out for entry in log)
    skillgit("fsck", "--deep", cwd=repository)
    return Unbroken(share=request.param, refs=refs(repository), log=log)


def asked(log: list[Entry]) -> Counter[str]:
    """Return how often each question was asked that is never answered."""
    return Counter(entry.digest for entry in log if entry.fault)


def recorded(repository: Path) -> int:
    """Return how many answers and how many failures the ledger holds."""
    path = repository / ".git" / "skillgit" / "ledger.db"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as ledger:
        tables = {name for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return sum(
            int(ledger.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - two words
            for table in {"reply", "failure"} & tables
        )


def test_a_run_goes_on_without_what_is_never_answered_and_asks_for_it_once(unbroken):
    once = {entry.digest for entry in unbroken.log if entry.fault and entry.fault != "empty_text"}
    counts = asked(unbroken.log)
    assert {counts[digest] for digest in once} == {1}
    assert {counts[digest] for digest in counts.keys() - once} <= {ATTEMPTS}
    roles = {entry.role for entry in unbroken.log if entry.fault}
    assert "target" in roles
    assert roles == {"target", "optimizer"} or unbroken.share < 0.3


@pytest.mark.parametrize("seed", [soak(1), soak(2), soak(3)])
def test_killed_at_several_moments_it_ends_in_the_same_commits_and_asks_no_refused_question_again(
    seed, unbroken, wire, tmp_path
):
    repository = new_repository(tmp_path / "repository")
    begin(wire, unbroken.share)
    command = (*SKILLGIT, "train", "demo", "--run", RUN, "--quiet", *OPTIONS, *over(wire, "chat"))
    lost = kills = 0
    for moment in sorted(Random(seed).sample(range(ANSWERED, len(unbroken.log)), 4)):  # noqa: S311 - no secret
        with subprocess.Popen(command, cwd=repository, env=surroundings(**ENVIRONMENT)) as process:
            while wire.wait(moment, 1.0) < moment and process.poll() is None:
                pass
            process.kill()
        kills += process.returncode != 0
        lost = len(questions(wire)) - recorded(repository)
    assert kills >= 3
    train(repository, *OPTIONS, *over(wire, "chat"))
    assert refs(repository) == unbroken.refs
    log = questions(wire)
    assert asked(log).keys() == asked(unbroken.log).keys()
    assert asked(log).total() - asked(unbroken.log).total() <= lost, (
        "only what no answer had come to when it was killed"
    )
    assert len(log) - len(unbroken.log) == lost


def test_on_request_everything_is_asked_once_more_and_otherwise_nothing(wire, tmp_path):
    repository = new_repository(tmp_path / "repository")
    least = ("train.num_epochs=1", "train.batch_size=60", "evaluation.eval_test=false", "env.limit=20")
    short = (*OPTIONS, *(word for option in least for word in ("-o", option)), *over(wire, "chat"))

    def baseline(run: str, *options: str) -> tuple[int, int]:
        """Return how many selection items the seed was measured on, and how many of them have a score."""
        skillgit("train", "demo", "--run", run, *short, *options, cwd=repository, env=ENVIRONMENT)
        message = next(part for part in course(repository) if f"Skillgit-Run: {run}" in part and "run-started" in part)
        [(asked, scored)] = COUNTS.findall(message)[:1]
        return int(asked), int(scored)

    begin(wire, 0.3)
    n, scored = baseline("first")
    assert scored < n
    wire.change(faults=Faults())
    assert baseline("second") == (n, scored), "an outcome of the same text is known, and so is that there is none"
    assert baseline("third", "--ask-again") == (n, n)
    assert baseline("fourth") == (n, n)
