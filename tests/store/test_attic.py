from __future__ import annotations

import signal
import subprocess
import sys
from itertools import count

import pytest
from sample_run import RUN, clock_from, transitions, write_run

from skillgit.app.upkeep.run_checks import check_run
from skillgit.errors import ConcurrentWriteError, HistoryError
from skillgit.store import history_reader, refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.history import fold, read_attic, unfold
from skillgit.store.repo import Repo

PLACE = refs.attic_ref(RUN)
BRANCHES = [refs.rejected_branch(RUN, step) for step in (2, 5)]


def test_folded_candidates_are_reachable_and_their_branches_gone(repo, history, git) -> None:
    before = history_reader.read_run(repo, RUN)

    folded = fold(repo, RUN)

    assert [*folded] == BRANCHES
    assert git("branch", "--list", "rejected/*") == ""
    assert history_reader.read_run(repo, RUN) == before
    reached = git("rev-list", PLACE).split()
    assert {history[2].commit, history[7].commit} <= set(reached)
    assert check_run(repo, RUN) == []


def test_folding_again_changes_nothing(repo, history) -> None:
    fold(repo, RUN)
    stored = repo.tips()

    assert fold(repo, RUN) == {}
    assert repo.tips() == stored
    assert len(history) == 9


def test_unfolding_gives_every_branch_back(repo, history) -> None:
    before = repo.tips()
    fold(repo, RUN)

    assert [*unfold(repo, RUN).values()] == [history[2].commit, history[7].commit]
    assert repo.tips() == before
    assert unfold(repo, RUN) == {}


@pytest.mark.usefixtures("history")
def test_two_clones_that_fold_get_the_same_attic(repo, tmp_path, git) -> None:
    git("clone", "-q", "--mirror", ".", str(tmp_path / "copy.git"))
    copy = Repo.discover(tmp_path / "copy.git")
    fold(repo, RUN)
    fold(copy, RUN)

    assert copy.tips() == repo.tips()


def test_a_later_candidate_joins_the_attic_behind_the_others(repo) -> None:
    write_run(repo, events=4)
    fold(repo, RUN)
    writer = RunWriter(repo, RUN, clock_from(count(4)))
    for sample in transitions()[4:]:
        writer.append(sample.event, sample.skill, sample.evidence)
    assert BRANCHES[0] not in repo.tips(), "writing on does not unfold"

    fold(repo, RUN)

    assert [*read_attic(repo, repo.tips()[PLACE])] == BRANCHES
    assert check_run(repo, RUN) == []


def test_a_branch_that_holds_another_candidate_than_the_attic_is_refused(repo, history) -> None:
    fold(repo, RUN)
    repo.raw.references.create(BRANCHES[0], history[7].commit)

    with pytest.raises(HistoryError, match="is not the candidate that the attic has"):
        fold(repo, RUN)
    with pytest.raises(ConcurrentWriteError):
        unfold(repo, RUN)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
from skillgit.store import history, transaction
from skillgit.store.repo import Repo

moved, moves = transaction.update_refs, {moves}

def counted(*arguments, **named):
    global moves
    if moves == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    moves -= 1
    moved(*arguments, **named)

history.update_refs = transaction.update_refs = counted
history.{verb}(Repo.discover(Path({repo!r})), {run!r})
"""


@pytest.mark.parametrize("moves", [0, 1])
@pytest.mark.parametrize("verb", ["fold", "unfold"])
def test_a_process_that_is_killed_between_two_moves_loses_nothing(repo, history, verb, moves) -> None:
    events = history_reader.read_run(repo, RUN)
    if verb == "unfold":
        fold(repo, RUN)
    program = KILLED.format(path=sys.path, moves=moves, verb=verb, repo=str(repo.workdir), run=RUN)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()

    assert history_reader.read_run(repo, RUN) == events
    assert check_run(repo, RUN) == []
    {"fold": fold, "unfold": unfold}[verb](repo, RUN)
    assert (PLACE in repo.tips()) == (verb == "fold")
    assert history_reader.read_run(repo, RUN) == events
    assert len(history) == 9
