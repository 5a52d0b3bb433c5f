"""``propose`` that is killed at any moment, and typed again, ends as if it never was, for two skills and a host."""

from __future__ import annotations

import signal

import pytest
from program import git, skillgit
from soaking import soak
from town_host import end, propose, undisturbed

STAGES = ("before-push", "after-pin", "after-branch", "before-pin", "before-branch", "after-push", "before-request",
          "after-request", "refs", "objects")  # fmt: skip
MOMENTS = [
    *((stage, count) for count in (1, 2) for stage in STAGES),
    *(("call", count) for count in (1, 4, 9, 17, 25, 33, 41, 50)),
    *(("after-pin", count) for count in (3, 4, 5)),
]


@pytest.fixture(scope="module")
def unbroken(two_skills, tmp_path_factory):
    return undisturbed(two_skills, tmp_path_factory.mktemp("unbroken"))


@pytest.mark.parametrize(("moment", "count"), [soak(*pair) if n else pair for n, pair in enumerate(MOMENTS)])
def test_it_is_followed_by_one_that_does_what_is_left(moment, count, repository, host, unbroken):
    first = propose(repository, host, moment=moment, count=count)
    assert first == -signal.SIGKILL
    assert propose(repository, host) == 0
    assert end(repository, host) == unbroken
    skillgit("fsck", cwd=repository)


EDITED = ("after-pin", 1), ("call", 20), ("refs", 2), ("before-branch", 1), ("after-branch", 1), ("after-push", 1)


@pytest.mark.parametrize(("moment", "count"), [pair if n == 3 else soak(*pair) for n, pair in enumerate(EDITED)])
def test_an_edit_between_a_kill_and_the_next_try_is_lost_nowhere(moment, count, repository, host, unbroken):
    pinned = git("rev-parse", "main", cwd=repository).out
    assert propose(repository, host, moment=moment, count=count) == -signal.SIGKILL
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
