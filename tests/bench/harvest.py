"""``make bench-harvest``: how long 500 sessions of 2 MB take to read, and how much memory; no model is asked.

The sessions are made of records that Claude Code has kept, with ids of their own, and filled up with requests as they
were sent and snapshots of prompts, which are most of a real file. The rival is ``json.loads`` of every line.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID, uuid5

sys.path.insert(0, str(Path(__file__).parents[1] / "app" / "sources" / "sessions"))
import measure
import worlds

from skillgit.app.sources.harvest import harvest
from skillgit.app.sources.requests import DraftRequest
from skillgit.app.workspace.context import Context

SESSIONS, SIZE = measure.sized((500, 2_000_000), (2, 2_000))
SPACE = UUID(int=7)
SHARE = 0.12
"""Of a session of fourteen calls, the part that is conversation; the rest are requests and prompts."""


def templates(folder: Path) -> list[str]:
    files = json.loads((worlds.RECORDINGS / "claude.json").read_text())
    lines = max(files.values(), key=len)
    slots = {f"@{slot}@": slot for slot in worlds.SLOTS} | {
        "@project@": str(folder),
        "@commit@": "0" * 40,
        "@short@": "0" * 7,
    }
    text = "\n".join(lines)
    for slot, value in slots.items():
        text = text.replace(slot, value)
    return text.split("\n")


def session(number: int, lines: list[str]) -> str:
    """Return a session of the size of a long real one."""
    identities = sorted({value for line in lines for key, value in json.loads(line).items() if key == "uuid"})
    parts, size, round_ = [], 0, 0
    blob = json.dumps(
        {
            "type": "api-request-blob",
            "sessionId": "s",
            "hash": "0" * 64,
            "message": {"role": "user", "content": "x" * 40_000},
        }
    )
    shape = {
        "type": "attachment",
        "isSidechain": False,
        "attachment": {"type": "prompt_snapshot", "text": "y" * 70_000},
    }
    while size < SIZE:
        text = "\n".join(lines)
        for identity in identities:
            text = text.replace(identity, str(uuid5(SPACE, f"{number} {round_} {identity}")))
        fill = int(len(text) / SHARE) - len(text)
        fillers = [blob] * (fill // 2 // len(blob)) + [json.dumps(shape)] * (fill // 2 // 70_000)
        parts += [text, *fillers]
        size, round_ = sum(map(len, parts)), round_ + 1
    return "\n".join(parts) + "\n"


def main() -> None:
    with TemporaryDirectory(prefix="bench-harvest-") as name:
        folder, config = Path(name) / "shop", Path(name) / "config"
        folder.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        encoded = "".join(sign if sign.isalnum() else "-" for sign in str(folder))
        target = config / "projects" / encoded
        target.mkdir(parents=True)
        lines = templates(folder)
        for number in range(SESSIONS):
            (target / f"{UUID(int=number)}.jsonl").write_text(session(number, lines))
        size = sum(file.stat().st_size for file in target.iterdir())
        began = time.process_time()
        for file in sorted(target.iterdir()):
            with file.open("rb") as stream:
                for line in stream:
                    json.loads(line)
        parsed = time.process_time() - began
        context = replace(Context.from_process(folder), environ={**os.environ, "CLAUDE_CONFIG_DIR": str(config)})
        began, cpu = time.perf_counter(), time.process_time()
        result = harvest(context, DraftRequest(subject="totals", source="claude", dry_run=True))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {
        "sessions": result.sessions,
        "turns": result.turns,
        "drafts": len(result.drafts),
        "mb": round(size / 1e6),
        "seconds": round(seconds, 1),
        "cpu_s": round(cpu, 1),
        "peak_mb": round(peak),
        "json_loads_cpu_s": round(parsed, 1),
    }
    measure.report("Sessions read", [[name, str(value)] for name, value in figures.items()], figures)


if __name__ == "__main__":
    main()
