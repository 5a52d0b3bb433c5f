"""Workers on the nodes of a Ray cluster: actors, one for each processor, and what they are sent.

Questions travel on Ray's own connections, and a program on a node asks at the loopback of that node, so that nothing of
skillgit listens on a network. A node that dies takes its actors with it; Ray starts nothing again by itself here, for
only the near side knows what was asked.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import ray
from ray._private import worker as ray_driver
from ray.exceptions import RayError

from skillgit.errors import ConfigError
from skillgit.executors.pool import WorkerLink, WorkerSource
from skillgit.executors.worker import EnvironmentRecipe, Frame, Worker

_LOOK_S: Final = 10.0
"""Seconds after which the cluster is asked again how many processors it has: nodes come and go."""


def _keep_to_the_log(data: Any, ignore_prefix: bool) -> None:  # noqa: ANN401, FBT001 - Ray's signature
    """Log what Ray says of a node that died, a hundred lines of its state, at a level that is usually off."""
    del ignore_prefix
    logging.getLogger("ray").debug("\n".join(map(str, data.get("lines", ()))))


# Ray prints such news to standard output, amid progress and JSON, even with ray.init(log_to_driver=False).
ray_driver.print_to_stdstream = _keep_to_the_log


class RaySource(WorkerSource):
    """Actors on a cluster, which is joined, or started on this machine, when the first one is asked for."""

    tries, alone_from = 4, 2  # a node that died is not the fault of an item

    def __init__(self, address: str, most: int) -> None:
        if address.startswith("ray://"):
            hint = "run skillgit on a node of the cluster, with calls.ray_address: auto"
            raise ConfigError(f"calls.ray_address is {address}, which is for Ray's client", hint=hint)
        super().__init__(most)
        self._address = address
        self._joining = asyncio.Lock()
        self._is_ours = False  # whether the connection was made here, and ends here
        self._size, self._look_at = 0, 0.0

    async def size(self) -> int:
        async with self._joining:
            if not ray.is_initialized():
                await asyncio.to_thread(self._join)
                self._is_ours = True
            if time.monotonic() >= self._look_at:
                resources = await asyncio.to_thread(ray.cluster_resources)
                self._size = min(self.most, int(resources.get("CPU", 0)))
                if not self._size and not self._look_at:
                    hint = "start a node with ray start --address=HOST:PORT"
                    raise ConfigError("the Ray cluster has no processor", hint=hint)
                self._look_at = time.monotonic() + _LOOK_S
            return self._size

    def _join(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if not self._address:
            options["include_dashboard"] = False
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray keeps one in the user's home
        host, _, port = self._address.rpartition(":")
        try:
            if host:  # Ray waits for minutes for one that is not there
                socket.create_connection((host, int(port)), _LOOK_S).close()
            ray.init(address=self._address or "local", **options)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            words = " ".join(str(error).split())[:200]
            hint = (
                "ray status shows it; the machine that skillgit runs on has to be one of its nodes (ray start), and a "
                "cluster with a token wants RAY_AUTH_MODE=token there too"
            )
            raise ConfigError(f"the Ray cluster {self._address} cannot be joined: {words}", hint=hint) from error

    async def start_worker(self, recipe: EnvironmentRecipe) -> WorkerLink:
        remote: Any = ray.remote(_RemoteWorker)
        actor = remote.options(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD").remote(recipe)

        async def frames() -> AsyncIterator[Frame]:
            with suppress(RayError):  # the actor is gone, or its node
                while True:
                    for frame in await actor.frames.remote():
                        if frame.kind == "closed":
                            return
                        yield frame

        async def end() -> None:
            ray.kill(actor)

        return WorkerLink(actor.receive.remote, frames(), end)

    async def close(self) -> None:
        if self._is_ours:
            self._is_ours, self._look_at = False, 0.0
            await asyncio.to_thread(ray.shutdown)


class _RemoteWorker:
    """The actor: a worker whose frames are fetched."""

    def __init__(self, recipe: EnvironmentRecipe) -> None:
        self._frames = asyncio.Queue[Frame]()
        self._worker = Worker(recipe, self._frames.put_nowait)
        self._is_begun = False

    async def receive(self, frame: Frame) -> None:
        if frame.kind == "close":
            await self._worker.close()
        else:
            self._worker.receive(frame)

    async def frames(self) -> list[Frame]:
        """Wait for frames, and return all that there are."""
        if not self._is_begun:
            self._is_begun = True
            self._worker.start()
        frames = [await self._frames.get()]
        while not self._frames.empty():
            frames.append(self._frames.get_nowait())
        return frames
