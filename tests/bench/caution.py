"""``make bench-caution``: which no-ops a gate policy lets pass and what it refuses of true gains; no model is asked.

A target at temperature 0 answers alike every time, so that repeats show nothing; another wording of the same rules
changes the outcome of some items all the same. ``FLIPS`` is the share of items whose outcome a no-op changes: those
items are coin flips that each text tosses once, all others are settled.

A placebo is 40 no-ops against one base. A run is a line of ``STEPS`` candidates, each with a true gain of ``GAINS``;
what is accepted becomes the base with its lucky outcomes. What a run loses to caution is the true score that it ends
with if exactly the candidates with a true gain are taken, less the one that the policy ends with.

The last line is JSON.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import fsum
from random import Random

import measure

from skillgit.domain.gate_policies import MARGIN, PAIRED, STRICT, Comparison, Policy, Terms
from skillgit.domain.statistics import sign_test

SIZES = (20, 40, 80)
FLIPS = (0.02, 0.05, 0.10)
SOLVED = 0.3  # of the items that are settled, by the seed
GAINS = (0.35, 0.10, 0.05, 0.025, 0.0, 0.0)
"""True gains of candidates: those of the four accepted steps of a recorded run, and two useless ones to four."""
BROKEN = 0.02  # of the settled items that a candidate with a gain breaks
STEPS = measure.sized(8, 2)
RUNS = measure.sized(600, 2)
NO_OPS = 40
PLACEBOS = measure.sized(200, 2)
RULES: dict[str, tuple[Policy, Terms]] = {
    "strict": (STRICT, Terms()),
    "margin 0.025": (MARGIN, Terms(margin=0.025)),
    "margin 0.05": (MARGIN, Terms(margin=0.05)),
    "paired 0.05": (PAIRED, Terms(alpha=0.05)),
    "paired 0.15": (PAIRED, Terms(alpha=0.15)),
    "paired 0.25": (PAIRED, Terms(alpha=0.25)),
}

tested = cache(sign_test)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """What a policy did with selection splits of ``n`` items of which no-ops change the share ``flips``."""

    name: str
    n: int
    flips: float
    no_ops: float  # accepted of 40
    loss: float  # of the true score
    power: float  # share of candidates with a gain of .10 that are accepted


class Items:
    """The selection items of a text: settled ones with their outcome, and coin flips that each text tosses."""

    def __init__(self, random: Random, n: int, flips: float, *, split: list[bool] | None = None) -> None:
        self._random = random
        self.loose = [random.random() < 2 * flips for _ in range(n)] if split is None else split
        self.settled = [random.random() < SOLVED for _ in range(n)]

    def seen(self) -> list[bool]:
        """Return outcomes of the text."""
        return [
            self._random.random() < 0.5 if loose else solved
            for loose, solved in zip(self.loose, self.settled, strict=True)
        ]

    def changed(self, gain: float) -> Items:
        """Return the items of a candidate that solves the share ``gain`` more of the settled ones."""
        solved = sum(self.settled) / len(self.settled)
        broken = BROKEN if gain else 0.0
        fixed = min((gain + broken * solved) / max(1 - solved, 1e-9), 1.0)
        other = Items(self._random, len(self.settled), 0.0, split=self.loose)
        other.settled = [
            self._random.random() >= broken if was else self._random.random() < fixed for was in self.settled
        ]
        return other


def accepts(name: str, before: list[bool], after: list[bool]) -> bool:
    """Say whether the policy ``name`` takes a candidate with the outcomes ``after``."""
    policy, terms = RULES[name]
    fixed, broken = (sum(a > b for a, b in zip(*sides, strict=True)) for sides in ((after, before), (before, after)))
    comparison = Comparison(
        total=fixed - broken,
        scale=1,
        count=len(before),
        fixed=fixed,
        broken=broken,
        terms=terms,
        p_value=lambda: tested(fixed, broken),
        counts_decide=True,
    )
    return policy.accepts(comparison)


def caution(name: str, n: int, flips: float) -> Caution:
    """Simulate placebos, lines of candidates, and single candidates with a gain of .10."""
    random = Random(f"caution {n} {flips}")  # noqa: S311 - the same draws for every policy
    passed = 0
    for _ in range(PLACEBOS):
        items = Items(random, n, flips)
        base = items.seen()
        passed += sum(accepts(name, base, items.seen()) for _ in range(NO_OPS))
    taken = 0
    for _ in range(5 * PLACEBOS):
        items = Items(random, n, flips)
        taken += accepts(name, items.seen(), items.changed(0.10).seen())
    return Caution(
        name=name,
        n=n,
        flips=flips,
        no_ops=passed / PLACEBOS,
        loss=fsum(lost(random, name, n, flips) for _ in range(RUNS)) / RUNS,
        power=taken / (5 * PLACEBOS),
    )


def lost(random: Random, name: str, n: int, flips: float) -> float:
    """Return the true score that one run with the policy ``name`` ends below the one that takes true gains alone."""
    items, score, best = Items(random, n, flips), SOLVED, SOLVED
    seen = items.seen()
    for _ in range(STEPS):
        gain = random.choice(GAINS)
        # What is left to gain shrinks as a text becomes better; a candidate is worth as much of what is left.
        best += gain * (1 - best) / (1 - SOLVED)
        worth = gain * (1 - score) / (1 - SOLVED)
        candidate = items.changed(worth)
        outcomes = candidate.seen()
        if accepts(name, seen, outcomes):
            items, seen, score = candidate, outcomes, score + worth
    return best - score


def main() -> None:
    """Simulate on all processors and report."""
    with ProcessPoolExecutor() as pool:
        jobs = [pool.submit(caution, *case) for case in product(RULES, SIZES, FLIPS)]
        results = [job.result() for job in jobs]
    rows = [("policy", "items", "changed by a no-op", "no-ops accepted of 40", "lost to caution", "+.10 accepted")]
    rows += [
        (each.name, str(each.n), f"{each.flips:.0%}", f"{each.no_ops:.1f}", f"{each.loss:.3f}", f"{each.power:.2f}")
        for each in results
    ]
    figures = {
        f"{each.name} n{each.n} f{each.flips:g}": [round(each.no_ops, 2), round(each.loss, 4), round(each.power, 3)]
        for each in results
    }
    measure.report("What a policy lets pass and what it refuses, simulated", rows, figures)


if __name__ == "__main__":
    main()
