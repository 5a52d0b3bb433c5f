"""``make bench-executors``: what the ways to make rollouts cost and gain, each beside the plain one.

On two processors: rollouts that compute for 50 ms in two worker processes against this one; 200 rollouts on two nodes
of a Ray cluster, of which one is killed midway; samples of Inspect as rollouts against Inspect alone; calls of a
program through the metered endpoint against ``chat``. Ray and Inspect are measured where their extras are installed.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import sys
import time
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
sys.path.insert(0, str(Path(__file__).parents[1] / "executors"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import measure
from ray_nodes import two_nodes
from toy import History, ToyBackend, ToyEnvironment, items, trainer

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.trajectory import Trajectory
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Task
from skillgit.executors.attempt import Inline
from skillgit.executors.pool import ProcessSource, WorkerPool
from skillgit.executors.worker import EnvironmentRecipe
from skillgit.plugin.environment import EnvironmentInfo, Option
from skillgit.plugin.registry import find_environment

if TYPE_CHECKING:
    from skillgit.engine.search import Session
    from skillgit.executors.attempt import Executor

HERE = Path(__file__).parent
NAME, COUNT, WIDTH = "executors.py:Computing", *measure.sized((200, 16), (8, 2))
COMPUTES, ASKS, SERVES = "computes", "asks", "serves"
ROUNDS = measure.sized(3, 1)
CALLS = measure.sized(300, 10)
KILLED_AFTER = COUNT * 2 // 5
"""Rollouts after which a node is killed."""


class Computing(ToyEnvironment):
    """Keeps a processor busy for 50 ms, with a question before it if it asks; or has a program ask many times."""

    info = EnvironmentInfo(
        name="computing",
        summary="s",
        fields={},
        scorer="s",
        source="s",
        options=(Option(name="way", type=str, default=COMPUTES, help="What it does."),),
    )
    processor_bound = True

    def __init__(self, options, _):
        super().__init__()
        self.way = options["way"]

    def items(self, split):
        return items(split.value, COUNT if split is Split.SELECTION else 8)

    async def rollout(self, item, skill, target):
        if self.way == SERVES:
            return await self._served(item, skill, target)
        if self.way == ASKS:
            await super().rollout(item, skill, target)
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return Trajectory(item_id=item.id, turns=(), answer="yes")

    async def _served(self, item, skill, target):
        """Time calls of a client that does little else, and the same calls by ``chat``."""
        for _ in range(CALLS // 10):
            await super().rollout(item, skill, target)  # what is loaded with the first calls is no call
        before = time.perf_counter()
        for _ in range(CALLS):
            await super().rollout(item, skill, target)
        direct = time.perf_counter() - before
        async with target.serve() as model:
            question = [{"role": "system", "content": skill.document}, {"role": "user", "content": "it needs amber"}]
            words = (model.access.url, model.access.token, json.dumps({"model": "any", "messages": question}))
            await _client(*words, CALLS // 10)
            before = time.process_time()
            wall = await _client(*words, CALLS)
            cpu = time.process_time() - before
        return Trajectory(item_id=item.id, turns=(), answer=json.dumps([direct, wall, cpu]))


async def _client(url: str, token: str, body: str, count: int) -> float:
    """Return the seconds that ``count`` calls take, one after the other, in a process of its own."""
    command = (sys.executable, str(Path(__file__)), "client", url, token, body, str(count))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return float(out)


def client(url: str, token: str, body: str, count: int) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    before = time.perf_counter()
    for _ in range(count):
        connection.request("POST", "/v1/chat/completions", body, headers)
        assert json.load(connection.getresponse())["choices"]
    print(time.perf_counter() - before)  # noqa: T201 - for whoever started it


class Bench:
    """An environment of one way, a ledger and a backend."""

    def __init__(self, way: str) -> None:
        self._plugin = find_environment(NAME, HERE)
        self._options = {"way": way}
        self.backend = ToyBackend()

    def session(self, executor: Executor | None = None) -> Session:
        environment = self._plugin.cls(self._options, HERE)
        session = trainer(self.backend, History(), environment=environment).session
        task = Task(environment=environment, items=session.task.items, source=self._plugin.source)
        return replace(session, task=task, executor=executor or Inline(), workers=WIDTH)

    @property
    def recipe(self) -> EnvironmentRecipe:
        digest = self.session().task.digest
        return EnvironmentRecipe(name=NAME, options=self._options, root=HERE, digest=digest)


async def _rolled(session: Session, count: int = COUNT, *, split: Split = Split.SELECTION, each=lambda _: None):
    chosen = session.task.items[split][:count]
    return await roll_out(session, session.task.environment.seed_skill(), chosen, "selection", each=each)


Part = tuple[tuple[str, str, str, str], dict[str, float]]
"""A row of the table and its figures."""


def processes() -> Part:
    """Measure rollouts here and in two workers that have started, by turns."""
    inline, process = [], []
    for _ in range(ROUNDS):
        inline.append(asyncio.run(_computing(Inline())))
        process.append(asyncio.run(_computing(WorkerPool(Bench(COMPUTES).recipe, ProcessSource(WIDTH)))))
    plain, ours = median(inline), median(process)
    row = ("process", f"{plain:.2f} s", f"{ours:.2f} s", f"{COUNT} rollouts that compute for 50 ms")
    return row, {"process_speedup_2": round(plain / ours, 2)}


async def _computing(executor: Executor) -> float:
    session = Bench(COMPUTES).session(executor)
    try:
        await _rolled(session, split=Split.TRAIN)
        before = time.perf_counter()
        await _rolled(session)
        return time.perf_counter() - before
    finally:
        await session.aclose()


def cluster() -> Part:
    """Count what is lost and asked twice where a node is killed midway."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    with two_nodes() as nodes:
        lost, repeats, whole, broken = asyncio.run(_node_killed(nodes))
    row = ("ray", f"{whole:.2f} s", f"{broken:.2f} s", "the same with a call, without and with the death of a node")
    return row, {"ray_lost": lost, "ray_repeated_calls": repeats}


