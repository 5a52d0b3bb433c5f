"""Rollouts of Harbor's bridge in a stand-in for Harbor itself."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Turn
from skillgit.plugin.backend import ModelAccess
from skillgit_envs.harbor import Harbor

HERE = Path(__file__).parent
SKILL = Skill("slips", {"SKILL.md": b"---\nname: slips\ndescription: Slips.\n---\n\nWrite slips.\n"})


def environment_of(python: str) -> str:
    """Return the virtual environment of a Python; a Python of none is itself."""
    folder = Path(python).parent.parent
    return str(folder) if (folder / "pyvenv.cfg").exists() else python


class Serves:
    """A target that serves a model which is never asked."""

    access = ModelAccess(url="http://127.0.0.1:1", token="sg-token-of-this-rollout")  # noqa: S106 - of no one

    def __init__(self) -> None:
        self.rounds = 0

    @asynccontextmanager
    async def serve(self):
        self.rounds += 1
        yield self

    def turns(self):
        return (
            Turn(role="system", content="skills"),
            Turn(role="user", content="do"),
            Turn(role="assistant", content="done"),
        )


class Played:
    """Rollouts in the stand-in, each of a task whose instruction says how its trial ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def task(self, name: str, *lines: str) -> None:
        folder = self.folder / "tasks" / name
        (folder / "tests").mkdir(parents=True)
        (folder / "task.toml").write_text("")
        (folder / "tests" / "test.sh").write_text("grep -q 'forty-two crates' /app/answer\n")
        (folder / "instruction.md").write_text("\n".join((f"name {name}", *lines)))

    def environment(self, **options) -> Harbor:
        for name in ("one", "two"):
            if not (self.folder / "tasks" / name).exists():
                self.task(name, 'rewards {"reward": 1}')
        standin = {"python": sys.executable, "modules": str(HERE / "standin"), "agent": "any", "environment": "any"}
        return Harbor({"data_path": str(self.folder / "tasks"), "split_ratio": "1:1:1", **standin, **options}, Path())

    def rollout(self, *lines: str, **options):
        """Return the environment's hard and soft score, and its feedback."""
        self.task("tried", *lines)
        environment = self.environment(**options)
        return asyncio.run(outcome(environment, Serves()))


async def outcome(environment, target, name="tried"):
    item = next(item for split in environment._splits.values() for item in split if item.id == name)
    await environment.open()
    try:
        trajectory = await environment.rollout(item, SKILL, target)
        scored, feedback = await environment.score(item, trajectory, None)
    finally:
        await environment.close()
    assert "sg-token" not in json.dumps([feedback, trajectory.answer, *(turn.row for turn in trajectory.turns)])
    assert "sg-token" not in trajectory.products["result.json"].decode()
    return scored, feedback
