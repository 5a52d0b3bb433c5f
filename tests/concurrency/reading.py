"""A process that reads while another one trains: ``reading.py QUESTION REPOSITORY PROGRESS END``.

It asks its question again and again until the file END is there, and once more after that. It ends with 1 and says why
as soon as an answer lacks what PROGRESS had promised before it was asked; else it says how often it asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.index import queries

if TYPE_CHECKING:
    from collections.abc import Callable

RUN, SHOWN = "demo", 40


def ask_log(context: Context, promised: dict[str, Any], now: Callable[[], dict[str, Any]]) -> bool:
    rows = printed(context, "log", RUN, "-n", str(SHOWN), "--json")
    return promised["commit"].encode() in rows or now()["events"] - promised["events"] >= SHOWN


def ask_diff(context: Context, promised: dict[str, Any], _: object) -> bool:
    words = ("diff", f"{RUN}/v0", f"{RUN}/v{promised['version']}")
    return bool(printed(context, *words)) or promised["version"] == 0


def ask_index(context: Context, promised: dict[str, Any], _: object) -> bool:
    with Workspace(context) as workspace:
        row = queries.row_of_commit(workspace.index, promised["commit"])
        return row is not None and queries.events_of(workspace.index, RUN) >= promised["events"]


def ask_items(context: Context, *_: object) -> bool:
    return bool(json.loads(printed(context, "items", RUN, "--json")))


def printed(context: Context, *words: str) -> bytes:
    """Run a command of the program, which must succeed silently, and return what it printed."""
    command = [sys.executable, "-m", "skillgit", "-C", str(context.directory), *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode or done.stderr:
        sys.exit(f"{' '.join(words)}: {done.stderr.decode()}")
    return done.stdout


QUESTIONS = {"log": ask_log, "diff": ask_diff, "index": ask_index, "items": ask_items}


def main() -> None:
    question, folder, progress, end = QUESTIONS[sys.argv[1]], *map(Path, sys.argv[2:])
    context, asked = Context.from_process(folder), 0

    def promise() -> dict[str, Any]:
        return json.loads(progress.read_text())

    while True:
        last = end.exists()
        promised = promise()
        asked += 1
        if not question(context, promised, promise):
            sys.exit(f"{sys.argv[1]} does not know event {promised['events']}, commit {promised['commit']}")
        if last:
            break
    sys.stderr.write(f"{asked}\n")


if __name__ == "__main__":
    main()