async def _node_killed(cluster) -> tuple[int, int, float, float]:
    from skillgit.executors.ray_cluster import RaySource  # noqa: PLC0415 - not without the extra

    times, scored, requests = [], 0, []
    for kills in (False, True):
        bench, ends = Bench(ASKS), []
        session = bench.session(WorkerPool(bench.recipe, RaySource("", WIDTH)))

        def each(rollout, ends=ends, kills=kills):
            ends.append(rollout)
            if kills and len(ends) == KILLED_AFTER:
                node = next(iter(cluster.worker_nodes))
                kill = partial(cluster.remove_node, node, allow_graceful=False)
                asyncio.get_running_loop().run_in_executor(None, kill)

        try:
            await _rolled(session, split=Split.TRAIN)
            bench.backend.requests.clear()
            before = time.perf_counter()
            rollouts = await _rolled(session, each=each)
            times.append(time.perf_counter() - before)
        finally:
            await session.aclose()
        scored = sum(isinstance(rollout.outcome, Scored) for rollout in rollouts)
        requests = [request.messages[-1].text for request in bench.backend.requests]
    return COUNT - scored, len(requests) - len(set(requests)), *times


def samples() -> Part:
    """Measure samples of Inspect as rollouts against Inspect alone."""
    from bench import inspect_overhead  # noqa: PLC0415 - not without the extra

    figures = inspect_overhead.measure()
    plain, ours = figures["inspect_s"], figures["ours_s"]
    row = ("inspect", f"{plain:.2f} s", f"{ours:.2f} s", f"{inspect_overhead.SAMPLES} samples of Inspect, a reply each")
    return row, {"inspect_overhead": figures["ratio"]}


def endpoint() -> Part:
    """Measure a call by ``chat`` and through the endpoint, and the CPU that the latter takes here."""
    direct, wall, cpu = (seconds / CALLS * 1000 for seconds in asyncio.run(_calls()))
    row = ("endpoint", f"{direct:.2f} ms", f"{wall:.2f} ms", f"a call, of which {cpu:.2f} ms are CPU of skillgit")
    milliseconds = {"endpoint_ms_per_call": wall, "chat_ms_per_call": direct, "endpoint_cpu_ms": cpu}
    return row, {name: round(value, 2) for name, value in milliseconds.items()}


async def _calls() -> list[float]:
    session = Bench(SERVES).session()
    try:
        [rollout] = await _rolled(session, 1)
    finally:
        await session.aclose()
    return json.loads(rollout.trajectory.answer)


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    parts = [processes(), endpoint()]
    parts += [part() for part, module in ((cluster, "ray"), (samples, "inspect_ai")) if find_spec(module)]
    rows, figures = [("", "plain", "this way", "what")], {}
    for row, own in parts:
        rows.append(row)
        figures |= own
    measure.report("Where rollouts are made, on two processors", rows, figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(*sys.argv[2:5], int(sys.argv[5]))
    else:
        main()
