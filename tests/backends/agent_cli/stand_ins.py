"""Programs that stand in for agents: small scripts that note what they were given and follow a protocol."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillgit.plugin.backend import Request, system, user

HEAD = '''#!{python} -I
import json, os, subprocess, sys, time
from pathlib import Path

NOTES = Path({notes!r})
ARGUMENTS = sys.argv[1:]


def say(event):
    print(json.dumps(event), flush=True)


def option(name):
    """Return the value of an option, attached or as the next word."""
    for number, word in enumerate(ARGUMENTS):
        if word == name:
            return ARGUMENTS[number + 1]
        if word.startswith(name + "="):
            return word[len(name) + 1:]


def note(**more):
    files = {{str(path.relative_to(Path.cwd())): path.read_bytes().decode("latin-1")
             for path in Path.cwd().rglob("*") if path.is_file()}}
    homes = {{str(path.relative_to(os.environ["HOME"])): path.read_text()
             for path in Path(os.environ["HOME"]).rglob("*") if path.is_file()}}
    seen = {{"arguments": ARGUMENTS, "environment": dict(os.environ), "folder": os.getcwd(), "files": files,
            "home": homes, **more}}
    target = NOTES / f"{{time.time_ns()}}-{{os.getpid()}}.json"  # process numbers begin again
    target.with_suffix(".part").write_text(json.dumps(seen))
    target.with_suffix(".part").rename(target)

'''
"""What every stand-in begins with."""

HANG = """
def child(**how):
    return subprocess.Popen([sys.executable, "-I", "-c", "import time; time.sleep(600)"], **how).pid


# The agent; a child in its group; one that left it with an empty environment; one that left it and lost its parent.
orphan = (
    "import os, subprocess, sys; "
    "print(subprocess.Popen([sys.executable, '-I', '-c', 'import time; time.sleep(600)'], "
    "start_new_session=True, stdout=subprocess.DEVNULL).pid)"
)
lost = int(subprocess.run([sys.executable, "-I", "-c", orphan], stdout=subprocess.PIPE, check=True).stdout)
note(children=[os.getpid(), child(), child(start_new_session=True, env={}), lost])
time.sleep(600)
"""
"""What a stand-in does that never ends and has children of all kinds."""

SKILL = "# Trivia\n\nAnswer in one word."


def write_agent(folder: Path, body: str) -> tuple[str, Path]:
    """Write a stand-in and return its path and the folder of its notes."""
    notes = folder / "notes"
    notes.mkdir(exist_ok=True)
    path = folder / "agent"
    path.write_text(HEAD.format(python=sys.executable, notes=str(notes)) + body, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path), notes


def noted(notes: Path) -> list[dict[str, Any]]:
    """Return what stand-ins noted, oldest first."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(notes.glob("*.json"))]


async def first_note(notes: Path, task: asyncio.Task[Any]) -> dict[str, Any]:
    """Wait until a stand-in that ``task`` runs has noted something."""
    while not (found := noted(notes)):
        assert not task.done(), task.result()
        await asyncio.sleep(0.01)
    return found[0]


def is_alive(number: int) -> bool:
    """Say whether a process lives; one that nobody has buried yet does not."""
    try:
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def running(word: str) -> list[int]:
    """Return the processes with ``word`` in their command lines."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if word.encode() in path.read_bytes():
                numbers.append(int(path.parent.name))
    return [number for number in numbers if is_alive(number)]


def trivia(**more: Any) -> Request:
    """Return a request as an environment makes it: the skill in the system message."""
    text = f'You answer trivia.\n\n<skill name="searchqa">\n{SKILL}\n</skill>\n\nEnd with <answer>.'
    return Request(model="a-model", messages=(system(text), user("Which river runs through Paris?")), **more)
