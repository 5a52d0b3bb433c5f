"""The demo in every update mode and with every way to merge and to set the edit budget."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from once import copy_folder, once
from program import QUICK, git, new_repository, python, refs, skillgit
from soaking import soak
from trained_runs import trained_run

MORTAL = Path(__file__).with_name("mortal.py")
NEVER = 10**9
MODES = {
    "suggestions": ("-o", "optimizer.skill_update_mode=rewrite_from_suggestions"),
    "full": ("-o", "optimizer.skill_update_mode=full_rewrite_minibatch"),
    "one-call": ("-o", "optimizer.aggregate=one_call"),
    "autonomous": ("-o", "optimizer.lr_control_mode=autonomous"),
    "none": ("-o", "optimizer.lr_control_mode=none"),
    "accumulation": ("-o", "train.accumulation=2", "-o", "train.batch_size=8"),
}
SELDOM = ("full", "none", "accumulation")
"""Modes whose stages tests/engine/test_modes.py goes through; the program adds nothing of its own to them."""
DEATHS = [
    soak(mode, *moment)
    for mode in ("suggestions", "full", "one-call", "autonomous")
    for moment in (("call", 33), ("recorded", 64), ("refs", 3))
]
"""``make test`` interrupts every mode in tests/engine/test_modes.py, and kills the program in tests/test_resume.py."""


@pytest.fixture(scope="module", params=["suggestions", *map(soak, ["one-call", "autonomous", *SELDOM])])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    made = trained_run(tmp_path_factory, "demo", "-o", "train.num_epochs=2", *MODES[request.param])
    return request.param, copy_folder(made, tmp_path_factory.mktemp(request.param) / "repository")


@pytest.mark.slow
def test_the_demo_learns_on_selection_and_on_test(trained):
    _, repository = trained
    rows = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    kinds = [row["kind"] for row in rows]
    assert kinds.count("accepted") >= 3
    assert kinds.count("rejected") >= 1
    line = git("log", "-1", "--format=%(trailers:key=Skillgit-Eval,valueonly)", "run/demo", cwd=repository).out
    hard = [float(found) for found in re.findall(r"hard=([\d.]+)", line)]
    assert hard[1] > hard[0] + 0.2


@pytest.mark.slow
def test_history_is_sound_and_says_the_mode(trained):
    name, repository = trained
    skillgit("fsck", "--deep", cwd=repository)
    assert git("fsck", "--strict", cwd=repository).out == ""
    patches = git("log", "--format=%(trailers:key=Skillgit-Patch,valueonly)", "run/demo", cwd=repository).out
    told = {
        "suggestions": "mode=rewrite_from_suggestions",
        "full": "by=none mode=full_rewrite_minibatch",
        "autonomous": "by=optimizer",
        "none": "by=none",
    }
    assert told.get(name, "budget=") in patches
    assert skillgit("show", "v1", cwd=repository).out


@pytest.mark.slow
def test_frontmatter_and_slow_region_stay(trained):
    _, repository = trained
    for version in git("tag", "--list", "demo/v*", cwd=repository).out.split():
        text = git("show", f"{version}:skills/searchqa/SKILL.md", cwd=repository).out
        seed = git("show", "demo/v0:skills/searchqa/SKILL.md", cwd=repository).out
        assert text.startswith(seed[: seed.index("---\n", 4) + 4])
        assert text.count("<!-- skillgit:slow -->") == text.count("<!-- /skillgit:slow -->") <= 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", [soak("suggestions"), soak("full")])
def test_workers_change_nothing(mode, tmp_path):
    found = []
    for workers in ("1", "7"):
        repository = new_repository(tmp_path / workers)
        pace = ("-o", f"gradient.analyst_workers={workers}", "-o", f"calls.concurrency={workers}")
        skillgit("train", "demo", "--run", "small", *QUICK, *MODES[mode], *pace, cwd=repository)
        told = git("log", "--branches", "--format=%T %B", cwd=repository).out
        # The evidence holds the configuration as it was written, the pace included.
        found.append(sorted(line for line in told.splitlines() if not line.startswith("Skillgit-Evidence: ")))
    assert found[0] == found[1]


def train(repository: Path, mode: str, moment: str, count: int, log: Path) -> int:
    small = ("train", "demo", "--run", "small", "--quiet", *QUICK, *MODES[mode])
    done = python(MORTAL, moment, str(count), log, "-C", repository, *small)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "moment", "count"), DEATHS)
def test_a_killed_run_ends_in_the_same_commits_in_every_mode(mode, moment, count, tmp_path, tmp_path_factory):
    def fill(folder: Path) -> None:
        assert train(new_repository(folder / "repository"), mode, "call", NEVER, folder / "log") == 0

    whole = once(tmp_path_factory, f"whole-{mode}", fill)
    repository, log = new_repository(tmp_path / "repository"), tmp_path / "log"
    assert train(repository, mode, moment, count, log) == -signal.SIGKILL
    assert train(repository, mode, "call", NEVER, log) == 0
    assert refs(repository) == refs(whole / "repository")
    assert len(log.read_text().splitlines()) == len((whole / "log").read_text().splitlines())
    skillgit("fsck", "--deep", cwd=repository)
