"""``make bench-gate``: what the gate's verdicts are worth, and what the early stop saves; no model is asked.

Nulls: every item has its own chance of being solved, Beta with mean 0.8, and a candidate has the same chances as the
start. A run of 40 steps sends 40 such candidates through the gate, each accepted one becoming current with its lucky
outcomes. False accepts are counted, and the score that the best version shows is compared with its true one.

Early stop: each of ``n`` items is solved with chance p, a candidate fixes a failed one and breaks a solved one with
given chances. The fraction is that of the items which the decision needed; ``rolled_out_fraction`` also counts what
waves of the engine's size roll out beyond the item that settled it.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import fsum
from operator import mul
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import measure

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
import toy

from skillgit.domain.evaluation import Evaluation, FailedToEvaluate, Metric, Scored, Split
from skillgit.domain.gate_decision import GateRule, NoRegression, decide
from skillgit.domain.gate_policies import PAIRED, POLICIES
from skillgit.engine.measure import WAVE, EarlyStop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.domain.gate_policies import Policy

SIZES = (20, 40, 100, 200)
STEPS = measure.sized(40, 2)
RUNS = measure.sized(250, 2)
POWER_TRIALS = measure.sized(2_000, 3)
GAIN = 0.05
SHAPE = (3.2, 0.8)
"""Beta parameters of the items' chances: mean 0.8, some items nearly certain and some coin flips."""
TABLES = measure.sized(10_000, 20)
SAMPLES = measure.sized(3_000, 20)
BOOKKEEPING = measure.sized(1_400, 20)
ITEMS = measure.sized(120, 8)
CASES = {
    "p60_fix10_break05": (0.60, 0.10, 0.05, 0.94),
    "p80_fix00_break00": (0.80, 0.00, 0.00, 0.20),
    "p80_fix10_break05": (0.80, 0.10, 0.05, 0.58),
    "p80_fix20_break10": (0.80, 0.20, 0.10, 0.60),
    "p87_fix05_break02": (0.87, 0.05, 0.02, 0.42),
    "p87_fix10_break05": (0.87, 0.10, 0.05, 0.39),
    "p95_fix10_break05": (0.95, 0.10, 0.05, 0.15),
}
"""Share solved by the base, chances to fix and to break, and the fraction that the method's reference gives."""
CASE_ITEMS = 200
CASE_TRIALS = measure.sized(30_000, 3)
CHECKED = measure.sized(100, 2)
RULES = {"strict": GateRule(), "paired": GateRule(policy=PAIRED, alpha=0.05)}
PASS, FAIL = Scored(1.0, 1.0), Scored(0.0, 0.0)


def evaluation(outcomes: Sequence[Scored]) -> Evaluation:
    """Return an evaluation of numbered items."""
    named = {str(place): outcome for place, outcome in enumerate(outcomes)}
    return Evaluation(split=Split.SELECTION, item_set="", outcomes=named, seed=0)


