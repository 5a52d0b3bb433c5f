"""The toy as a plug-in in a file, whose items may misbehave in ways that a process does not survive."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

from toy import ToyEnvironment

from skillgit.domain.trajectory import Trajectory
from skillgit.plugin.backend import Message, Text
from skillgit.plugin.environment import EnvironmentInfo, Option

if os.environ.get("SCENE_ENDS") not in {None, str(os.getpid())}:
    os._exit(3)


def option(name: str) -> Option:
    return Option(name=name, type=str, default="", help=f"The {name}.")


class Scene(ToyEnvironment):
    """Does ``act`` on the item ``item``, and keeps notes in ``folder``."""

    info = EnvironmentInfo(
        name="scene",
        summary="s",
        fields={},
        scorer="s",
        source="s",
        options=tuple(map(option, ("act", "item", "folder"))),
    )

    def __init__(self, options, _):
        super().__init__()
        self.act, self.item, self.folder = (str(options[name]) for name in ("act", "item", "folder"))
        if self.act == "differ":
            self.digest = f"toy-{os.getpid()}"

    def note(self, text):
        with Path(self.folder, "notes").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    async def open(self):
        self.note(f"open {os.getpid()}")

    async def close(self):
        self.note(f"close {os.getpid()}")

    async def rollout(self, item, skill, target):
        self.note(f"rollout {item.id} {os.getpid()}")
        print("what plug-ins print is no frame", flush=True)  # noqa: T201
        if self.act == "serve":
            return await self._served(item, skill, target)
        trajectory = await super().rollout(item, skill, target)
        if self.act == "pause":
            await asyncio.sleep(2)
        elif self.act and item.id == self.item:
            await getattr(self, f"_{self.act}")(target)
        return trajectory

    async def _die(self, _):
        os.kill(os.getpid(), signal.SIGKILL)

    async def _die_once(self, _):
        try:
            os.close(os.open(Path(self.folder, "dead"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    async def _differ(self, _):
        pass

    async def _hang(self, _):
        self._child("hanging")
        while True:
            time.sleep(0.01)  # noqa: ASYNC251 - what is tested

    async def _wait(self, _):
        child = self._child("waiting")
        try:
            await asyncio.Event().wait()
        finally:
            child.kill()
            child.wait()

    def _child(self, name):
        child = subprocess.Popen(["sleep", "1000"])
        self.note(f"{name} {child.pid}")
        return child

    async def _fail(self, _):
        raise ValueError("no such cell")

    async def _pickle(self, target):
        class Local(str):
            __slots__ = ()

        await target.chat([Message(role="user", parts=(Text(text=Local("needs amber")),))])

    async def _served(self, item, skill, target):
        import openai  # noqa: PLC0415 - it takes a second, in each worker

        question = [{"role": "system", "content": skill.document}]
        question += [{"role": "user", "content": f"{item.id} needs {item.content['needs']}"}]
        async with (
            target.serve() as model,
            openai.AsyncOpenAI(base_url=f"{model.access.url}/v1", api_key=model.access.token) as client,
        ):
            for _ in range(2):
                reply = await client.chat.completions.create(model="any", messages=question)
        return Trajectory(item_id=item.id, turns=model.turns(), answer=reply.choices[0].message.content)
