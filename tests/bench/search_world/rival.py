"""The rival: the published package ``gepa`` in the same world, with its own defaults and an adapter of ours."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any

from bench.search_world.insight import Insight, Optimizer, Seen
from bench.search_world.ours import Point, SearchRun
from bench.search_world.world import SEED, World, WorldItem, world_of

from skillgit.plugin.backend import Message, estimated_usage, system, user

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.search_world.world import Attempt

PACKAGE = "gepa"
COMPONENT = "skill"
_ENDLESS = 10**9


def is_installed() -> bool:
    return find_spec(PACKAGE) is not None


@dataclass
class Meter:
    """Counts calls and prompt tokens by stage, and takes as long for a call as it is told."""

    latency_s: float = 0.0
    stages: dict[str, tuple[int, int]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def tokens(self) -> int:
        return sum(tokens for tokens, _ in self.stages.values())

    @property
    def calls(self) -> int:
        return sum(calls for _, calls in self.stages.values())

    def count(self, stage: str, messages: Sequence[Message]) -> None:
        if self.latency_s:
            time.sleep(self.latency_s)
        used = estimated_usage(messages, "").tokens_in
        with self._lock:
            tokens, calls = self.stages.get(stage, (0, 0))
            self.stages[stage] = (tokens + used, calls + 1)


class Adapter:
    """The desk as ``gepa`` asks it: a batch with up to ``width`` requests in flight."""

    propose_new_texts = None

    def __init__(self, world: World, meter: Meter, width: int) -> None:
        self._world, self._meter = world, meter
        self._attempts = Counter[tuple[str, str]]()
        self._width = width

    def evaluate(self, batch: list[WorldItem], candidate: dict[str, str], capture_traces: bool = False) -> Any:  # noqa: FBT001, FBT002
        from gepa.core.adapter import EvaluationBatch  # noqa: PLC0415 - not installed everywhere

        text, stage = candidate[COMPONENT], "target minibatch" if len(batch) < 10 else "target selection"
        numbers = [self._number(text, item) for item in batch]

        def asked(item: WorldItem, number: int) -> Attempt:
            self._meter.count(stage, [system(text), user(item.task)])
            return self._world.attempt(text, item, number)

        if self._width > 1:
            with ThreadPoolExecutor(self._width) as pool:
                attempts = list(pool.map(asked, batch, numbers))
        else:
            attempts = [asked(item, number) for item, number in zip(batch, numbers, strict=True)]
        traces = list(zip(batch, attempts, strict=True)) if capture_traces else None
        return EvaluationBatch(
            outputs=[attempt.answer for attempt in attempts],
            scores=[float(attempt.solved) for attempt in attempts],
            trajectories=traces,
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        del candidate
        rows = [
            {"Inputs": item.task, "Generated Outputs": attempt.answer, "Feedback": attempt.feedback}
            for item, attempt in eval_batch.trajectories
        ]
        return dict.fromkeys(components_to_update, rows)

    def _number(self, text: str, item: WorldItem) -> int:
        number = self._attempts[text, item.id]
        self._attempts[text, item.id] += 1
        return number


def reflected(world: World, prompt: str) -> str:
    """Answer the reflection prompt: the instruction with everything that the examples suggest."""
    _, text, rest = prompt.split("```\n", 2)
    examples = rest.split("# Example ")[1:]
    seen = [_example(example.partition("```")[0]) for example in examples]
    failures = [one for one in seen if one.feedback != "right"]
    solved = [one for one in seen if one.feedback == "right"]
    optimizer = Optimizer(world, text, prompt)
    insights = [*optimizer.from_failures(failures, solved), *optimizer.from_solved(solved)]
    return f"```\n{_revised(text.rstrip(), insights)}\n```"


def _example(text: str) -> Seen:
    parts = {name: rest.strip() for name, _, rest in (part.partition("\n") for part in text.split("## ")[1:])}
    return Seen(parts["Inputs"].partition(".")[0], parts["Inputs"], parts["Feedback"])


def _revised(text: str, insights: Iterable[Insight]) -> str:
    for insight in insights:
        if insight.old:
            lines = [line for line in text.splitlines() if line != insight.old]
            text = "\n".join(lines)
        if insight.new:
            text += f"\n- {insight.new}"
    return text


class _Curve:
    """Keeps the best candidate after each that was measured on all selection items."""

    def __init__(self, world: World, meter: Meter) -> None:
        self._world, self._meter, self.points = world, meter, list[Point]()

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        score = event["average_score"]
        if not self.points or score > self.points[-1].selection:
            true = self._world.score(event["candidate"][COMPONENT], "test")
            self.points.append(Point(tokens=self._meter.tokens, selection=score, score=true))


def search(seed: int, tokens: int, *, latency_s: float = 0.0, width: int = 1) -> SearchRun:
    """Run ``gepa`` in the world of ``seed`` until it has used ``tokens``.

    That is the same as a budget in its own unit, metric calls, which does not change what it does before it is spent.
    How many of them are worth ``tokens`` is only known afterwards; that number is in the result. What it began before
    the end it finishes, so that it has a little more than ``tokens``.
    """
    import gepa  # noqa: PLC0415 - not installed everywhere

    world = world_of(seed)
    meter = Meter(latency_s)
    curve = _Curve(world, meter)

    def reflection(prompt: str) -> str:
        meter.count("optimizer reflection", [user(prompt)])
        return reflected(world, prompt)

    result = gepa.optimize(
        seed_candidate={COMPONENT: SEED},
        trainset=list(world.items["train"]),
        valset=list(world.items["selection"]),
        adapter=Adapter(world, meter, width),
        reflection_lm=reflection,
        max_metric_calls=_ENDLESS,
        stop_callbacks=[lambda _: meter.tokens >= tokens],
        callbacks=[curve],
        logger=_Silence(),
        seed=seed,
    )
    return SearchRun(
        curve=curve.points,
        tokens=meter.tokens,
        calls=meter.calls,
        stages=meter.stages,
        metric_calls=result.total_metric_calls or 0,
    )


class _Silence:
    def log(self, message: str) -> None: ...
