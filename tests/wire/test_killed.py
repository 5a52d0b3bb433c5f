"""A run over the wire that is killed with all its calls in flight, again and again, ends as if it never was."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from program import SKILLGIT, git, new_repository, refs, skillgit, surroundings
from soaking import soak

from wire import wire_server
from wire.training import ENVIRONMENT, RUN, over, paid_twice, questions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wire import Entry, Wire

ROOT = Path(__file__).parents[2]
IN_FLIGHT = 64
LATENCY_S = 0.2  # long enough that a slow machine, too, has sent the others before the first answer comes
WIDE = (
    *("-o", f"calls.concurrency={IN_FLIGHT}", "-o", f"gradient.analyst_workers={IN_FLIGHT}"),
    *("-o", "train.num_epochs=2", "-o", "train.batch_size=72", "-o", "gate.early_stop=false"),
    *("-o", "optimizer.slow_update_samples=8", "-o", "evaluation.test_env_num=8"),
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbroken:
    """A run that was never killed: where it is, what its refs point to, and what it asked."""

    options: tuple[str, ...]
    refs: dict[str, str]
    log: list[Entry]


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with wire_server(latency=LATENCY_S, process=True) as running:
        yield running


@pytest.fixture(scope="module")
def many_items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Items for a batch that is wider than what may be in flight: those that come with skillgit, divided otherwise."""
    folder, here = tmp_path_factory.mktemp("items"), ROOT / "envs" / "skillgit_envs" / "searchqa" / "data"
    train, val, test = (json.loads((here / split / "items.json").read_text()) for split in ("train", "val", "test"))
    for split, items in {"train": [*train, *test[:12]], "val": val, "test": test[12:]}.items():
        (folder / split).mkdir()
        (folder / split / "items.json").write_text(json.dumps(items))
    return folder


@pytest.fixture(scope="module")
def unbroken(wire: Wire, many_items: Path, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    options = (*WIDE, "-o", "env.split_mode=split_dir", "-o", f"env.split_dir={many_items}", *over(wire, "chat"))
    repository = new_repository(tmp_path_factory.mktemp("unbroken") / "repository")
    wire.clear()
    with begun(repository, options) as process:
        assert process.wait() == 0
    log = questions(wire)
    assert IN_FLIGHT // 2 < max(entry.in_flight for entry in log) <= IN_FLIGHT
    assert paid_twice(log) == []
    return Unbroken(options=options, refs=refs(repository), log=log)


def begun(repository: Path, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    command = (*SKILLGIT, "train", "demo", "--run", RUN, "--quiet", *options)
    return subprocess.Popen(command, cwd=repository, env=surroundings(**ENVIRONMENT), stdin=subprocess.DEVNULL)


def killed(repository: Path, options: tuple[str, ...], wire: Wire, count: int) -> bool:
    """Let the run go on until the server has seen ``count`` questions, and kill it; say whether it was still there."""
    with begun(repository, options) as process:
        while wire.wait(count, 1.0) < count and process.poll() is None:
            pass
        process.kill()
    assert process.returncode in (0, -9)
    return process.returncode != 0


def recorded(repository: Path) -> int:
    """Return how many replies the ledger holds."""
    path = repository / ".git" / "skillgit" / "ledger.db"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as ledger:
        tables = ledger.execute("SELECT count(*) FROM sqlite_master WHERE name = 'reply'").fetchone()[0]
        return int(ledger.execute("SELECT count(*) FROM reply").fetchone()[0]) if tables else 0


@pytest.mark.parametrize(("seed", "times"), [soak(1, 2), soak(1, 10), soak(2, 10), soak(3, 10)])
def test_killed_at_random_moments_it_gets_to_the_same_end_and_repeats_no_more_than_what_was_in_flight(
    seed, times, unbroken, wire, tmp_path
):
    repository = new_repository(tmp_path / "repository")
    wire.clear()
    moments = sorted(Random(seed).sample(range(2, len(unbroken.log)), times))  # noqa: S311 - no secret
    kills = lost = widest = before = 0
    for moment in moments:
        asked = wire.wait(0, 1.0)
        kills += killed(repository, unbroken.options, wire, max(moment, asked + 1))
        known = recorded(repository)
        in_flight = len({entry.digest for entry in questions(wire)[asked:]}) - (known - before)
        assert 0 <= in_flight <= IN_FLIGHT
        lost, widest, before = lost + in_flight, max(widest, in_flight), known
    with begun(repository, unbroken.options) as process:
        assert process.wait() == 0
    assert kills >= times - 1
    assert widest > IN_FLIGHT // 2, "some kills came with many calls in flight"
    assert refs(repository) == unbroken.refs
    log = questions(wire)
    assert {entry.digest for entry in log} == {entry.digest for entry in unbroken.log}
    assert len(log) - len(unbroken.log) <= lost
    assert len(paid_twice(log)) <= lost
    git("fsck", "--strict", cwd=repository)
    skillgit("fsck", "--deep", cwd=repository)
