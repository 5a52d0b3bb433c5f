"""Invented costs of the run of ``cli_sample``, as the use case would return them."""

from __future__ import annotations

import cli_sample as sample

from skillgit.app.history.cost import CostRow, Spending, Unpriced


def cost_row(share: float, **facts: object) -> CostRow:
    values: dict[str, object] = {
        "calls": 4,
        "tokens_in": 40_000,
        "tokens_out": 4_000,
        "cached": 0,
        "cache_written": 0,
        "reasoning": 0,
        "unpriced": 0,
        "usd": 0.1,
        "seconds": 12.5,
        "share": share,
    }
    return CostRow(**(values | facts))  # type: ignore[arg-type]


TARGET_COST = {"calls": 5999, "tokens_in": 14_000_000, "cached": 7_000_000, "cache_written": 280_000, "usd": 20.0}
SPENDING = Spending(
    run=sample.RUN,
    by="role stage",
    rows=(
        cost_row(0.0),
        cost_row(0.2, role="optimizer", stage="reflect", calls=120, reasoning=3_000, usd=5.0, seconds=700.0),
        cost_row(0.8, role="target", stage="rollout", **TARGET_COST),
    ),
    total=cost_row(1.0, **{**TARGET_COST, "calls": 6123, "usd": 25.1, "seconds": 4000.0}),
    share_of="usd",
)
UNPRICED_SPENDING = Spending(
    run=sample.RUN,
    by="model",
    rows=(
        cost_row(0.25, model="acme/large", unpriced=4, usd=None),
        cost_row(0.5, model="acme/small", unpriced=1),
        cost_row(0.25),
    ),
    total=cost_row(1.0, calls=12, unpriced=5),
    share_of="tokens",
    unpriced=(Unpriced(model="acme/large", calls=4), Unpriced(model="acme/small", calls=1)),
)
VERSION_SPENDING = Spending(
    run=sample.RUN,
    by="version",
    rows=(cost_row(0.25, version=0), cost_row(0.5, version=1), cost_row(0.25)),
    total=cost_row(1.0, calls=12),
    share_of="usd",
)
STEP_SPENDING = Spending(
    run=sample.RUN,
    by="step",
    rows=tuple(
        cost_row(0.125, kind=kind, step=step, epoch=1, version=version, origin=origin)
        for kind, step, version, origin in (
            ("run-started", 0, 0, "step"),
            ("accepted", 1, 1, "step"),
            ("rejected", 2, None, "step"),
            ("skipped", 3, None, "step"),
            ("rejected", 3, None, "meta"),
            ("slow-proposed", 3, None, "step"),
            ("run-finished", 3, None, "step"),
        )
    ),
    total=cost_row(1.0, calls=28),
    share_of="usd",
)
RUNS_SPENDING = Spending(
    run="",
    by="run",
    rows=(cost_row(0.75, run=sample.RUN), cost_row(0.25, run="docvqa-20261120-m3re", usd=0.004)),
    total=cost_row(1.0, calls=8),
    share_of="usd",
)
