"""Drafts as a harvest leaves them: real tasks where the data are there, and those that come with skillgit otherwise."""

from __future__ import annotations

import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
SKILL = "answering"
ORIGIN = {
    "agent": "claude",
    "version": "2.1.330",
    "session": "5e55" * 4,
    "date": "2026-11-20",
    "skill": SKILL,
    "use": "user",
    "tree": "",
    "commit": "",
    "project": "9407" * 4,
    "signals": ["correction"],
    "follow_up": "No, only the number.",
}


def prompts() -> list[str]:
    """Return what people asked, one text for each task."""
    dataset = DATA / "spreadsheetbench" / "dataset.json"
    if dataset.is_file():
        return [row["instruction"] for row in json.loads(dataset.read_text(encoding="utf-8"))]
    folder = files("skillgit_envs") / "tasks" / "data"
    paths = sorted(Path(str(folder)).rglob("*.jsonl"))
    return [json.loads(line)["prompt"] for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def group(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def draft(identity: str, **fields: object) -> dict[str, object]:
    row = {"id": identity, "status": "draft", "group": group(identity), "origin": ORIGIN, "rubric": "It does as asked."}
    return {**row, **fields}


def write_drafts(
    repository: Path, rows: Sequence[Mapping[str, object]], contents: Mapping[str, bytes] = {}, skill: str = SKILL
) -> Path:
    """Write rows, and files by their path below the folder of drafts; return ``drafts.jsonl``."""
    folder = Repo.discover(repository).private_dir / "drafts" / skill
    folder.mkdir(parents=True, mode=0o700)
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    path = folder / "drafts.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
