"""A repository with two skills and their reviewed tasks, a host for it, and a stand-in for GitHub's program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from program import git, skillgit

if TYPE_CHECKING:
    from pathlib import Path

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


def fill(folder: Path) -> None:
    repository = folder / "repository"
    for name in ("county", "town"):
        (folder / f"{name}.md").write_text(f"# Chronicle of the {name}\n\nAnswer from the text.\n\nBe brief.\n")
        skillgit("init", repository, "--skill", folder / f"{name}.md", cwd=folder)
        (repository / "tasks").mkdir(exist_ok=True)
        (repository / "tasks" / f"{name}.jsonl").write_text(tasks())
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
