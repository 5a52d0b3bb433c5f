"""A run that branches, as commits: its shape, and what a forger of its new trailers cannot hide."""

from __future__ import annotations

import re
from functools import cache
from itertools import count
from shutil import copytree
from typing import TYPE_CHECKING

import pytest
from branching import branched
from sample_run import clock_from

from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.store import history_reader
from skillgit.store.event_writer import RunWriter
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.store.commit_message import Recorded

RUN = "toy-1"


SEEDS = {"pareto": 2, "racing": 9}


@cache
def prototype(strategy: str, folder: Path) -> list[Recorded]:
    """Write the run of ``strategy`` once into ``folder``, of which every test has a copy."""
    writer = RunWriter(Repo.init(folder), RUN, clock_from(count()))
    return [writer.append(t.event, t.skill, t.evidence) for t in branched(strategy, SEEDS[strategy])]


@pytest.fixture
def written(tmp_path_factory, tmp_path) -> Callable[[str], tuple[Repo, list[Recorded]]]:
    def copied(strategy: str) -> tuple[Repo, list[Recorded]]:
        folder = tmp_path_factory.getbasetemp() / f"branching-{strategy}"
        records = prototype(strategy, folder)
        copytree(folder, tmp_path / strategy)
        return Repo.discover(tmp_path / strategy), records

    return copied


def rewrite(repo: Repo, history: list[Recorded], position: int, *, message=str, parents=list) -> str:
    """Change the commit of one event as a forger would: all that follows and all refs are made anew to fit."""
    new: dict[str, str] = {}
    for index, record in enumerate(history):
        commit = repo.commit(record.commit)
        text, above = commit.message, [new.get(parent, parent) for parent in record.parents]
        if index == position:
            text, above = message(text), parents(above)
        made = repo.raw.create_commit(None, commit.author, commit.committer, text, commit.tree_id, above)
        new[record.commit] = str(made)
    for name, oid in repo.tips().items():
        if oid in new:
            repo.raw.references[name].set_target(new[oid])
    return new[history[position].commit]


def sentences(repo: Repo, commit: str) -> list[str]:
    """Return what is said of ``commit``, evidence refs aside, which a forger leaves behind."""
    problems = check_run(repo, RUN)
    return [
        problem.sentence for problem in problems if problem.commit == commit and "not kept by" not in problem.sentence
    ]


@pytest.mark.parametrize("strategy", SEEDS)
def test_a_run_that_branches_reads_as_it_was_written(written, strategy):
    repo, records = written(strategy)
    assert history_reader.read_run(repo, RUN) == records


def test_other_lines_are_further_parents_and_the_tip_stays_the_first_one(written):
    _, records = written("pareto")
    versions = {record.event.version: record.commit for record in records if record.event.kind is EventKind.ACCEPTED}
    versions[0] = records[0].commit
    tip = records[0].commit
    for record in records:
        event = record.event
        if event.kind is EventKind.ACCEPTED:
            sources = [event.base] if event.joined is None else [event.base, event.joined]
            others = [versions[source] for source in sources if source != event.version - 1]
            assert [*record.parents[1:]] == others
        if event.kind not in {EventKind.RUN_STARTED, EventKind.REJECTED} and record.branch.startswith(
            "refs/heads/run/"
        ):
            assert record.parents[0] == tip
            tip = record.commit
        if event.kind is EventKind.REJECTED:
            assert record.parents == (versions[event.base],)


def fork(event: Event) -> bool:
    return event.kind is EventKind.ACCEPTED and event.base < event.version - 1 and event.joined is None


def joins(event: Event) -> bool:
    return event.kind is EventKind.ACCEPTED and event.joined is not None


def behind(event: Event) -> bool:
    return event.kind is EventKind.REJECTED and event.at is not None


def lost(event: Event) -> bool:
    return event.kind is EventKind.REJECTED and event.verdict.outrun > 0


def screened_out(event: Event) -> bool:
    return event.kind is EventKind.SKIPPED and event.screening is not None and not event.screening.passed


def taken_up(event: Event) -> bool:
    return event.kind is EventKind.SKIPPED and event.taken_up_by is not None


def put(key: str, value: str) -> Callable[[str], str]:
    """Return what gives a message the trailer ``key`` with another value."""
    return lambda message: re.sub(rf"(Skillgit-{key}: ).*", rf"\g<1>{value}", message)


def without(key: str) -> Callable[[str], str]:
    return lambda message: re.sub(rf"Skillgit-{key}: .*\n", "", message)


def add(line: str) -> Callable[[str], str]:
    return lambda message: message.replace("Skillgit-Base:", f"{line}\nSkillgit-Base:", 1)


FORGERIES = [
    ("pareto", fork, put("Base", "1"), "parents"),
    ("pareto", joins, put("Joined", "0"), "other parents are not these"),
    ("pareto", fork, add("Skillgit-Joined: 1"), "it joins v1, which was made of v0"),
    ("racing", behind, put("At", "0"), "follows step"),
    ("racing", behind, without("At"), "follows step"),
    ("racing", behind, put("Base", "0"), "its parent is not the commit of v0"),
    ("racing", lost, lambda message: message.replace("outrun=7", "outrun=8"), "no candidate that could be its rival"),
    ("racing", lost, lambda message: message.replace("outrun=7", "outrun=3"), "it lost to step 3"),
    ("racing", screened_out, put("Screening", "failing=1 fixed=1 solved=1 broken=0"), "was not measured"),
    ("racing", screened_out, put("Screening", "failing=9 fixed=0 solved=1 broken=1"), "and its items say"),
    ("racing", screened_out, put("Screening", "failing=1 fixed=0 solved=1 broken=2"), "than were tried"),
    ("racing", screened_out, without("Screening"), "records no screening"),
    ("racing", taken_up, put("Taken-Up-By", "1"), "does not follow it"),
]


@pytest.mark.parametrize(("strategy", "wanted", "forged", "says"), FORGERIES)
def test_forged_trailers_of_rounds_are_found(written, strategy, wanted, forged, says):
    repo, records = written(strategy)
    position = next(index for index, record in enumerate(records) if wanted(record.event))
    sound = sentences(repo, records[position].commit)
    told = sentences(repo, rewrite(repo, records, position, message=forged))
    assert any(says in sentence for sentence in told if sentence not in sound), told


def test_parents_of_another_line_are_found(written):
    repo, records = written("pareto")
    position = next(index for index, record in enumerate(records) if fork(record.event))
    commit = rewrite(repo, records, position, parents=lambda above: [*above[:1], above[0]])
    assert any("other parents are not these" in sentence for sentence in sentences(repo, commit))
