"""Every environment that comes with skillgit trains to the end without network, and to the same end after a SIGKILL."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from program import git, python, refs, skillgit
from soaking import soak

MORTAL = Path(__file__).parents[1] / "mortal.py"
NEVER = 10**9
SHORT = ("-o", "train.num_epochs=1", "-o", "optimizer.use_slow_update=false", "-o", "env.limit=3")
NAMES = ("mmrb", "swebench", "alfworld", "babyvision", "docvqa", "livemathematicianbench", "mathverse", "officeqa")
MORE = ("inspect", "sealqa", "searchqa", "spreadsheetbench", "tasks", "trigger")


def trained(repository: Path, name: str, calls: int) -> int:
    """Train until the end, or until the call with this number; return the exit code."""
    if not repository.exists():
        skillgit("init", repository, "--env", name, cwd=repository.parent)
    words = ("-C", repository, "train", f"{name}/default", "--run", "small", "--quiet", *SHORT)
    done = python(MORTAL, "call", str(calls), repository.parent / "log", *words)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


@pytest.mark.slow
@pytest.mark.parametrize("name", [NAMES[0], *map(soak, (*NAMES[1:], *MORE))])
def test_a_killed_training_ends_in_the_same_commits_as_an_unbroken_one(name, tmp_path):
    if name == "alfworld" and find_spec("textworld") is None:
        pytest.skip("the extra alfworld is not installed")
    if name == "inspect":
        pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
    (tmp_path / "unbroken").mkdir()
    (tmp_path / "broken").mkdir()
    unbroken, broken = (tmp_path / folder / "repository" for folder in ("unbroken", "broken"))
    assert trained(unbroken, name, NEVER) == 0
    calls = len((tmp_path / "unbroken" / "log").read_text().splitlines())
    assert trained(broken, name, calls // 2) == -signal.SIGKILL
    assert trained(broken, name, NEVER) == 0
    assert refs(broken) == refs(unbroken)
    assert len((tmp_path / "broken" / "log").read_text().splitlines()) >= calls
    git("fsck", "--strict", cwd=broken)
    skillgit("fsck", "--deep", cwd=broken)


def test_all_of_them_are_tried():
    listed = skillgit("plugins", "--json", cwd=Path(__file__).parent).out
    assert all(f'"name": "{name}"' in listed for name in (*NAMES, *MORE))
