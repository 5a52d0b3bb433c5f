"""``skillgit lint --library --base``: an edit that shadows one of fifty neighbours is refused, an honest one passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import ask
from program import git
from trained_runs import user

from skillgit.app.measure.library_gate import library_gate
from skillgit.errors import ExitCode, NotFoundError

WHO = ("-c", "user.name=P", "-c", "user.email=p@example.org")
OWN = "skills/s07"


def write(folder: Path, description: str, name: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(
        f'---\nname: {name or folder.name}\ndescription: "{description}"\n---\n\nDo it.\n', encoding="utf-8"
    )


@pytest.fixture(scope="module")
def seeded(tmp_path_factory) -> Path:
    """A repository with one of fifty installed skills."""
    root = tmp_path_factory.mktemp("library")
    for number in range(50):
        write(root / "lib" / f"s{number:02d}", f"Does job {number:02d} of it.")
    repository = root / "repository"
    repository.mkdir()
    git("init", "-q", "-b", "main", cwd=repository)
    write(repository / OWN, "Does job 07 of it.")
    git("add", "-A", cwd=repository)
    git(*WHO, "commit", "-qm", "seed", cwd=repository)
    return root


def verdict(root: Path, description: str, *, path: str = OWN, name: str = ""):
    repository = root / "repository"
    git("checkout", "-q", "--detach", "main", cwd=repository)
    write(repository / path, description, name)
    git("add", "-A", cwd=repository)
    git(*WHO, "commit", "-qm", "edit", cwd=repository)
    return ask(library_gate, user(repository), "main", "HEAD", root / "lib")


def test_an_honest_edit_passes(seeded):
    found = verdict(seeded, "Does job 07 better.")
    assert (found.exit_code, found.skills, found.changes, found.shadowings) == (ExitCode.OK, 50, ("s07",), ())


def test_an_edit_that_takes_the_room_of_neighbours_is_refused(seeded):
    found = verdict(seeded, "Does job 07 of it. " + "And so much more that nobody reads it. " * 30)
    assert found.exit_code is ExitCode.NO
    assert {shadowing.sentence for shadowing in found.shadowings} == {
        "Claude Code lists it as name only, because the library grows"
    }
    assert {shadowing.by for shadowing in found.shadowings} == {("s07",)}


def test_a_description_nearly_that_of_a_neighbour_is_refused(seeded):
    found = verdict(seeded, "Does job 08 of it!")
    assert [(shadowing.skill, shadowing.by) for shadowing in found.shadowings] == [("s08", ("s07",))]


def test_a_second_skill_of_a_name_is_refused(seeded):
    found = verdict(seeded, "Quite another thing.", path="skills/new", name="s33")
    assert ("s33", "both have the same name") in {(each.skill, each.sentence) for each in found.shadowings}
    assert found.skills == 51


def test_a_library_that_is_none_is_refused(seeded):
    with pytest.raises(NotFoundError, match="no installed skills"):
        ask(library_gate, user(seeded / "repository"), "main", "main", Path("nowhere"))
