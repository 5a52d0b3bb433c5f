"""A repository of skills with reviewed tasks, a host for it, and proposals there by processes that may be killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from once import copy_folder
from program import git, python, refs, skillgit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MORTAL = Path(__file__).with_name("mortal.py")
NEVER = 10**9

TOWN = {
    "mill burn down": "4 May 1871", "bridge open": "12 June 1902", "school close": "30 July 1954",
    "tram run": "9 March 1899", "dam break": "17 April 1926", "station open": "2 October 1888",
    "harbour freeze": "21 January 1942", "library move": "8 August 1963", "theatre reopen": "15 May 1978",
    "chapel close": "26 February 1931", "fountain dry up": "3 March 1911", "clock stop": "7 July 1944",
    "gate fall": "1 June 1807", "school move": "9 May 1958", "market open": "6 April 1866",
    "ferry sink": "2 March 1919", "mine close": "8 October 1973", "bell crack": "5 August 1849",
    "park open": "11 May 1924", "road flood": "30 November 1987",
}  # fmt: skip
HOST = """\
#!/bin/sh
file="{state}/$(echo "$4" | tr / _).json"
case "$1 $2" in
  "auth status") ;;
  "pr list") cat "$file" 2> {null} || echo "[]" ;;
  "pr create")
    echo "created $4" >> "{state}/log"
    commit=$(git ls-remote "{origin}" "refs/heads/$4" | cut -f 1)
    printf '[{{"url": "https://host/%s", "state": "OPEN", "headRefOid": "%s", "body": "%s"}}]' \\
      "$4" "$commit" "$(grep 'skillgit propose')" > "$file"
    echo "https://host/$4" ;;
  "pr edit")
    echo "edited $3" >> "{state}/log"
    file="{state}/$(echo "${{3#https://host/}}" | tr / _).json"
    body=$(grep "skillgit propose")
    printf '[{{"url": "%s", "state": "OPEN", "headRefOid": "", "body": "%s"}}]' "$3" "$body" > "$file" ;;
  *) exit 98 ;;
esac
"""
"""Stands for GitHub: a file for the pull requests of each branch, and a log of what was done to them."""


def tasks(count: int = 20, asked: str = "When was it?") -> str:
    """Return ``count`` tasks about years, as lines; five of twenty are test items, which is what the gate needs."""
    rows = [
        {"question": f"The {what} on {day}.\n\n{asked}", "answer": day[-4:]} for what, day in [*TOWN.items()][:count]
    ]
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def fill(folder: Path, names: Sequence[str] = ("county", "town"), rule: str = "Be brief.", rows: str = "") -> None:
    """Make a repository of skills that say ``rule``, with ``rows`` or the usual tasks for each."""
    repository = folder / "repository"
    for name in names:
        (folder / f"{name}.md").write_text(f"# Chronicle of the {name}\n\nAnswer from the text.\n\n{rule}\n")
        skillgit("init", repository, "--skill", folder / f"{name}.md", cwd=folder)
        (repository / "tasks").mkdir(exist_ok=True)
        (repository / "tasks" / f"{name}.jsonl").write_text(rows or tasks())
    git("config", "user.name", "P", cwd=repository)
    git("config", "user.email", "p@example.org", cwd=repository)
    git("add", "tasks", cwd=repository)
    git("commit", "-qm", "Add tasks", cwd=repository)


def make_host(repository: Path, folder: Path) -> Path:
    """Return the folder of a host that is origin: ``bin`` goes on the PATH, ``log`` says what was done there."""
    host = folder / "host"
    (host / "bin").mkdir(parents=True)
    git("clone", "-q", "--bare", repository, host / "origin.git", cwd=folder)
    git("remote", "add", "origin", host / "origin.git", cwd=repository)
    program = host / "bin" / "gh"
    program.write_text(HOST.format(state=host, origin=host / "origin.git", null="/dev/null"))
    program.chmod(0o755)
    return host


def propose(
    repository: Path, host: Path, *words: str, moment: str = "never", count: int = NEVER, codes: Collection[int] = (0,)
) -> int:
    """Propose with a pull request, in a process that kills itself at the ``count``-th ``moment``."""
    env = {"PATH": f"{host / 'bin'}{os.pathsep}{os.environ['PATH']}", "PLANTED_LOG": str(host / "calls")}
    if moment == "planted":
        env["PLANTED_DEATH"] = str(count)
    command = ("-C", repository, "propose", "--pull-request", "--quiet", *words)
    done = python(MORTAL, moment, str(count), host / "calls", *command, env=env)
    assert done.code in {*codes, -signal.SIGKILL}, done
    return done.code


def undisturbed(source: Path, folder: Path, *words: str, codes: Collection[int] = (0,)) -> tuple[object, ...]:
    """Return the end of a proposal that nothing kills, in a copy of ``source`` with a host."""
    repository = copy_folder(source, folder / "repository")
    host = make_host(repository, folder)
    assert propose(repository, host, *words, codes=codes) in codes
    return end(repository, host)


def end(repository: Path, host: Path) -> tuple[object, ...]:
    """Return all that counts in the end: refs here and there, what was bought, and what the host was asked to do."""
    asked = (host / "log").read_text().splitlines()
    return refs(repository), refs(host / "origin.git"), len((host / "calls").read_text().splitlines()), sorted(asked)
