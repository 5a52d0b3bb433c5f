"""A whole run by handoff: somebody answers the files, here the offline models, and the run decides the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from decisions import decisions, skills
from program import attempt, git, new_repository

from skillgit.errors import ExitCode
from skillgit.plugin.backend import Message, Text
from skillgit_backends import offline
from skillgit_backends.offline import reader

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SHORT = (
    *("-o", "train.num_epochs=1", "-o", "train.batch_size=60", "-o", "optimizer.use_slow_update=false"),
    *("-o", "evaluation.sel_env_num=10", "-o", "evaluation.test_env_num=4"),
)
HANDOFF = (
    *("-o", "model.target_backend=handoff", "-o", "model.optimizer_backend=handoff"),
    *("-o", "model.handoff_settle_s=0.1", "-o", "calls.concurrency=1000"),
)
MODELS = {"reader": reader.complete, "analyst": offline.complete}


def train(repository: Path, *options: str):
    return attempt("train", "demo", "--run", "demo", "--quiet", *SHORT, *options, cwd=repository)


def answer_all(folder: Path) -> int:
    """Answer what waits, from nothing but the files."""
    waiting = json.loads((folder / "pending.json").read_text())["pending"]
    for row in waiting:
        messages = [
            Message(role=said["role"], parts=tuple(Text(text=part["text"]) for part in said["parts"]))
            for said in row["messages"]
        ]
        assert (folder / row["prompt"]).is_file()
        (folder / row["answer"]).write_text(MODELS[row["model"]](messages) + "\n")
    return len(waiting)


def test_a_run_goes_from_wave_to_wave_and_decides_the_same(tmp_path):
    offline, handed = (new_repository(tmp_path / name) for name in ("offline", "handed"))
    assert train(offline).code == ExitCode.OK
    waves, most = 0, 40
    while (ended := train(handed, *HANDOFF)).code == ExitCode.HANDOFF:
        assert "Traceback" not in ended.err
        assert "\nskillgit: " in f"\n{ended.err}"
        assert "handoff/PROMPTS.md says where" in ended.err
        assert "hint: skillgit train demo" in ended.err
        assert "--run demo continues it" in ended.err
        assert answer_all(handed / "handoff") > 0
        waves += 1
        assert waves < most
    assert ended.code == ExitCode.OK, ended
    assert waves > 3
    assert decisions(handed, "demo") == decisions(offline, "demo")
    assert skills(handed, "demo") == skills(offline, "demo") != {}
    assert "Nothing waits" in (handed / "handoff/PROMPTS.md").read_text()
    assert git("status", "--porcelain", cwd=handed).out == ""