def drawn(random: Random, chances: Sequence[float]) -> Evaluation:
    """Return one noisy evaluation."""
    return evaluation([PASS if random.random() < chance else FAIL for chance in chances])


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What one policy did with one size of the selection split."""

    name: str
    n: int
    false_accepts: float
    rate: float
    inflation: float
    power: float


def gate(name: str, n: int) -> Gate:
    """Simulate runs of candidates without effect, and single candidates with a true gain."""
    random, rule = Random(f"null {n}"), RULES[name]  # noqa: S311 - the same draws for every policy
    accepted, inflation = 0, []
    for _ in range(RUNS):
        chances = [random.betavariate(*SHAPE) for _ in range(n)]
        current = drawn(random, chances)
        for _ in range(STEPS):
            candidate = drawn(random, chances)
            if decide(rule, candidate, current, 0.0).decision.accepted:
                accepted, current = accepted + 1, candidate
        inflation.append(current.summary().hard - fsum(chances) / n)
    return Gate(
        name=name,
        n=n,
        false_accepts=accepted / RUNS,
        rate=accepted / RUNS / STEPS,
        inflation=fsum(inflation) / RUNS,
        power=power(rule, n),
    )


def power(rule: GateRule, n: int) -> float:
    """Return how often a candidate that truly gains five points is accepted.

    Items change for a reason, not by chance: a candidate fixes failed items and breaks some solved ones.
    """
    random, found = Random(f"gain {n}"), 0  # noqa: S311 - simulation
    solved, broken = 0.8, 0.01
    fixed = (GAIN + broken * solved) / (1 - solved)
    for _ in range(POWER_TRIALS):
        base = drawn(random, [solved] * n)
        found += decide(rule, changed(random, base, fixed, broken), base, 0.0).decision.accepted
    return found / POWER_TRIALS


def changed(random: Random, base: Evaluation, fixed: float, broken: float) -> Evaluation:
    """Return the outcomes of a candidate that fixes and breaks items with these chances."""
    chances = [1 - broken if outcome is PASS else fixed for outcome in base.outcomes.values()]
    return drawn(random, chances)


def stopped(rule: GateRule, base: Evaluation, candidate: Evaluation) -> tuple[Evaluation, int]:
    """Evaluate a candidate as the engine does; return what it records and how many items it rolled out."""
    stop = EarlyStop(rule, base, WAVE)
    for item in stop.items:
        if stop.needed is not None:
            break
        stop.take(item, candidate.outcomes[item])
        stop.look()
    known = set(stop.items[: stop.needed])
    seen = {item: outcome for item, outcome in candidate.outcomes.items() if item in known}
    return replace(candidate, outcomes=seen, unneeded=tuple(stop.items[stop.needed :])), stop.sure


def fractions(name: str) -> tuple[float, float, float]:
    """Return which fractions of the items a decision needed and the waves rolled out, and how many were accepted.

    For pass and fail the item that settles a decision is found by counting. The first tables are evaluated by the
    program as well, which has to agree.
    """
    solved, fixed, broken, _ = CASES[name]
    random, needed, rolled, accepted = Random(name), 0, 0, 0  # noqa: S311 - simulation
    for number in range(CASE_TRIALS):
        base = [random.random() < solved for _ in range(CASE_ITEMS)]
        candidate = [random.random() >= broken if old else random.random() < fixed for old in base]
        count, passes = counted(base, candidate)
        needed, accepted = needed + count, accepted + passes
        if number < CHECKED:
            before, after = (evaluation([PASS if one else FAIL for one in side]) for side in (base, candidate))
            recorded, rolled_out = stopped(GateRule(), before, after)
            if (len(recorded.outcomes), not recorded.unneeded) != (count, count == CASE_ITEMS):
                raise AssertionError(f"{name}: {len(recorded.outcomes)} items were needed, not {count}")
            rolled += rolled_out
    return needed / CASE_TRIALS / CASE_ITEMS, rolled / CHECKED / CASE_ITEMS, accepted / CASE_TRIALS


def counted(base: Sequence[bool], candidate: Sequence[bool]) -> tuple[int, bool]:
    """Return after how many items the strict gate's decision is certain, and whether it accepts."""
    failed = [new for old, new in zip(base, candidate, strict=True) if not old]
    lead = sum(failed)
    if lead == 0:
        return len(failed), False
    for place, new in enumerate(new for old, new in zip(base, candidate, strict=True) if old):
        lead -= not new
        if lead == 0:
            return len(failed) + place + 1, False
    return len(base), True


