"""Containers are started as they should be, from images that are here, and what is missing is said in time."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from swebench_cases import clone, gold, own_items, row, write

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit_envs.swebench import SWEBench, engines
from skillgit_envs.swebench.engines import BoxJob, ContainerEngine, answers
from skillgit_envs.swebench.instances import Instance

if TYPE_CHECKING:
    from pathlib import Path

STAND_IN = """#!/usr/bin/env python3
import json, os, subprocess, sys
record, testbed, absent = {record!r}, {testbed!r}, {absent!r}
with open(record, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "ps":
    sys.exit({service})
if sys.argv[1:3] == ["image", "inspect"]:
    sys.exit(sys.argv[3] in absent)
if sys.argv[1] == "run":
    words = "--unshare-all --die-with-parent --proc /proc --dev /dev --tmpfs /tmp --ro-bind /usr /usr"
    words += " --ro-bind /etc /etc"
    links = [word for name in ("bin", "lib", "lib64") for word in ("--symlink", "usr/" + name, "/" + name)]
    box = ["bwrap", *words.split(), *links, "--tmpfs", "/testbed", "--ro-bind", testbed, "/base", "--chdir", "/"]
    {before}
    sys.exit(subprocess.run([*box, "bash", "-c", "cp -R /base/. /testbed && exec bash -s"]).returncode)
"""


@pytest.fixture
def docker(tmp_path, monkeypatch):
    """Put a stand-in for docker on the path: it writes down what it is asked for and runs it apart, on a checkout."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap, which the stand-in for docker runs things in, is not installed")
    place, _ = clone(tmp_path / "image")
    from skillgit_envs.swebench.repositories import git  # noqa: PLC0415 - only here

    git(place, "checkout", "--quiet", "HEAD~1")
    record = tmp_path / "asked.jsonl"

    def install(*, service: int = 0, absent: tuple[str, ...] = (), before: str = "") -> Path:
        program = tmp_path / "bin" / "docker"
        program.parent.mkdir(exist_ok=True)
        code = STAND_IN.format(
            record=str(record), testbed=str(place), absent=list(absent), service=service, before=before
        )
        program.write_text(code)
        program.chmod(0o755)
        other = program.with_name("podman")  # whether or not this machine has one
        other.write_text("#!/bin/sh\nexit 1\n")
        other.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")
        answers.cache_clear()
        return record

    yield install
    answers.cache_clear()


def asked(record: Path) -> list[list[str]]:
    return [json.loads(line) for line in record.read_text().splitlines()]


def rows(folder: Path, **fields: object) -> dict[str, object]:
    """Write the items that come with skillgit as rows with images, and return options that name them."""
    own = own_items().values()
    content = [{**item.content, "instance_id": item.id, "image": "example/larder:latest", **fields} for item in own]
    write(folder / "rows.jsonl", *content)
    return {"data_path": "rows.jsonl", "split_ratio": "1:1:1"}


def scored(environment: SWEBench, patch: str):
    item = environment.items(Split.TRAIN)[0]
    trajectory = Trajectory(item_id=item.id, turns=(), answer=patch or gold(item))
    return asyncio.run(environment.score(item, trajectory, None))


