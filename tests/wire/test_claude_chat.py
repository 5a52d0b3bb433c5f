"""Training through the Messages API is the training that the offline backend gives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from decisions import decisions, skills
from once import copy_folder
from program import QUICK, new_repository, skillgit
from trained_runs import trained_run

from wire import Faults, wire_server

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-ant-api03-PLANTED0123456789abcdefghijklmnop"
CLAUDE = (
    *("-o", "model.target_backend=claude_chat", "-o", "model.optimizer_backend=claude_chat"),
    *("-o", "model.target=claude-reader-1", "-o", "model.optimizer=claude-analyst-1"),
)
NAMED = ("-o", "model.claude_chat_api_key_env=ANTHROPIC_API_KEY")


def train(repository: Path, *options: str, url: str = "", code: int = 0):
    over_the_wire = (*CLAUDE, *NAMED, "-o", f"model.claude_chat_base_url={url}") if url else ()
    command = ("train", "demo", "--run", "demo", *options, *over_the_wire)
    return skillgit(*command, cwd=repository, env={"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": ""}, code=code)


@pytest.mark.soak
def test_the_demo_learns_the_same_from_claude(tmp_path, tmp_path_factory):
    offline = copy_folder(trained_run(tmp_path_factory, "demo", *QUICK), tmp_path / "offline")
    claude = new_repository(tmp_path / "claude")
    with wire_server() as wire:
        train(claude, *QUICK, url=wire.url)
        paid = Counter(entry.digest for entry in wire.log())
        assert {entry.dialect for entry in wire.log()} == {"messages"}
        assert {entry.role for entry in wire.log()} == {"target", "optimizer"}
    assert set(paid.values()) == {1}
    assert decisions(claude, "demo") == decisions(offline, "demo")
    assert skills(claude, "demo") == skills(offline, "demo") != {}
    skillgit("fsck", "--deep", cwd=claude)
    files = [path for path in claude.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_key_that_is_refused_ends_the_run_at_once_and_is_not_told(tmp_path):
    repository = new_repository(tmp_path / "repository")
    with wire_server(faults=Faults(rate=1, kinds=("unauthorized",))) as wire:
        ended = train(repository, *QUICK, url=wire.url, code=5)
        assert len(wire.log()) < 40
    assert "refused the key (401)" in ended.err
    assert KEY not in ended.err + ended.out
