"""SIGKILL at many points of the calls layer: nothing recorded is lost, nothing recorded is bought again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from dying_calls import CONCURRENCY, FRESH_CALLS
from soaking import soak


@pytest.mark.parametrize("kills", [40, soak(120)])
def test_a_run_killed_anywhere_keeps_what_it_saw_and_ends_as_an_unbroken_one(kills, tmp_path):
    script = Path(__file__).with_name("dying_calls.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", script, tmp_path, str(kills)], capture_output=True, text=True, check=True
    )
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) == kills
    assert any(report["before"]["replies"] for report in reports)
    assert any(report["before"]["rollouts"] for report in reports)
    for report in reports:
        before, after = report["before"], report["after"]
        assert report["codes"] == [-signal.SIGKILL, 0]
        assert set(before["seen"]) <= {*before["replies"], *before["rollouts"]}
        assert set(before["replies"]) <= set(after["replies"])
        assert set(before["rollouts"]) <= set(after["rollouts"])
        assert set(after["seen"]) == {*after["replies"], *after["rollouts"]}
        bought_again = len(after["paid"]) - len(before["paid"])
        assert bought_again == FRESH_CALLS - len(before["replies"])
        assert len(after["paid"]) <= FRESH_CALLS + CONCURRENCY
        assert report["events"] == report["unbroken"]