def test_a_container_has_limits_and_a_network_only_where_tests_are_given_one(docker, tmp_path):
    record = docker()
    environment = SWEBench({**rows(tmp_path), "network": True}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    scores, feedback = scored(environment, "")
    assert (scores.hard, feedback) == (1.0, "resolved: all tests pass")

    async def turn() -> None:
        async with environment._engine.opened(Instance(item)) as workbench:
            result = await workbench(BoxJob(script="turn", files={"command.sh": b"echo x > new"}, seconds=9))
            assert b"new file mode" in result.files["patch.diff"]

    asyncio.run(turn())
    of_tests, of_target = (words for words in asked(record) if words[0] == "run")
    assert "--network" not in of_tests
    assert "--network none" in " ".join(of_target)
    for run in (of_tests, of_target):
        for words in ("--rm", "--memory 8192m", "--pids-limit 512", "--pull never", "no-new-privileges"):
            assert words in " ".join(run)
        assert run[-2:] == ["example/larder:latest", "-s"]
        assert not {"-v", "--volume", "--mount", "--privileged", "-e", "--env"} & set(run)


HOSTILE = (
    "cd /tmp/skillgit/out 2>/dev/null || cd ../box/out; touch 'a\nb' evil; ln -s /etc/passwd refused; echo x > trouble"
)


@pytest.mark.parametrize("engine", ["docker", "sandbox"])
def test_a_command_cannot_add_to_what_comes_back(engine, docker, tmp_path):
    docker()
    options = rows(tmp_path) if engine == "docker" else {}
    environment = SWEBench(options, tmp_path)
    item = environment.items(Split.TRAIN)[0]

    async def turn() -> set[str]:
        async with environment._engine.opened(Instance(item)) as workbench:
            files = {"command.sh": f"echo x > new; {HOSTILE}".encode()}
            result = await workbench(BoxJob(script="turn", files=files, seconds=9))
            assert b"root:" not in b"".join(result.files.values())
            assert b"diff --git a/new b/new" in result.files["patch.diff"]
            return set(result.files)

    assert (
        {"exit", "output", "patch.diff"}
        <= asyncio.run(turn())
        <= {"exit", "output", "patch.diff", "trouble", "refused"}
    )


@pytest.mark.parametrize(
    ("options", "stand_in", "sentence"),
    [
        ({"engine": "docker"}, {"service": 1}, "env.engine is 'docker', which does not answer"),
        ({"engine": "docker"}, {"absent": ("example/larder:latest",)}, "1 of 1 images are not here, such as example/"),
        ({"engine": "podman"}, {}, "env.engine is 'podman', which does not answer"),
        ({"engine": "auto"}, {"service": 1}, "without images, env.repositories has to name a folder"),
        ({"engine": "sandbox", "repositories": "image"}, {}, "without images, env.environments has to name a folder"),
        (
            {"engine": "sandbox", "repositories": "image", "environments": "environments"},
            {},
            "env.environments has no Python for hearthside__larder/1.0",
        ),
    ],
)
def test_what_is_missing_is_said_when_the_items_are_read(options, stand_in, sentence, docker, tmp_path):
    docker(**stand_in)
    with pytest.raises(ConfigError, match=re.escape(sentence)) as raised:
        SWEBench({**rows(tmp_path), **options}, tmp_path).items(Split.TRAIN)
    assert raised.value.hint


def test_rows_without_images_are_refused_by_containers(docker, tmp_path):
    docker()
    with pytest.raises(ConfigError, match="9 instances name no image"):
        SWEBench(rows(tmp_path, image=""), tmp_path).items(Split.TRAIN)


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("sys.exit('no space left')", "docker ended with 1 for example/larder:latest: no space left"),
        ("print('?'); sys.exit(0)", "left nothing behind"),
        ("print('a\\\\n!!!\\\\n'); sys.exit(0)", "gave nothing that can be read"),
    ],
)
def test_a_container_that_fails_is_a_fault_and_no_score(before, sentence, docker, tmp_path):
    docker(before=before.replace("\\\\", "\\"))
    environment = SWEBench(rows(tmp_path), tmp_path)
    with pytest.raises(EnvironmentFaultError, match=re.escape(sentence)):
        scored(environment, "")


def test_a_container_that_does_not_end_is_removed(docker, tmp_path, monkeypatch):
    record = docker(before="import time; time.sleep(3600)")
    monkeypatch.setattr(engines, "_SLACK_S", 0.5)
    environment = SWEBench({**rows(tmp_path), "test_timeout": 0.5}, tmp_path)
    with pytest.raises(EnvironmentFaultError, match=r"did not end within 0.5 seconds"):
        scored(environment, "")
    name = next(words[words.index("--name") + 1] for words in asked(record) if words[0] == "run")
    assert ["rm", "--force", name] in asked(record)


def test_a_rollout_that_is_stopped_leaves_no_container(docker):
    record = docker(before="import time; time.sleep(3600)")
    item = Item(id="a", content=row(image="example/larder:latest"))

    async def stopped() -> None:
        async with ContainerEngine(program="docker").opened(Instance(item)) as workbench:
            task = asyncio.create_task(workbench(BoxJob(script="turn", files={}, seconds=60)))
            while not record.exists() or not record.read_text():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(stopped())
    assert [words[0] for words in asked(record)] == ["run", "rm"]


def test_official_and_unofficial_scores_have_other_digests(docker, tmp_path):
    docker()
    options = {**rows(tmp_path), "repositories": "image", "environments": "environments"}
    digests = {
        engine: SWEBench({**options, "engine": engine}, tmp_path).digest for engine in ("docker", "sandbox", "auto")
    }
    assert digests["docker"] == digests["auto"] != digests["sandbox"]


@pytest.mark.skipif(not answers("docker"), reason="docker is not installed, or its service does not run")
def test_a_real_container_runs_a_job():
    subprocess.run(["docker", "pull", "debian:stable-slim"], check=True)
    item = Item(id="a", content=row(image="debian:stable-slim"))

    async def run() -> None:
        async with ContainerEngine(program="docker").opened(Instance(item)) as workbench:
            with pytest.raises(EnvironmentFaultError, match="docker ended with 1"):  # there is no /testbed
                await workbench(BoxJob(script="grade", files={"eval.sh": b"true"}, seconds=9))

    asyncio.run(run())
