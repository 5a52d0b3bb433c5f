"""Every hint leads out of where it stands: whoever types what a clone prints never comes back to where they were."""

from __future__ import annotations

import json
import re
import shlex
from itertools import count
from typing import TYPE_CHECKING

import pytest
from once import copy_folder
from program import attempt, git, new_repository, skillgit
from soaking import sampled, soak
from trained_runs import RUN, small_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from program import Done

COMMANDS = (
    f"eval {RUN}/v1 --fresh --sample 3",
    f"gate --base {RUN}/v0 --head {RUN}/v1",
    f"show {RUN}/v1",
    "why 10",
    f"items {RUN}",
    f"log {RUN} --item nobody",
    f"items {RUN}/v0..{RUN}/v1 --item va-003",
    f"train --run {RUN}",
    "status",
)
ALIKE = (
    f"eval {RUN}/v1 --split test",
    f"show --settings {RUN}",
    f"items {RUN} --item va-003",
    f"diff {RUN}/v0 {RUN}/v1 --items",
    f"log {RUN} --item va-003",
    f"log {RUN} --item va-007",
    f"blame {RUN}/v1",
    f"report {RUN} --output page.html",
    f"export {RUN}/v1 there",
)
HOPS = 3
CONFIG = "demo"
LOOKS = {"finds", "lists", "numbers", "says", "shows"}
"""What follows a command in a hint that answers what was asked, so that nobody asks again."""
PROSE = {*LOOKS, "and", "brings", "goes", "makes", "measures", "rolls", "then"}
"""What follows a command in a sentence."""
OPTION = re.compile(r"(?<!\S)(?:--config CONFIG|-o \S+=PATH)")


@pytest.fixture(scope="module")
def hubs(tmp_path_factory) -> dict[str, Path]:
    """Repositories that a run was pushed to: as it goes, with its evidence, and before its plan went along."""
    folder = tmp_path_factory.mktemp("hubs")
    own = copy_folder(small_run(tmp_path_factory), folder / "own")
    for name, options in {"default": (), "evidence": ("--evidence",), "old": ()}.items():
        git("init", "-q", "--bare", "--initial-branch=main", f"{name}.git", cwd=folder)
        git("remote", "add", name, f"../{name}.git", cwd=own)
        skillgit("push", name, "--no-verify", *options, cwd=own)
    git("update-ref", "-d", f"refs/skillgit/plan/{RUN}", cwd=folder / "old.git")
    return {name: folder / f"{name}.git" for name in ("default", "evidence", "old")}


@pytest.fixture(scope="module")
def clones(hubs, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("clones")
    for name, hub in hubs.items():
        skillgit("clone", *(("--evidence",) if name == "evidence" else ()), hub, name, cwd=folder)
    return {name: folder / name for name in hubs}


@pytest.mark.parametrize("command", [*sampled(COMMANDS, 2), *map(soak, ALIKE)])
@pytest.mark.parametrize("name", ["default", soak("evidence"), soak("old")])
def test_no_path_of_hints_comes_back_to_where_it_was(name, command, clones, tmp_path):
    Walk(tmp_path).go(copy_folder(clones[name], tmp_path / "0"), shlex.split(command), ())


@pytest.mark.parametrize(
    "command", ["eval odd/v0 --fresh --sample 3", "eval odd/v0", "train --run odd", "gate --base main --head odd/v1"]
)
def test_whoever_lacks_the_data_gets_there_too(command, odd, tmp_path):
    hub, data = odd
    skillgit("clone", hub, "0", cwd=tmp_path)
    Walk(tmp_path, data).go(tmp_path / "0", shlex.split(command), ())


class Walk:
    """Follows hints, each in a copy of the repository that it was printed in."""

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        self._folder, self._numbers, self._data = folder, count(1), data

    def go(self, repository: Path, words: list[str], path: tuple[tuple[str, str], ...]) -> bool:
        """Type a command and what its hints say; say whether it had none."""
        done = attempt(*words, cwd=repository)
        assert done.code != 70, done
        state = (shlex.join(words), _same(done, repository))
        assert state not in path, f"it goes in a circle: {[command for command, _ in (*path, state)]}\n{state[1]}"
        hints = list(hinted(done))
        for hint in hints if len(path) < HOPS * 2 else ():
            copy = copy_folder(repository, self._folder / str(next(self._numbers)))
            if hint[0] != "skillgit":
                self.go(copy, [*words, *map(self._filled, hint)], (*path, state))
            elif all(map(_is_typed, hint)):
                is_done = self.go(copy, [word for word in hint[1:] if word not in LOOKS], (*path, state))
                if is_done and hint[-1] not in LOOKS:
                    self.go(copy, words, (*path, state))

        return not hints

    def _filled(self, word: str) -> str:
        return word.replace("CONFIG", CONFIG).replace("PATH", str(self._data))


def hinted(done: Done) -> Iterator[list[str]]:
    """Yield the commands, and the options to add to what was typed, that hints hold."""
    for line in (done.err + done.out).splitlines():
        if not re.match(r"hint: |(?:bring|measure) it", line):
            continue
        yield from (shlex.split(option) for option in OPTION.findall(re.sub(r"skillgit .*?(?:;|, or |$)", "", line)))
        for part in re.findall(r"skillgit (.*?)(?:;|, or |, then |$)", line):
            words = shlex.split(part)
            end = next((index for index, word in enumerate(words) if word in PROSE), len(words))
            yield ["skillgit", *words[:end], *(LOOKS.intersection(words[end : end + 1]))]


def _is_typed(word: str) -> bool:
    return not re.fullmatch(r"[A-Z]{2,}|\[.*|.*=[A-Z]+", word)


def _same(done: Done, repository: Path) -> str:
    """Return what a command said, without the name of the copy that it ran in."""
    return f"{done.code}\n{done.out}\n{done.err}".replace(str(repository), "")


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> tuple[Path, Path]:
    """A repository with a run on somebody's own data, and where they are."""
    folder = tmp_path_factory.mktemp("odd")
    data = folder / "o'clock data" / "t.jsonl"
    data.parent.mkdir()
    rows = [
        {
            "id": f"t{number}",
            "prompt": f"Say {number}.",
            "check": {"type": "exact", "answer": str(number)},
            "split": split,
        }
        for number, split in enumerate(["train", "selection", "test"] * 6)
    ]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    own = new_repository(folder / "own")
    short = ("-o", f"env.data_path={data}", "-o", "train.num_epochs=1", "-o", "optimizer.use_slow_update=false")
    skillgit("train", "tasks/default", "--run", "odd", "-q", *short, cwd=own)
    git("init", "-q", "--bare", "--initial-branch=main", "odd.git", cwd=folder)
    git("remote", "add", "origin", "../odd.git", cwd=own)
    skillgit("push", "--no-verify", cwd=own)
    return folder / "odd.git", data


ODD = "it's $HOME & more"


def test_what_stands_in_a_hint_is_read_by_a_shell_as_it_was_meant(clones, tmp_path):
    """Names of folders, words of a user: a command that is printed can be pasted."""
    told = skillgit("clone", clones["default"], ODD, cwd=tmp_path).out.splitlines()[-1].removeprefix("next")
    assert shlex.split(told.partition("·")[0]) == ["cd", str(tmp_path / ODD)]
    printed = skillgit("why", ODD, cwd=tmp_path / ODD, code=3).err.partition("hint: ")[2]
    assert shlex.split(printed) == ["skillgit", "log", "--grep", ODD]
