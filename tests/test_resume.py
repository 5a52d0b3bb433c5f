"""A run that is killed at any moment and resumed equals one that never was."""

from __future__ import annotations

import shlex
import signal
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from once import copy_folder, once
from program import QUICK, git, new_repository, python, refs, skillgit
from soaking import soak

from skillgit.app.train.requests import TrainRequest
from skillgit.app.train.train import continuing
from skillgit.errors import ExitCode

MORTAL = Path(__file__).with_name("mortal.py")
NEVER = 10**9
DEFAULTS = ("-o", "optimizer.salvage=true", "-o", "optimizer.aggregate=one_call", "-o", "gradient.contrast=2")
SMALL = ("train", "demo", "--run", "small", "--quiet", *QUICK, *DEFAULTS)
MOMENTS = [
    *(soak("call", count) for count in (140, 1, 12, 21, 33, 47, 60, 75, 90, 111, 160)),
    ("recorded", 25),
    *(soak("recorded", count) for count in (1, 64, 130)),
    ("objects", 1),
    *(soak("objects", count) for count in (3, 8)),
    *(soak("refs", count) for count in (2, 1, 5)),
]


def train(repository: Path, moment: str, count: int, log: Path, *options: str) -> int:
    done = python(MORTAL, moment, str(count), log, "-C", repository, *SMALL, *options)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


