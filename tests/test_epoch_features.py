"""Meta reflect, deep reflect, skill-aware reflection and forced guidance through the program, with exact resume."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path

import pytest
from once import copy_folder, once
from program import QUICK, git, new_repository, python, refs, skillgit
from soaking import soak

MORTAL = Path(__file__).with_name("mortal.py")
NEVER = 10**9
META = ("-o", "optimizer.use_meta_reflect=true")
DEEP = ("-o", "gradient.use_deep_reflect=true")
AWARE = (
    *("-o", "optimizer.use_skill_aware_reflection=true"),
    *("-o", "optimizer.skill_aware_consolidate_threshold=1"),
)
FORCED = (
    *("-o", "optimizer.slow_update_gate_with_selection=false"),
    *("-o", "optimizer.longitudinal_pair_policy=changed"),
)
EVERYTHING = (*META, *DEEP, *AWARE, *FORCED, "-o", "train.num_epochs=3")
MOMENTS = [
    soak("call", 40),
    *(soak(*moment) for moment in (("refs", 5), ("recorded", 160), ("call", 120), ("objects", 6), ("refs", 9))),
]


def train(repository: Path, log: Path, *options: str, moment: str = "call", count: int = NEVER) -> int:
    small = ("train", "demo", "--run", "small", "--quiet", *QUICK, *options)
    done = python(MORTAL, moment, str(count), log, "-C", repository, *small)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


def calls(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def trailers(repository: Path, key: str) -> list[str]:
    told = git("log", "--all", f"--format=%(trailers:key=Skillgit-{key},valueonly)", cwd=repository).out
    return [line for line in told.splitlines() if line]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, ...], int]:
    """Return a finished run with all features on, the options that made it and its number of calls.

    The first seed is taken under which the offline analyst has reminders and the gate refuses a reflection.
    """
    found = once(tmp_path_factory, "everything", train_with_everything)
    (made,) = found.glob("*/repository")
    log = made.with_name("log")
    repository = copy_folder(made, tmp_path_factory.mktemp("everything") / "repository")
    return repository, (*EVERYTHING, "-o", f"train.seed={made.parent.name}"), calls(log)


def train_with_everything(folder: Path) -> None:
    for seed in range(1, 13):
        place = folder / str(seed)
        place.mkdir()
        repository = new_repository(place / "repository")
        assert train(repository, place / "log", *EVERYTHING, "-o", f"train.seed={seed}") == 0
        if trailers(repository, "Appendix") and any(name.endswith("-meta") for name in refs(repository)):
            return
        shutil.rmtree(place)
    pytest.fail("no seed shows everything")


def test_a_refused_reflection_has_a_branch_a_label_and_an_address_of_its_own(everything):
    repository = everything[0]
    name = next(name for name in refs(repository) if name.endswith("-meta"))
    step = int(re.search(r"/(\d+)-meta$", name).group(1))
    told = git("log", "-1", "--format=%s%n%(trailers)", name, cwd=repository).out
    epoch = int(re.search(r"Skillgit-Epoch: (\d+)", told).group(1))
    assert told.startswith("meta: ")
    assert f"(m{epoch}, " in told
    assert "Skillgit-Origin: meta" in told
    assert "by=meta" in told
    assert "Skillgit-Gate: reject" in told
    rows = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    row = next(row for row in rows if (row["origin"], row["kind"], row["step"]) == ("meta", "rejected", step))
    assert row["epoch"] == epoch
    assert re.search(rf"m{epoch} .*meta: ", skillgit("log", cwd=repository).out)
    shown = skillgit("show", f"m{epoch}", cwd=repository)
    assert re.match(rf"m{epoch}  . rejected", shown.out)
    assert git("rev-parse", name, cwd=repository).out.strip() in shown.out
    skillgit("diff", f"v{row['base']}", f"small/m{epoch}", cwd=repository)
    missing = skillgit("show", "m99", cwd=repository, code=3)
    assert "did not reflect on epoch 99" in missing.err


def test_reflections_stand_between_the_last_step_and_the_slow_update_of_their_epoch(everything):
    rows = json.loads(skillgit("log", "--json", cwd=everything[0]).out)["events"]
    order = [(row["step"], row["kind"], row["origin"]) for row in reversed(rows)]
    assert sum(origin == "meta" for _, _, origin in order) == 3
    for place, (step, _, origin) in enumerate(order):
        if origin == "meta":
            assert order[place - 1][0] == step
            assert order[place + 1][1] in {"slow-proposed", "run-finished", "accepted", "rejected", "skipped"}
            assert order[place + 1][0] > step or order[place + 1][1] in {"slow-proposed", "run-finished"}


def test_reminders_are_counted_and_the_probe_is_in_no_commit(everything):
    repository = everything[0]
    assert all(
        re.fullmatch(r"added=\d+ total=\d+(?: consolidated=\d+)?", told) for told in trailers(repository, "Appendix")
    )
    assert git("grep", "-l", "For this task only", "run/small", "--", "skills", cwd=repository, code=1).out == ""


def test_a_run_with_everything_is_sound(everything):
    skillgit("fsck", "--deep", cwd=everything[0])
    git("fsck", "--strict", cwd=everything[0])


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_a_killed_run_with_everything_ends_in_the_same_commits(moment, count, everything, tmp_path):
    unbroken, options, wanted = everything
    repository, log = new_repository(tmp_path / "repository"), tmp_path / "log"
    assert train(repository, log, *options, moment=moment, count=count) == -signal.SIGKILL
    assert train(repository, log, *options) == 0
    assert refs(repository) == refs(unbroken)
    assert calls(log) == wanted
    skillgit("fsck", "--deep", cwd=repository)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [soak(META), soak(DEEP), soak(AWARE), soak(FORCED)], ids=["meta", "deep", "aware", "forced"]
)
def test_each_feature_alone_trains_soundly_and_resumes_exactly(options, tmp_path):
    whole, broken, log = tmp_path / "whole", tmp_path / "broken", tmp_path / "log"
    assert train(new_repository(whole), tmp_path / "other", *options) == 0
    assert train(new_repository(broken), log, *options, moment="call", count=70) == -signal.SIGKILL
    assert train(broken, log, *options) == 0
    assert refs(broken) == refs(whole)
    assert calls(log) == calls(tmp_path / "other")
    skillgit("fsck", "--deep", cwd=broken)
