"""Owns the schedule of the method's reference implementation: which calls it makes, and where it waits for all of them.

Its phases follow one another; the calls of one phase run in a pool of threads. It rolls every item out again whatever
it knows, evaluates every candidate on all selection items, and measures the test split up to three times. For 24 steps
with a candidate in each that makes 3,366 calls and 25.05 seconds at 50 ms and 8 threads, which are the figures of its
own logs. A step of which the measured training made no candidate has none here either.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from bench.workload.items import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.workload.trainings import Recording

STEPS_PER_EPOCH = 3
BATCH, MINIBATCHES, SLOW_SAMPLES = 40, 6, 20
FIRST_SLOW_EPOCH = 2

Phase = list[dict[str, Any]]


def phases(recording: Recording, *, epochs: int) -> Iterator[Phase]:
    """Return the phases of ``epochs`` epochs; the requests are those of ``recording``, over and over again."""
    target = cycle([call.document for call in recording.calls if call.role == "target"])
    optimizer = cycle([call.document for call in recording.calls if call.role == "optimizer"])

    def asked(source: Iterator[dict[str, Any]], count: int) -> Phase:
        return [next(source) for _ in range(count)]

    yield asked(target, SIZES["val"])
    yield asked(target, SIZES["test"])
    for epoch in range(1, epochs + 1):
        for step in range(STEPS_PER_EPOCH * (epoch - 1) + 1, STEPS_PER_EPOCH * epoch + 1):
            yield asked(target, BATCH)
            yield asked(optimizer, MINIBATCHES)
            if f"step-{step}" in recording.measured:
                yield asked(optimizer, 1)
                yield asked(optimizer, 1)
                yield asked(target, SIZES["val"])
        if epoch >= FIRST_SLOW_EPOCH:
            yield asked(target, SLOW_SAMPLES)
            yield asked(target, SLOW_SAMPLES)
            yield asked(optimizer, 1)
            yield asked(optimizer, 1)
    yield asked(target, SIZES["val"])
    yield asked(target, SIZES["test"])
    yield asked(target, SIZES["test"])
