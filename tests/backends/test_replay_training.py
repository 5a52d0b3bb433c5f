"""A run that answers from the record of another one decides the same."""

from __future__ import annotations

import pytest
from decisions import decisions, skills
from once import copy_folder
from program import QUICK, new_repository, skillgit
from trained_runs import trained_run

pytestmark = pytest.mark.slow


def test_a_run_is_repeated_from_its_ledger_alone(tmp_path, tmp_path_factory):
    first = copy_folder(trained_run(tmp_path_factory, "demo", *QUICK), tmp_path / "first")
    second = new_repository(tmp_path / "second")
    ledger = first / ".git/skillgit/ledger.db"
    replay = (
        *("-o", "model.target_backend=replay", "-o", "model.optimizer_backend=replay"),
        *("-o", f"model.replay_path={ledger}"),
    )
    skillgit("train", "demo", "--run", "demo", *QUICK, *replay, cwd=second)
    assert decisions(second, "demo") == decisions(first, "demo")
    assert skills(second, "demo") == skills(first, "demo") != {}
    other = ("train", "demo", "--run", "other", *QUICK, *replay, "-o", "calls.temperature=0.3")
    ended = skillgit(*other, cwd=second, code=5)
    assert "has no reply of reader to request" in ended.err
