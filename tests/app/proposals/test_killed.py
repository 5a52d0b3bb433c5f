"""``propose`` that is killed at any moment, and typed again, ends as if it never was, for two skills and a host."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from once import copy_folder
from program import git, python, refs, skillgit
from soaking import soak
from town_host import make_host

MORTAL = Path(__file__).parents[2] / "mortal.py"
NEVER = 10**9
STAGES = ("before-push", "after-pin", "after-branch", "before-pin", "before-branch", "after-push", "before-request",
          "after-request", "refs", "objects")  # fmt: skip
MOMENTS = [
    *((stage, count) for count in (1, 2) for stage in STAGES),
    *(("call", count) for count in (1, 4, 9, 17, 25, 33, 41, 50)),
    *(("after-pin", count) for count in (3, 4, 5)),
]


def propose(repository: Path, host: Path, moment: str = "call", count: int = NEVER) -> int:
    words = ("-C", repository, "propose", "--pull-request", "--quiet")
    path = f"{host / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = python(MORTAL, moment, str(count), host / "calls", *words, env={"PATH": path})
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


def end(repository: Path, host: Path) -> tuple[object, ...]:
    """Return all that counts in the end: refs here and there, what was bought, and what the host was asked to do."""
    asked = (host / "log").read_text().splitlines()
    return refs(repository), refs(host / "origin.git"), len((host / "calls").read_text().splitlines()), sorted(asked)


@pytest.fixture(scope="module")
def unbroken(two_skills, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    repository = copy_folder(two_skills, folder / "repository")
    host = make_host(repository, folder)
    assert propose(repository, host) == 0
    return end(repository, host)


@pytest.mark.parametrize(("moment", "count"), [soak(*pair) if n else pair for n, pair in enumerate(MOMENTS)])
def test_it_is_followed_by_one_that_does_what_is_left(moment, count, repository, host, unbroken):
    first = propose(repository, host, moment, count)
    assert first == -signal.SIGKILL
    assert propose(repository, host) == 0
    assert end(repository, host) == unbroken
    skillgit("fsck", cwd=repository)


EDITED = ("after-pin", 1), ("call", 20), ("refs", 2), ("before-branch", 1), ("after-branch", 1), ("after-push", 1)


@pytest.mark.parametrize(("moment", "count"), [pair if n == 3 else soak(*pair) for n, pair in enumerate(EDITED)])
def test_an_edit_between_a_kill_and_the_next_try_is_lost_nowhere(moment, count, repository, host, unbroken):
    pinned = git("rev-parse", "main", cwd=repository).out
    assert propose(repository, host, moment, count) == -signal.SIGKILL
    document, other = repository / "skills/county/SKILL.md", repository / "skills/town/SKILL.md"
    document.write_text(document.read_text().replace("from the text.", "from the text alone."))
    other.write_text("not committed")
    git("commit", "-qm", "Edit by hand", "--", "skills/county", cwd=repository)
    edited = git("rev-parse", "main", cwd=repository).out
    assert propose(repository, host) == 0
    here, there, bought, asked = end(repository, host)
    assert asked == unbroken[3]
    assert here.keys() - {"refs/notes/skillgit/evals"} == unbroken[0].keys()
    assert here["refs/heads/propose/county"] == there["refs/heads/propose/county"]
    assert (here["refs/heads/main"], other.read_text()) == (edited.strip(), "not committed")
    assert git("rev-parse", "propose/town~", cwd=repository).out in {pinned, edited}
    is_merged = git("rev-parse", "propose/county~", cwd=repository).out == edited
    text = git("show", "propose/county:skills/county/SKILL.md", cwd=repository).out
    assert ("from the text alone." in text) == is_merged
    assert is_merged == (moment not in {"after-branch", "after-push"})
    # the base as it is now and what a merge makes of both were measured on five items, and nothing was bought twice
    assert bought == unbroken[2] + (10 if is_merged else 0)
