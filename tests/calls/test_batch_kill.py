"""SIGKILL in every state of a batch: no call is bought twice, none is lost, and the cost is that of an unbroken run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from dying_batches import CALLS, STATES
from sdk_calls import KEYS
from soaking import soak
from wire import wire_server


@pytest.mark.parametrize(
    ("backend", "kills"),
    [
        ("claude_chat", tuple(STATES)),  # which keeps no marks
        soak("openai_chat", ("after the intent", "before the ticket", "half of the replies")),
        *(soak(backend, kills) for backend in KEYS for kills in (tuple(STATES), "60")),
    ],
)
def test_a_batch_survives_its_process(backend, kills, tmp_path, monkeypatch):
    monkeypatch.setenv(KEYS[backend], "sk-test")
    script = Path(__file__).with_name("dying_batches.py")
    with wire_server(process=True) as wire:
        words = kills if isinstance(kills, tuple) else (kills,)
        done = subprocess.run(
            [sys.executable, script, tmp_path, wire.url, backend, *words], capture_output=True, text=True, check=True
        )
        log = [entry for entry in wire.log() if entry.dialect]
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) == (int(kills) if isinstance(kills, str) else len(kills))
    for report in reports:
        assert report["codes"] == [-signal.SIGKILL, 0]
        assert report["end"]["replies"] == [f"{report['name']} {number}" for number in range(CALLS)]
        assert report["end"]["calls"] == CALLS
    assert all(entry.batched for entry in log)
    assert set(Counter(entry.digest for entry in log).values()) == {1}, "each question was asked once"
