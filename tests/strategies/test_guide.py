"""The strategy of the document trains, keeps every promise, and its test finds out where it does not."""

from __future__ import annotations

import importlib
import sys
from itertools import count

import pytest
from documents import blocks, code, page
from program import git, new_repository, skillgit

from skillgit.strategies import Draft, Edit, Op
from skillgit.testing import ConformanceError, check_strategy

STRATEGY, SHOWN_TEST = code("extending.md", "(Strategy):"), code("extending.md", "check_strategy(")
LINES = 30


@pytest.fixture
def guide(tmp_path, monkeypatch):
    (tmp_path / "random_search.py").write_text(STRATEGY, encoding="utf-8")
    (tmp_path / "shown_test.py").write_text(SHOWN_TEST, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("shown_test")
    for name in ("random_search", "shown_test"):
        sys.modules.pop(name, None)


def test_it_is_short():
    assert len(STRATEGY.splitlines()) <= LINES


def test_its_test_passes(guide):
    guide.test_random_search()


def test_a_fault_is_shown_as_it_is_printed(guide):
    numbers = count()

    class RandomSearch(guide.RandomSearch):
        async def propose(self, search):
            return search.propose(Draft(proposals=(Edit(op=Op.APPEND, content=f"- number {next(numbers)}"),)))

    with pytest.raises(ConformanceError) as caught:
        check_strategy(RandomSearch)
    assert f"```\n{caught.value}\n```" in page("extending.md")


def test_its_commands_train_with_it(tmp_path):
    repository = new_repository(tmp_path / "mine")
    (repository / "random_search.py").write_text(STRATEGY, encoding="utf-8")
    (commands,) = blocks("extending.md", "sh")
    described, trained, log = (
        skillgit(*command.removeprefix("skillgit ").split(), cwd=repository) for command in commands.splitlines()
    )
    assert "tries a random few of many edits" in described.out
    assert "optimizer.learning_rate" in described.out
    assert "improved" in trained.out
    assert "v1" in log.out
    assert git("log", "--format=%s", "run/random", cwd=repository).out
    skillgit("fsck", "--deep", cwd=repository)