def calls(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    def fill(folder: Path) -> None:
        assert train(new_repository(folder / "repository"), "call", NEVER, folder / "log") == 0

    folder = once(tmp_path_factory, "unbroken", fill)
    return refs(folder / "repository"), calls(folder / "log")


def test_the_unbroken_run_has_everything_that_a_kill_could_spoil(unbroken):
    names = unbroken[0]
    assert {"refs/heads/run/small", "refs/heads/slow/small", "refs/skillgit/evidence/small"} <= names.keys()
    assert any(name.startswith("refs/heads/rejected/small/") for name in names)
    assert any(name.startswith("refs/tags/small/v") for name in names)


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_a_killed_run_ends_in_the_same_commits_and_repeats_no_call(moment, count, unbroken, tmp_path):
    repository, log = new_repository(tmp_path / "repository"), tmp_path / "log"
    assert train(repository, moment, count, log) == -signal.SIGKILL
    assert train(repository, "call", NEVER, log) == 0
    assert refs(repository) == unbroken[0]
    assert calls(log) == unbroken[1]
    git("fsck", "--strict", cwd=repository)
    skillgit("fsck", "--deep", cwd=repository)


@pytest.mark.slow
@pytest.mark.parametrize("every", [45, soak(23)])
def test_a_run_killed_again_and_again_still_gets_to_the_same_end(every, unbroken, tmp_path):
    repository, log = new_repository(tmp_path / "repository"), tmp_path / "log"
    deaths = 0
    while train(repository, "call", every, log) != 0:
        deaths += 1
    assert deaths >= 5
    assert refs(repository) == unbroken[0]
    assert calls(log) == unbroken[1]


@pytest.mark.slow
@pytest.mark.parametrize("every", [7, *(soak(number) for number in (2, 3, 4, 5))])
def test_a_kill_between_transactions_of_refs_and_a_prune_lose_nothing(every, unbroken, tmp_path):
    repository, log = new_repository(tmp_path / "repository"), tmp_path / "log"
    deaths = 0
    while train(repository, "after-transaction", every, log) != 0:
        deaths += 1
        git("prune", "--expire=now", cwd=repository)
    assert deaths >= 3
    assert refs(repository) == unbroken[0]
    assert calls(log) == unbroken[1]
    skillgit("fsck", "--deep", cwd=repository)


def test_a_run_whose_evidence_is_lost_does_not_go_on(unbroken, tmp_path_factory, tmp_path):
    del unbroken
    repository = tmp_path / "repository"
    copy_folder(once(tmp_path_factory, "unbroken", lambda _: None) / "repository", repository)
    git("update-ref", "-d", "refs/skillgit/evidence/small", cwd=repository)
    git("reflog", "expire", "--expire=now", "--all", cwd=repository)
    git("prune", "--expire=now", cwd=repository)
    before = refs(repository)

    done = skillgit(*SMALL, cwd=repository, code=ExitCode.HISTORY)

    assert "the evidence of small/v0, " in done.err
    assert "is lost" in done.err
    assert refs(repository) == before
    hint = shlex.split(done.err.partition("skillgit ")[2].splitlines()[0])
    skillgit(*hint, *QUICK, "--quiet", cwd=repository)


ROUNDS = (
    *("-o", "train.batch_size=10", "-o", "train.round_steps=3", "-o", "gate.screening=2"),
    *("-o", "optimizer.use_slow_update=false", "-o", "train.plateau=3"),
)
KILLS = [
    ("racing", "call", 150),
    ("refine", "call", 110),
    *(soak("racing", *kill) for kill in (("recorded", 200),)),
    *(soak("pareto", *kill) for kill in (("refs", 9), ("call", 250))),
    *(soak("compose", *kill) for kill in (("objects", 4), ("recorded", 90))),
]


def in_rounds(folder: Path, strategy: str, moment: str = "call", count: int = NEVER) -> tuple[Path, int]:
    """Train with a strategy that goes in rounds, and return the repository and how the process ended."""
    repository = folder / "repository"
    options = ("-o", f"train.strategy={strategy}", *ROUNDS)
    ended = train(
        repository if repository.exists() else new_repository(repository), moment, count, folder / "log", *options
    )
    return repository, ended


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "moment", "count"), KILLS)
def test_a_run_killed_in_a_round_ends_in_the_same_commits(strategy, moment, count, tmp_path_factory, tmp_path):
    whole, ended = in_rounds(tmp_path_factory.mktemp(strategy), strategy)
    assert ended == 0
    repository, ended = in_rounds(tmp_path, strategy, moment, count)
    assert ended == -signal.SIGKILL
    assert in_rounds(tmp_path, strategy) == (repository, 0)
    assert refs(repository) == refs(whole)
    skillgit("fsck", "--deep", cwd=repository)
    assert "all came out as recorded" in skillgit("fsck", "small", "--deep", cwd=repository).out


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose run, far from the defaults, was ended by a cap."""
    repository = new_repository(tmp_path_factory.mktemp("capped") / "repository")
    stopped = skillgit(*SMALL, "--max-calls", "120", cwd=repository, code=7)
    assert "with a larger cap continues it" in stopped.err
    return repository


@pytest.mark.slow
def test_a_run_goes_on_with_the_configuration_that_it_recorded(capped, unbroken, tmp_path):
    repository = tmp_path / "repository"
    copy_folder(capped, repository)
    skillgit("train", "--run", "small", "--quiet", cwd=repository)
    assert refs(repository) == unbroken[0]


def test_a_run_shows_its_settings_and_each_line_is_an_override_that_changes_nothing(capped):
    lines = skillgit("show", "v0", "--settings", cwd=capped).out.splitlines()
    assert {"train.num_epochs=2", "train.batch_size=20", "optimizer.lr_scheduler=cosine"} <= {*lines}
    overrides = [word for line in lines if not line.startswith("env.name=") for word in ("-o", line)]
    plan = skillgit("train", "demo", "--run", "small", "--dry-run", *overrides, cwd=capped)
    assert "2 epochs" in plan.out
    refused = skillgit("train", "demo", "--run", "small", "-o", "train.num_epochs=3", cwd=capped, code=2)
    assert "skillgit train --run small goes on as it began" in refused.err


def test_a_new_run_from_a_version_takes_the_configuration_of_its_run(capped):
    plan = skillgit("train", "--from", "small/v0", "--run", "other", "--dry-run", cwd=capped)
    assert "run small" in plan.out
    assert "2 epochs" in plan.out
    assert "name one: skillgit train " in skillgit("train", "--run", "nothing", cwd=capped, code=2).err
    assert "name one: skillgit train " in skillgit("train", cwd=capped, code=2).err


def test_the_command_that_goes_on_keeps_the_caps_of_the_one_that_stopped():
    request = TrainRequest(config="my tasks.yaml", overrides=("env.limit=3",), max_calls=90, max_usd=2.5)
    command = continuing(request, "one")
    assert command == "skillgit train 'my tasks.yaml' -o env.limit=3 --run one --max-calls 90 --max-usd 2.5"
    assert continuing(request, "one", open_cap="max_calls").endswith("--run one --max-calls N --max-usd 2.5")
    assert continuing(request, "one", open_cap="max_tokens").endswith("--max-calls 90 --max-tokens N --max-usd 2.5")


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1)


@given(
    config=TEXT,
    overrides=st.lists(TEXT).map(tuple),
    calls=st.integers(1) | st.none(),
    usd=st.floats(0.001, 1e9).map(lambda value: round(value, 3)) | st.none(),
)
def test_a_shell_reads_the_command_that_goes_on_as_it_was_typed(config, overrides, calls, usd):
    request = TrainRequest(config=config, overrides=overrides, max_calls=calls, max_usd=usd)
    words = shlex.split(continuing(request, "one"))
    assert words[:3] == ["skillgit", "train", config]
    assert tuple(words[4 : 3 + 2 * len(overrides) : 2]) == overrides
    told = dict(zip(words[3 + 2 * len(overrides) :: 2], words[4 + 2 * len(overrides) :: 2], strict=True))
    caps = {"--max-calls": calls, "--max-usd": usd}
    assert told.pop("--run") == "one"
    assert {name: Decimal(value) for name, value in told.items()} == {
        name: Decimal(str(value)) for name, value in caps.items() if value is not None
    }
