"""Bad input gets one clear sentence, a hint and the documented exit code; nothing is written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from once import copy_folder
from program import QUICK, SKILLGIT, git, new_repository, refs, skillgit, surroundings
from trained_runs import RUN, small_run, trained_run

if TYPE_CHECKING:
    from pathlib import Path

    from program import Done

ITEM = {"question": "Who?", "context": "[DOC] [TLE] T [PAR] It was Ann.", "answers": ["Ann"]}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_repository(tmp_path_factory.mktemp("bad") / "repository")


def splits(folder: Path, **items: list[dict[str, object]]) -> Path:
    for split, rows in items.items():
        (folder / split).mkdir(parents=True)
        (folder / split / "items.json").write_text(json.dumps(rows))
    return folder


def item(name: str, **more: object) -> dict[str, object]:
    return {**ITEM, "id": name, "question": f"Who is {name}?", **more}


def check_refused(refused: Done, sentence: str, hint: str = "") -> None:
    first, *rest = refused.err.splitlines()
    assert re.search(sentence, first), refused
    assert first.startswith("skillgit: ")
    assert not first.endswith(".")
    assert any(line.startswith("hint: ") and re.search(hint, line) for line in rest), refused


def train_on(repository: Path, folder: Path, code: int = 2) -> Done:
    before = refs(repository)
    options = ("-o", "env.split_mode=split_dir", "-o", f"env.split_dir={folder}")
    done = skillgit("train", "searchqa/default", "--run", "bad", *options, cwd=repository, code=code)
    assert refs(repository) == before
    return done


def test_a_missing_configuration(repository):
    check_refused(skillgit("train", "nowhere.yaml", cwd=repository, code=2), "nowhere.yaml", "demo")


def test_an_unknown_key_names_the_nearest(repository):
    done = skillgit("train", "demo", "-o", "train.num_epoch=2", cwd=repository, code=2)
    check_refused(done, r"train\.num_epoch\b", r"train\.num_epochs")


def test_a_value_of_the_wrong_type(repository):
    check_refused(
        skillgit("train", "demo", "-o", "train.batch_size=many", cwd=repository, code=2), r"train\.batch_size"
    )


def test_an_empty_split(repository, tmp_path):
    folder = splits(tmp_path / "data", train=[item("a")], val=[], test=[item("c")])
    check_refused(train_on(repository, folder), "selection|val")


def test_overlapping_splits_name_the_items(repository, tmp_path):
    same = item("a")
    folder = splits(tmp_path / "data", train=[same], val=[same | {"id": "b"}], test=[item("c")])
    done = train_on(repository, folder)
    check_refused(done, "train.*selection|selection.*train")
    assert re.search(r"\ba\b.*\bb\b|\bb\b.*\ba\b", done.err)


def test_duplicate_ids(repository, tmp_path):
    twice = [item("same"), item("same", question="Who else?")]
    check_refused(
        train_on(repository, splits(tmp_path / "data", train=twice, val=[item("b")], test=[item("c")])), "same"
    )


def test_an_id_that_climbs_out_of_its_folder(repository, tmp_path):
    folder = splits(tmp_path / "data", train=[item("../../evil")], val=[item("b")], test=[item("c")])
    check_refused(train_on(repository, folder), r"\.\./\.\./evil", r"\.\.")


def test_a_skill_without_frontmatter_is_given_one(tmp_path):
    (tmp_path / "tips.md").write_text("# Tips\n\nAnswer briefly.\n")
    skillgit("init", "repository", "--skill", "tips.md", cwd=tmp_path)
    text = git("show", "main:skills/tips/SKILL.md", cwd=tmp_path / "repository").out
    assert text.startswith("---\nname: tips\ndescription: ")
    assert text.endswith("# Tips\n\nAnswer briefly.\n")


def test_a_skill_whose_frontmatter_breaks_the_rules(tmp_path):
    folder = tmp_path / "tips"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: Tips!\ndescription: x\n---\n\nBriefly.\n")
    check_refused(skillgit("init", "repository", "--skill", "tips", cwd=tmp_path, code=2), "name")


def test_outside_of_a_repository(tmp_path):
    check_refused(skillgit("log", cwd=tmp_path, code=3), "not in a git repository", "skillgit init")


def test_an_unknown_version_and_an_unknown_command(tmp_path_factory, tmp_path):
    repository = copy_folder(small_run(tmp_path_factory), tmp_path / "repository")
    check_refused(skillgit("show", "v99", cwd=repository, code=3), "v99")
    check_refused(skillgit("show", "smlal/v1", cwd=repository, code=3), "smlal", "small")
    assert "'log'" in skillgit("lgo", cwd=repository, code=2).err


def test_another_configuration_under_the_name_of_a_run_suggests_a_fork(tmp_path_factory, tmp_path):
    repository = copy_folder(small_run(tmp_path_factory), tmp_path / "repository")
    done = skillgit("train", "demo", "--run", RUN, "-o", "train.seed=7", *QUICK, cwd=repository, code=2)
    check_refused(done, "another configuration", rf"--from {RUN}/v0")


def test_a_budget_that_does_not_pay_for_one_step(repository):
    done = skillgit("train", "demo", "--max-calls", "5", cwd=repository, code=2)
    check_refused(done, "a cap of 5 calls does not pay for one step", "--max-calls")


def test_a_name_that_no_run_can_have(repository):
    check_refused(skillgit("train", "demo", "--run", "My Run", cwd=repository, code=2), "My Run", "lower-case")


WAITING = """
import asyncio, sys
from pathlib import Path
from skillgit_backends.offline import OfflineBackend
release = Path(sys.argv.pop(1))
complete = OfflineBackend.complete
made = 0
async def patient(self, request):
    global made
    made += 1
    if made == 60:
        print("waiting", flush=True)
        while not release.exists():
            await asyncio.sleep(0.01)
    return await complete(self, request)
OfflineBackend.complete = patient
from skillgit.cli.main import main
main()
"""


@pytest.fixture
def waiting(tmp_path: Path):
    """Yield a training process that waits in a call, and the file whose appearance lets it go on."""
    repository, release = new_repository(tmp_path / "repository"), tmp_path / "release"
    command = [
        SKILLGIT[0],
        "-c",
        WAITING,
        str(release),
        "-C",
        str(repository),
        "train",
        "demo",
        "--run",
        "live",
        *QUICK,
    ]
    process = subprocess.Popen(
        command, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "waiting" in line:
                break
        yield repository, release, process
    finally:
        process.kill()
        process.communicate()


def test_a_run_that_a_live_process_trains_is_locked(waiting):
    repository, _, process = waiting
    done = skillgit("train", "demo", "--run", "live", *QUICK, cwd=repository, code=4)
    check_refused(done, f"process {process.pid}")
    assert f"{process.pid}" in skillgit("status", cwd=repository).out


def test_ctrl_c_lets_the_call_end_records_it_and_prints_how_to_go_on(waiting, tmp_path_factory):
    repository, release, process = waiting
    os.kill(process.pid, signal.SIGINT)
    release.touch()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "--run live" in err
    assert git("fsck", "--strict", cwd=repository).code == 0
    skillgit("train", "demo", "--run", "live", *QUICK, cwd=repository)
    assert refs(repository) == refs(trained_run(tmp_path_factory, "live", *QUICK))


def test_a_second_ctrl_c_leaves_at_once_and_loses_nothing(waiting):
    repository, _, process = waiting
    os.kill(process.pid, signal.SIGINT)
    while process.poll() is None:
        os.kill(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    skillgit("train", "demo", "--run", "live", *QUICK, cwd=repository)
