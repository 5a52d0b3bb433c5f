"""A training on a task of Inspect ends in the same commits whether or not it was killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from program import git, python, refs, skillgit
from samples_at_work import HERE

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
from own_tasks import NAMES

MORTAL = Path(__file__).parents[2] / "mortal.py"
NEVER = 10**9
MODELS = {
    f"{role}{kind}": value
    for role in ("target", "judge")
    for kind, value in (("", "script"), ("_backend", f"{HERE}/script.py:Scripted"))
}
SHORT = {
    "train.num_epochs": 2,
    "train.batch_size": 3,
    "train.stop_at_ceiling": "false",
    "optimizer.use_slow_update": "false",
}


def trained(repository, options, moment, count):
    """Train until the end, or until a moment has come ``count`` times; return how it ended."""
    if not repository.exists():
        skillgit("init", repository, "--env", "inspect", cwd=repository.parent)
    settings = {**{f"model.{name}": value for name, value in MODELS.items()}, **SHORT, "env.split_ratio": "2:1:1"}
    settings |= {f"env.{name}": str(value).lower() if value is True else value for name, value in options.items()}
    words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    train = ("-C", repository, "train", "inspect/default", "--run", "small", "--quiet", *words)
    folder = repository.parent / f"{moment}-{count}"
    folder.mkdir()
    done = python(MORTAL, moment, str(count), repository.parent / "log", *train, env={"TMPDIR": str(folder)})
    assert done.code in {0, -signal.SIGKILL}, done
    assert (done.out, done.err) == ("", "") if done.code else "nspect" not in done.out + done.err, done
    if not done.code:
        assert list(folder.iterdir()) == []
    return done


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_a_killed_training_ends_in_the_same_commits_as_an_unbroken_one(name, tmp_path):
    options = {"task_file": f"{HERE}/own_tasks.py@{name}", **NAMES[name]}
    repositories = [tmp_path / folder / "repository" for folder in ("unbroken", "broken")]
    for repository in repositories:
        repository.parent.mkdir()
    unbroken, broken = repositories
    whole = trained(unbroken, options, "recorded", NEVER)
    assert whole.code == 0
    assert trained(broken, options, "recorded", 15).code == -signal.SIGKILL
    assert trained(broken, options, "recorded", NEVER).code == 0
    assert refs(broken) == refs(unbroken)
    git("fsck", "--strict", cwd=broken)
    skillgit("fsck", "--deep", cwd=broken)
