"""Train in an environment through a model server on the loopback, as a user does: in a process, over real HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from program import skillgit
from wire import wire_server

if TYPE_CHECKING:
    from pathlib import Path

    from wire import Entry

QUICK = (
    *("-o", "train.num_epochs=1", "-o", "train.batch_size=4", "-o", "env.limit=4", "-o", "model.target=reader"),
    *("-o", "evaluation.test_env_num=2", "-o", "model.optimizer=analyst"),
)


def train(
    folder: Path, name: str, *options: str, scripted: tuple[tuple[str, str], ...] = (), **server: Any
) -> tuple[Path, list[Entry]]:
    """Train one epoch in the environment ``name``; return the repository and what the models were asked.

    Args:
        folder: Where the repository is made.
        name: The environment; its default configuration is used.
        options: Further options of ``skillgit train``.
        scripted: Replies to questions that contain a word.
        server: Further settings of the server.
    """
    skillgit("init", "repository", "--env", name, cwd=folder)
    repository = folder / "repository"
    backend = "openai_compatible"
    with wire_server(scripted=scripted, **server) as wire:
        roles = ("-o", f"model.target_backend={backend}", "-o", f"model.optimizer_backend={backend}")
        place = ("-o", f"model.{backend}_base_url={wire.url}/v1")
        skillgit("train", f"{name}/default", "--run", "wire", *QUICK, *roles, *place, *options, cwd=repository)
        asked = [entry for entry in wire.log() if entry.role]
    skillgit("fsck", "--deep", cwd=repository)
    return repository, asked


def events(repository: Path) -> list[dict[str, Any]]:
    """Return the events of the run, the newest first."""
    found: list[dict[str, Any]] = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    return found
