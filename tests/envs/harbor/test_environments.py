"""A rollout in each kind of environment that a machine may have, with the real package and a model that is served."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from desk_models import RULE, DeskModels
from harbor_trials import HERE

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.endpoint.server import MeteredEndpoint
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Request
from skillgit_envs.harbor import Harbor

IMAGE = "localhost/skillgit-slips:1"
SKILL = Skill("slips", {"SKILL.md": f"---\nname: slips\ndescription: Slips.\n---\n\n{RULE}\n".encode()})


class Clerk:
    """A target that serves the clerk."""

    def __init__(self, endpoint: MeteredEndpoint) -> None:
        self.endpoint = endpoint

    @asynccontextmanager
    async def serve(self):
        async def ask(question, provider, draw):
            return await DeskModels({}).complete(Request(model="clerk", messages=question.messages))

        async with self.endpoint.lease(ask) as lease:
            yield lease


def outcome(python: str, *, tasks: Path = HERE / "tasks", name: str = "", **options):
    """Return trajectory, score and feedback of one rollout."""
    modules = {"modules": str(HERE / "agents"), "agent": "desk_agent:DeskAgent", "python": python}
    environment = Harbor({"data_path": str(tasks), "split_ratio": "2:2:1", **modules, **options}, Path())

    async def whole():
        endpoint = MeteredEndpoint()
        items = [item for split in Split for item in environment.items(split)]
        item = next((item for item in items if item.id == name), items[0])
        try:
            await environment.open()
            trajectory = await environment.rollout(item, SKILL, Clerk(endpoint))
            return trajectory, *await environment.score(item, trajectory, None)
        finally:
            await environment.close()
            await endpoint.aclose()

    return asyncio.run(whole())


def solved(python: str, **options) -> None:
    trajectory, scored, feedback = outcome(python, **options)
    assert scored.hard == 1, feedback
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant", "user", "assistant"]
    assert trajectory.answer == "The slip is written."


@pytest.mark.slow
def test_bubblewrap(real_python):
    solved(real_python, environment="bubblewrap")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dockerfile", "message"),
    [
        ("FROM a\nRUN apt-get install cowsay\n", "more than FROM, WORKDIR and COPY: 'RUN apt-get install cowsay'"),
        ("FROM a\nFROM b\n", "more than FROM, WORKDIR and COPY: 'FROM b'"),
        ("FROM a\nWORKDIR /app\nCOPY order.txt /usr/share/\n", "keeps the root file system as it is"),
        ("FROM a\nCOPY ../tests/test.sh /app/\n", "copies files of the task only"),
    ],
)
def test_bubblewrap_refuses_what_it_cannot_do(real_python, tmp_path, dockerfile, message):
    for name in ("one", "two", "three"):
        task = tmp_path / name
        (task / "environment").mkdir(parents=True)
        (task / "tests").mkdir()
        (task / "task.toml").write_text("")
        (task / "instruction.md").write_text(name)
        (task / "tests" / "test.sh").write_text("exit 1\n")
        (task / "environment" / "order.txt").write_text("order\n")
        (task / "environment" / "Dockerfile").write_text(dockerfile)
    with pytest.raises(EnvironmentFaultError, match=message):
        outcome(real_python, tasks=tmp_path, split_ratio="1:1:1", environment="bubblewrap")


def has_image() -> bool:
    try:
        found = subprocess.run(["podman", "image", "exists", IMAGE], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return found.returncode == 0


@pytest.mark.soak
def test_podman(real_python):
    if not has_image():
        pytest.skip(f"podman has no image {IMAGE}: tests/envs/harbor/make_image.sh makes it")
    solved(real_python, environment="podman")
    listed = subprocess.run(["podman", "ps", "--all", "--format={{.Names}}"], capture_output=True, text=True, check=True)
    assert "skillgit-harbor" not in listed.stdout
