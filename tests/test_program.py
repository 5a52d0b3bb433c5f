"""A command in a prepared process is the command that a user starts: same bytes, same exit code, same surroundings."""

from __future__ import annotations

import pytest
from program import SKILLGIT, attempt, git, new_repository, run, skillgit
from soaking import soak


@pytest.mark.parametrize("words", [["status"], ["lgo"], *map(soak, [["config", "demo"], ["show", "v1"], ["--help"]])])
def test_a_prepared_process_prints_and_exits_as_a_fresh_one(words, tmp_path):
    repository = new_repository(tmp_path / "repository")
    fresh = run(*SKILLGIT, *words, cwd=repository)

    for _ in range(2):
        prepared = attempt(*words, cwd=repository)
        assert (prepared.code, prepared.out, prepared.err) == (fresh.code, fresh.out, fresh.err)


def test_each_command_has_a_folder_and_surroundings_of_its_own(tmp_path):
    heads = []
    for number, day in enumerate((21, 22, 21)):
        place = tmp_path / str(number)
        place.mkdir()
        skillgit("init", "--env", "searchqa", cwd=place, env={"SKILLGIT_CLOCK": f"2026-11-{day}T12:00:00Z"})
        heads.append(git("rev-parse", "main", cwd=place).out)

    assert heads[0] == heads[2] != heads[1]
