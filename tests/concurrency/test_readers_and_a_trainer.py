"""One process trains while others read, and the index is deleted under them: nobody fails, no answer is stale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from soaking import soak

from skillgit.app.upkeep.fsck import fsck
from skillgit.app.workspace.context import Context
from skillgit.index import schema

HERE = Path(__file__).parent
QUESTIONS = ("log", "diff", "items", "index")
PATIENCE_S = 200


def started(script: str, *words: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, str(HERE / script), *map(str, words)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for ``process``, which must succeed, and return what it said."""
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    return said


def seen(progress: Path) -> int:
    return json.loads(progress.read_text())["events"] if progress.exists() else 0


def wait_for(events: int, progress: Path, trainer: subprocess.Popen[str]) -> None:
    while seen(progress) < events and trainer.poll() is None:
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("events", [50, soak(1000)])
def test_readers_beside_a_trainer_see_every_event_that_was_there_when_they_began(events, repo, tmp_path):
    folder, progress, end = repo.workdir, tmp_path / "progress.json", tmp_path / "end"
    trainer = started("appending.py", folder, events, progress)
    wait_for(1, progress, trainer)
    readers = {question: started("reading.py", question, folder, progress, end) for question in QUESTIONS}
    for share in (3, 2):
        wait_for(events // share, progress, trainer)
        schema.discard(repo.private_dir / "index.db")
    said = ended(trainer)
    end.touch()

    asked = {question: int(ended(reader)) for question, reader in readers.items()}

    assert said == ""
    assert min(asked.values()) > 1, asked
    context = Context.from_process(folder)
    checked = fsck(context, None, deep=True)
    assert (checked.problems, checked.commits) == ((), events)
