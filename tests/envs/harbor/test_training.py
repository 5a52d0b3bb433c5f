"""Trainings on Harbor's tasks with the real package: an agent asks the served model, and gets a better skill.

``SKILLGIT_HARBOR`` names a Python that has Harbor.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from desk_models import RULE
from harbor_trials import environment_of
from program import git, python, refs, skillgit

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
MORTAL = HERE.parents[1] / "mortal.py"
NEVER = 10**9
MODELS = f"{HERE / 'desk_models.py'}:DeskModels"
SHORT = (
    *("-o", "train.num_epochs=1", "-o", "train.batch_size=2", "-o", "optimizer.use_slow_update=false"),
    *("-o", f"model.target_backend={MODELS}", "-o", f"model.optimizer_backend={MODELS}"),
    *("-o", "model.target=clerk", "-o", "model.optimizer=analyst", "-o", "evaluation.gate_metric=soft"),
    *("-o", f"env.data_path={HERE / 'tasks'}", "-o", f"env.modules={HERE / 'agents'}"),
    *("-o", "env.agent=desk_agent:DeskAgent"),
)


def train(repository: Path, interpreter: str, environment: str = "bubblewrap", *, die: int = NEVER, **variables: str):
    """Train until the end, or until so many replies are recorded; return the exit code."""
    if not repository.exists():
        repository.parent.mkdir(exist_ok=True)
        skillgit("init", repository, "--env", "harbor", cwd=repository.parent)
    temporary = repository.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    options = ("-o", f"env.python={interpreter}", "-o", f"env.environment={environment}")
    words = ("-C", repository, "train", "harbor/default", "--run", "slips", "--quiet", *SHORT, *options)
    surroundings = {"TMPDIR": str(temporary), **variables}
    done = python(MORTAL, "recorded", str(die), repository.parent / "log", *words, env=surroundings)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


def gone(temporary: Path) -> None:
    """Wait until no process is left that a training began, which has removed what it had then."""
    while processes(temporary):
        time.sleep(0.05)
    assert not any(temporary.glob("skillgit-harbor-*"))


def processes(temporary: Path) -> list[str]:
    mark = str(temporary)
    listed = subprocess.run(["ps", "-wweo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if mark in line and " ps " not in line]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    interpreter = os.environ.get("SKILLGIT_HARBOR", "")
    if not interpreter or shutil.which("bwrap") is None:
        pytest.skip("SKILLGIT_HARBOR has to name a Python with the package harbor, and bubblewrap has to be installed")
    repository = tmp_path_factory.mktemp("unbroken") / "repository"
    assert train(repository, environment_of(interpreter)) == 0
    return repository


def test_a_skill_gets_better(unbroken):
    events = json.loads(skillgit("log", "--json", cwd=unbroken).out)["events"]
    scores = [row["score"] for row in events if row["version"] is not None]
    assert (scores[-1], scores[0]) == (0.5, 1.0), "oldest last"
    assert RULE in git("show", "run/slips:skills/harbor/SKILL.md", cwd=unbroken).out
    skillgit("fsck", "--deep", cwd=unbroken)
    gone(unbroken.parent / "temporary")


def test_the_conversation_is_recorded_and_no_token_and_no_address(unbroken):
    everything = git("log", "--all", "-p", "--format=%B", cwd=unbroken).out
    assert "I write it." in everything
    assert "output: " in everything
    assert "127.0.0.1" not in everything
    assert "sg-" not in everything


@pytest.mark.parametrize("die", [5, pytest.param(14, marks=pytest.mark.soak)])
def test_a_killed_training_ends_in_the_same_commits(unbroken, real_python, tmp_path, die):
    repository = tmp_path / "repository"
    assert train(repository, real_python, die=die) == -signal.SIGKILL
    gone(tmp_path / "temporary")
    assert train(repository, real_python) == 0
    assert refs(repository) == refs(unbroken)
    gone(tmp_path / "temporary")


def test_a_training_whose_runner_is_killed_ends_in_the_same_commits(unbroken, real_python, tmp_path):
    repository = tmp_path / "repository"
    assert train(repository, real_python, KILL_RUNNER="6") == 0
    assert refs(repository) == refs(unbroken)
    gone(tmp_path / "temporary")