def changed_decisions(tables: int) -> int:
    """Return in how many random tables, over all metrics and policies, stopping changes the decision."""
    random, found = Random("tables"), 0  # noqa: S311 - simulation
    for number in range(tables):
        rule = GateRule(
            policy=[*POLICIES.values()][number % len(POLICIES)],
            metric=list(Metric)[number // 3 % 3],
            soft_weight=random.random(),
            alpha=random.choice((0.05, 0.2, 0.5)),
            margin=random.choice((0.0, 0.02, 0.1)),
            no_regression=random.choice(list(NoRegression)),
            pinned=frozenset({"0", "3"}),
        )
        base, candidate = random_table(random)
        full, (part, _) = decide(rule, candidate, base, 0.5), stopped(rule, base, candidate)
        found += decide(rule, part, base, 0.5).decision is not full.decision
    return found


def random_table(random: Random) -> tuple[Evaluation, Evaluation]:
    """Return the outcomes of a base and of a candidate that differ in some items."""
    items, share = random.randint(1, 14), random.random()

    def outcome() -> Scored:
        hard = float(random.random() < share)
        return Scored(hard, 1.0 if hard else random.choice((0.0, 0.25, 0.5, random.random())))

    base = [outcome() for _ in range(items)]
    keeps = random.random()
    return evaluation(base), evaluation([old if random.random() < keeps else outcome() for old in base])


def accepts_not_better(tables: int) -> int:
    """Return how many random tables with failures on either side the default gate accepts without more fixed items."""
    random, count = Random("failures"), 0  # noqa: S311 - simulation
    for _ in range(tables):
        solved, failing = random.random(), [random.choice((0.0, 0.1, 0.3)) for _ in range(2)]
        rule = GateRule(min_coverage=random.choice((0.0, 0.5, 0.9)))

        def outcome(side: int, solved: float = solved, failing: list[float] = failing) -> Scored | FailedToEvaluate:
            if random.random() < failing[side]:
                return FailedToEvaluate("timeout")
            return PASS if random.random() < solved else FAIL

        items = random.randint(1, 40)
        base, candidate = (
            replace(evaluation(()), outcomes={str(place): outcome(side) for place in range(items)}) for side in (0, 1)
        )
        verdict = decide(rule, candidate, base)
        count += verdict.decision.accepted and verdict.fixed <= verdict.broken
    return count


def rational_p_agree(samples: int) -> int:
    """Return in how many samples of decimal scores p is the share of sign assignments, counted with fractions."""
    random, agree = Random("decimals"), 0  # noqa: S311 - simulation
    for _ in range(samples):
        pairs = [(random.randint(0, 10), random.randint(0, 10)) for _ in range(random.randint(1, 9))]
        base, candidate = (evaluation([Scored(0.0, pair[side] / 10) for pair in pairs]) for side in (0, 1))
        gains = [after - before for before, after in pairs]
        sizes = [abs(gain) for gain in gains]
        sums = [sum(map(mul, signs, sizes)) for signs in product((1, -1), repeat=len(sizes))]
        exact = sum(total >= sum(gains) for total in sums) / len(sums)
        agree += decide(GateRule(metric=Metric.SOFT), candidate, base).p == exact
    return agree


def bookkeeping(metric: Metric, policy: Policy) -> float:
    """Return the CPU seconds that one gate of 1,400 items takes, early stop and verdict together."""
    random, rule = Random("bookkeeping"), GateRule(metric=metric, policy=policy, soft_weight=0.3)  # noqa: S311

    def outcome() -> Scored:
        soft = random.randint(0, 20) / random.randint(20, 40)
        return Scored(float(random.random() < 0.5), soft)

    base = evaluation([outcome() for _ in range(BOOKKEEPING)])
    better = [old if random.random() < 0.9 else PASS for old in base.outcomes.values()]
    candidate = evaluation(better)  # type: ignore[arg-type]
    began = process_time()
    part, _ = stopped(rule, base, candidate)
    decide(rule, part, base)
    return process_time() - began


def mixed_over_hard() -> float:
    """Return how much longer a training of 120 items with an instant model takes under the mixed metric."""
    walls: dict[Metric, list[float]] = {Metric.HARD: [], Metric.MIXED: []}
    for _ in range(3):
        for metric, seconds in walls.items():
            began = perf_counter()
            asyncio.run(train(metric))
            seconds.append(perf_counter() - began)
    return median(walls[Metric.MIXED]) / median(walls[Metric.HARD])


async def train(metric: Metric) -> None:
    """Train on the toy task, whose model answers at once."""
    history = toy.History()
    environment = toy.ToyEnvironment()
    environment.items = lambda split: toy.items(split.value, ITEMS)  # type: ignore[method-assign]
    sections = {"train": {"num_epochs": 2, "batch_size": 20, "seed": 1}, "evaluation": {"gate_metric": metric.value}}
    made = toy.trainer(toy.ToyBackend(), history, environment=environment, **sections)
    await toy.run_to_end(made, history)


def main() -> None:
    """Simulate on all processors and report."""
    with ProcessPoolExecutor() as pool:
        changes = pool.submit(changed_decisions, TABLES)
        cases = {name: pool.submit(fractions, name) for name in CASES}
        jobs = [pool.submit(gate, name, n) for n in SIZES for name in RULES]
        laws = pool.submit(accepts_not_better, TABLES), pool.submit(rational_p_agree, SAMPLES)
        gates = [job.result() for job in jobs]
        kept = {name: law.result() for name, law in zip(("accepts_not_better", "rational_p_agree"), laws, strict=True)}
        found = {name: case.result() for name, case in cases.items()}
        report(gates, found, {"changed_decisions": changes.result()} | kept | costs())


def costs() -> dict[str, object]:
    """Return what the bookkeeping of gates takes; nothing else runs meanwhile."""
    slowest = {
        f"bookkeeping_s_1400_{metric}": round(max(bookkeeping(metric, each) for each in POLICIES.values()), 3)
        for metric in Metric
    }
    return slowest | {"wall_mixed_over_hard": round(mixed_over_hard(), 2)}


def report(gates: Sequence[Gate], cases: dict[str, tuple[float, float, float]], more: dict[str, object]) -> None:
    """Print both tables and the figures."""
    rows = [("policy", "n", f"false accepts in {STEPS} steps", "inflation, points", "power for +5 points")]
    rows += [
        (one.name, str(one.n), f"{one.false_accepts:.2f}", f"{one.inflation * 100:+.1f}", f"{one.power:.2f}")
        for one in gates
    ]
    rows.append(("", "", "", "", ""))
    rows.append(("early stop", "accepted", "items needed", "rolled out", "reference"))
    rows += [
        (name, f"{accepted:.2f}", f"{needed:.3f}", f"{rolled:.3f}", f"{CASES[name][3]:.2f}")
        for name, (needed, rolled, accepted) in cases.items()
    ]
    rows.append((f"{more['changed_decisions']} of {TABLES:,} decisions changed", "", "", "", ""))
    figures: dict[str, object] = {name: policy([one for one in gates if one.name == name]) for name in RULES}
    figures["evaluated_fraction"] = {name: round(needed, 2) for name, (needed, _, _) in cases.items()}
    figures["rolled_out_fraction"] = {name: round(rolled, 3) for name, (_, rolled, _) in cases.items()}
    figures |= more
    measure.report("The gate, simulated", rows, figures)


def policy(gates: Sequence[Gate]) -> dict[str, float]:
    """Return the figures of one policy."""

    def each(name: str, value: Callable[[Gate], float]) -> dict[str, float]:
        return {f"{name}_n{one.n}": round(value(one), 4) for one in gates}

    rate = {"false_accept_rate": round(max(one.rate for one in gates), 4)}
    return (
        each("false_accepts", lambda one: one.false_accepts)
        | rate
        | each("inflation", lambda one: one.inflation)
        | each("power", lambda one: one.power)
    )


if __name__ == "__main__":
    main()
