"""A training that loses power at any moment goes on to the same commits, or does once it is repaired."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from disk import Disk, Operation, operations
from program import QUICK, Done, git, new_repository, python, refs, run, skillgit
from soaking import soak

HERE = Path(__file__).parent
MORTAL = HERE.parent / "mortal.py"
NEVER = str(10**9)
SMALL = ("train", "demo", "--run", "small", "--quiet", *QUICK)
MOMENTS = 200
USUAL = 1
CALLS = "calls.log"


@dataclass(frozen=True)
class Recorded:
    """A training of which every system call on its files is known.

    Attributes:
        before: The disk as it was before.
        operations: What was done to it.
        log: The file, by its inode, that gets a line with every call.
        refs: What it came to.
        calls: How many calls it took.
        dearest: How many calls its dearest event took.
    """

    before: Disk
    operations: list[Operation]
    log: int
    refs: dict[str, str]
    calls: int
    dearest: int


def train(root: Path) -> Done:
    return python(MORTAL, "call", NEVER, root / CALLS, "-C", root / "repository", *SMALL)


def calls(root: Path) -> int:
    return len((root / CALLS).read_bytes().splitlines())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc to make the layer that records system calls")
    folder = tmp_path_factory.mktemp("power").resolve()
    library, root = folder / "record.so", folder / "root"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "record.c", "-ldl"], check=True)
    root.mkdir()
    repository = new_repository(root / "repository")
    (root / CALLS).touch()
    before = Disk(root)
    layer = {"LD_PRELOAD": str(library), "POWER_ROOT": str(root), "POWER_LOG": str(folder / "record")}
    done = run(sys.executable, MORTAL, "call", NEVER, root / CALLS, "-C", repository, *SMALL, env=layer)
    assert done.code == 0, done
    costs = git("log", "--all", "--format=%B", cwd=repository).out
    return Recorded(
        before=before,
        operations=list(operations(folder / "record")),
        log=(root / CALLS).stat().st_ino,
        refs=refs(repository),
        calls=calls(root),
        dearest=max(map(int, re.findall(r"^Skillgit-Cost: calls=(\d+)", costs, re.MULTILINE))),
    )


def test_the_record_is_that_of_the_training(recorded, tmp_path):
    """Played to its end and confirmed, it gives what the training left."""
    disk = deepcopy(recorded.before)
    for operation in recorded.operations:
        disk.do(operation)
    disk.confirm()
    disk.top.write(tmp_path / "root", Random(0))  # noqa: S311 - repeatable
    assert refs(tmp_path / "root" / "repository") == recorded.refs
    skillgit("fsck", "--deep", cwd=tmp_path / "root" / "repository")


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", [at if at % (MOMENTS // USUAL) == MOMENTS // 4 else soak(at) for at in range(MOMENTS)]
)
def test_a_training_that_loses_power_goes_on_to_the_same_commits(moment, recorded, tmp_path):
    random, disk = Random(moment), deepcopy(recorded.before)  # noqa: S311 - repeatable
    end = (moment * len(recorded.operations) + random.randrange(len(recorded.operations))) // MOMENTS
    for operation in recorded.operations[:end]:
        disk.do(operation)
    root = tmp_path / "root"
    disk.top.write(root, random)
    bought = sum(operation.kind == "W" and operation.inode == recorded.log for operation in recorded.operations[:end])
    (root / CALLS).write_bytes(b"")
    done = train(root)
    assert "Traceback" not in done.err, done
    if done.code != 0:
        assert "skillgit fsck --repair" in done.err, done
        skillgit("fsck", "--repair", cwd=root / "repository")
        done = train(root)
        assert done.code == 0, done
    assert refs(root / "repository") == recorded.refs
    assert bought + calls(root) - recorded.calls <= recorded.dearest
    # a transaction leaves its lock behind where nobody moves the ref any more
    skillgit("fsck", "--deep", "--repair", cwd=root / "repository")
    assert refs(root / "repository") == recorded.refs
