"""What a stopped run has spent is told whole: what is recorded, and what is not recorded yet."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from program import QUICK, attempt, new_repository, skillgit
from trained_runs import small_run, user

from skillgit.app.history.cost import cost
from skillgit.app.history.status import spent_on_unfinished, status
from skillgit.domain.event import intervention_scope, step_scope
from skillgit.domain.proposal import Origin

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = ("train", "demo", "--run", "one", "-q", *QUICK)
CAPS = (66, 75, 90, 100, 120, 150, 180)
"""Calls after which a run is stopped: in its first step, at a decision, in a slow update, wherever that is."""


def bought(repository: Path) -> tuple[int, int]:
    """Return how many calls the ledger holds, and their tokens."""
    with closing(sqlite3.connect(repository / ".git" / "skillgit" / "ledger.db")) as ledger:
        found = ledger.execute("SELECT COUNT(*), SUM(tokens_in + tokens_out) FROM reply WHERE scope LIKE 'one/%'")
        calls, tokens = found.fetchone()
    return calls, tokens


def test_wherever_a_run_is_stopped_all_that_was_bought_is_told(tmp_path):
    repository = new_repository(tmp_path / "repository")
    unfinished_once = False
    for cap in CAPS:
        ended = attempt(*TRAIN, "--max-calls", str(cap), "--json", cwd=repository)
        if ended.code == 0:
            break
        assert ended.code == 7, ended
        document = json.loads(ended.out)
        calls, tokens = bought(repository)
        found = ask(status, user(repository))
        making = found.unfinished
        unfinished_once |= bool(making)
        assert found.run.calls + sum(one.cost.calls for one in making) == calls <= cap
        spent = ask(cost, user(repository), None)
        assert spent.unfinished == making == ask(spent_on_unfinished, user(repository))
        total = spent.total.tokens_in + spent.total.tokens_out
        assert total + sum(one.cost.tokens_in + one.cost.tokens_out for one in making) == tokens
        assert document["cost"]["calls"] == calls
        assert [one["what"] for one in document["unfinished"]] == [one.what for one in making]
        for command in ("status", "cost", "runs"):
            text = skillgit(command, cwd=repository).out
            for one in making:
                assert f"unfinished {one.what}: {one.cost.calls} call" in text
            assert ("a resume does not buy them again" in text) == bool(making)
    assert unfinished_once
    skillgit(*TRAIN, cwd=repository)
    found = ask(status, user(repository))
    assert found.unfinished == ()
    assert found.run.calls == bought(repository)[0], "nothing was bought twice"


def test_the_message_of_the_stop_tells_it_too(tmp_path):
    repository = new_repository(tmp_path / "repository")
    ended = skillgit(*TRAIN, "--max-calls", "75", cwd=repository, code=7)
    lines = ended.err.splitlines()
    (one,) = ask(status, user(repository)).unfinished
    assert lines[-4].startswith("one: 75 calls")
    assert lines[-3].startswith(f"unfinished {one.what}: {one.cost.calls} calls")
    assert lines[-2].startswith("skillgit: the next call would go over the cap")


def test_elsewhere_and_in_the_past_nobody_knows(tmp_path):
    repository = new_repository(tmp_path / "repository")
    skillgit(*TRAIN, "--max-calls", "75", cwd=repository, code=7)
    (past,) = (json.loads(skillgit("status", "--as-of", "one/v0", "--json", cwd=repository).out)["unfinished"],)
    assert past is None
    ledger = repository / ".git" / "skillgit" / "ledger.db"
    whole = ledger.read_bytes()
    for content in (None, b"", b"no database", whole[:5000]):
        for path in ledger.parent.glob("ledger.db*"):
            path.unlink()
        if content is not None:
            ledger.write_bytes(content)
        assert json.loads(skillgit("status", "--json", cwd=repository).out)["unfinished"] in (None, [])
        assert "unfinished step" not in skillgit("cost", cwd=repository).out
        assert ledger.exists() == (content is not None), "a look makes no ledger"


@pytest.mark.parametrize("origin", [origin for origin in Origin if origin.intervenes])
def test_an_intervention_that_was_stopped_is_told_on_a_finished_run(origin, tmp_path_factory, tmp_path):
    repository = copy_folder(small_run(tmp_path_factory), tmp_path / "repository")
    found = ask(status, user(repository))
    assert found.unfinished == ()
    number = found.head.version + 1 if origin is Origin.RESTORE else 1
    with closing(sqlite3.connect(repository / ".git" / "skillgit" / "ledger.db")) as ledger, ledger:
        scopes = (intervention_scope("small", origin, number), step_scope("small", 99), "eval/0")
        keys = ledger.execute("SELECT key FROM reply ORDER BY key LIMIT 6").fetchall()
        for place, (key,) in enumerate(keys):
            ledger.execute("UPDATE reply SET scope = ? WHERE key = ?", (scopes[place // 2], key))
    (one,) = ask(status, user(repository)).unfinished
    assert (one.what, one.cost.calls) == (origin.value, 2)
