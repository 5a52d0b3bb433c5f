"""``make bench-search``: what ways of searching for a better skill find with the same number of prompt tokens.

Eight generated worlds with hidden rules, harmful lines and noise (``search_world``) are searched by skillgit, each row
of the table with other settings, and by GEPA as its package is published. Scores are true scores of the version that is
best by selection, which the world knows without a model. A row of GEPA spends at least the tokens of the row that it is
compared with, seed by seed.

``python tests/bench/search.py --rows default,gepa --seeds 2`` is a quick look, and ``-o KEY=VALUE`` adds a row with
settings of one's own. ``SEARCH_SIZES=40,40,80`` in the environment gives worlds of other sizes. The last line is JSON.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from time import perf_counter
from typing import TYPE_CHECKING, Any

import measure

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.search_world import ours, rival
from bench.search_world.fit import FITS, WORLD_FIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.search_world.ours import SearchRun

    Runs = dict[int, SearchRun]

SEEDS = measure.sized(8, 1)
LATENCY_S, WIDTH = 0.05, 64
REACHED = 0.95
"""Share of the final score of ``YARDSTICK`` for which tokens are counted."""
GEPA, GIVEN = "gepa", "given"
YARDSTICK = "skillopt"
COLUMNS = ("gepa at its tokens", "controls passed", "passed without gain", "share of tokens")
"""What the table says of rows of ours only; the last is the share of the yardstick's tokens that brings its score."""
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365)
"""Two-sided quantiles at 95 % by degrees of freedom, from 1."""


ROWS: dict[str, tuple[str, ...]] = {
    "reference": measure.values_of("reference"),
    YARDSTICK: measure.values_of("skillopt"),
    "racing": measure.values_of("racing"),
    "pareto": (*measure.values_of("racing"), "train.strategy=pareto"),
    "default": (),
}
"""Rows of skillgit, each with what differs from the defaults."""


def all_searches(names: Sequence[str], seeds: Sequence[int]) -> dict[str, Runs]:
    """Train for every row and seed."""
    pairs = [(name, seed) for name in names for seed in seeds]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda pair: ours.search(ROWS[pair[0]], pair[1]), pairs))
    return {name: {seed: run for (row, seed), run in zip(pairs, results, strict=True) if row == name} for name in names}


def beside(runs: Runs) -> Runs:
    """Return searches of the rival, each with the tokens of one of ``runs``."""
    return {seed: rival.search(seed, run.tokens) for seed, run in runs.items()}


def interval(values: Sequence[float]) -> list[float]:
    """Return the 95 % interval of a mean; a point where there is a single value."""
    if len(values) < 2:
        return [round(value, 4) for value in (*values, *values)]
    quantile = _STUDENT[len(values) - 2] if len(values) - 2 < len(_STUDENT) else 1.96
    half = quantile * stdev(values) / sqrt(len(values))
    return [round(mean(values) - half, 4), round(mean(values) + half, 4)]


def share_of_tokens(runs: Runs, yardstick: Runs) -> float | None:
    """Return which share of the tokens of ``yardstick`` brings ``runs`` near its final score; None if none does."""
    goal = REACHED * mean(run.score for run in yardstick.values())
    spent = mean(run.tokens for run in yardstick.values())
    marks = sorted({point.tokens for run in runs.values() for point in run.curve})
    reached = (mark for mark in marks if mean(run.score_at(mark) for run in runs.values()) >= goal)
    tokens = next(reached, None)
    return None if tokens is None else round(tokens / spent, 3)


def figures_of(runs: Runs, wall_s: float) -> dict[str, Any]:
    """Return what a row of the table says, for programs."""
    scores = [run.score for run in runs.values()]
    return {
        "test_mean": round(mean(scores), 4),
        "test_ci": interval(scores),
        "tokens": round(mean(run.tokens for run in runs.values())),
        "calls": round(mean(run.calls for run in runs.values())),
        "wall_s_64": round(wall_s, 2),
    }


def per_40(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Return how many of 40 passed, where so many of each pair did; None without any."""
    total, passed = (sum(column) for column in zip(*pairs, strict=True))
    return round(40 * passed / total, 2) if total else None


def rival_wall_s(seed: int, tokens: int) -> float:
    """Return the seconds that the rival takes where calls take a while."""
    began = perf_counter()
    rival.search(seed, tokens, latency_s=LATENCY_S, width=WIDTH)
    return perf_counter() - began


def stage_lines(runs: Runs) -> Iterator[str]:
    """Say where the tokens of a row went, mean over its seeds."""
    names = dict.fromkeys(name for run in runs.values() for name in run.stages)
    for name in names:
        tokens, calls = (mean(run.stages.get(name, (0, 0))[index] for run in runs.values()) for index in range(2))
        yield f"  {name.ljust(34)} {tokens / 1000:6.0f}k {calls:6.0f}"


def table(rows: Mapping[str, Mapping[str, Any]], more: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the table for people."""
    lines = [(*("row", "test", "95 %", "tokens", "calls", "wall"), *COLUMNS)]
    for name, row in rows.items():
        low, high = row["test_ci"]
        cells = (
            f"{row['test_mean']:.3f}",
            f"{low:.3f} … {high:.3f}",
            f"{row['tokens'] / 1000:.0f}k",
            str(row["calls"]),
        )
        lines.append((name, *cells, f"{row['wall_s_64']:.1f} s", *more.get(name, [""] * len(COLUMNS))))
    return lines


class Comparison:
    """All rows together, and what they say of each other."""

    def __init__(self, searches: Mapping[str, Runs], *, has_rival: bool) -> None:
        self._searches = searches
        self.best = max(searches, key=lambda name: mean(run.score for run in searches[name].values()))
        self.rivals = {name: beside(runs) for name, runs in searches.items()} if has_rival else {}

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the figures of each row; the rival's are those at the tokens of the best of ours."""
        first = next(iter(self._searches[self.best]))
        rows = {
            name: figures_of(runs, ours.wall_s(ROWS[name], first, LATENCY_S, WIDTH))
            for name, runs in self._searches.items()
        }
        if self.rivals:
            runs = self.rivals[self.best]
            wall_s = rival_wall_s(first, self._searches[self.best][first].tokens)
            metric_calls = round(mean(run.metric_calls for run in runs.values()))
            rows[GEPA] = figures_of(runs, wall_s) | {"metric_calls": metric_calls}
        return rows

    def facts(self) -> dict[str, Any]:
        """Return what is said of the rows together."""
        searches = self._searches
        facts: dict[str, Any] = {
            "best": self.best,
            "tokens_for_score": self._shares(),
            "false_accepts_per_40": {
                name: per_40([run.controls for run in runs.values()]) for name, runs in searches.items()
            },
            "no_gain_accepts_per_40": {
                name: per_40([run.judged for run in runs.values()]) for name, runs in searches.items()
            },
        }
        if self.rivals:
            pairs = zip(searches[self.best].values(), self.rivals[self.best].values(), strict=True)
            gains = [run.score - other.score for run, other in pairs]
            facts["advantage_at_equal_tokens"] = round(mean(gains), 4)
            facts["advantage_ci"] = interval(gains)
        return facts

    def _shares(self) -> dict[str, float | None]:
        yardstick = self._searches.get(YARDSTICK)
        if yardstick is None:
            return {}
        shares = {name: share_of_tokens(runs, yardstick) for name, runs in self._searches.items()}
        if self.rivals:
            longer = {seed: rival.search(seed, 2 * run.tokens) for seed, run in yardstick.items()}
            shares[GEPA] = share_of_tokens(longer, yardstick)
        return shares

    def cells(self, name: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what the table says of a row of ours besides its figures."""
        at_tokens = f"{mean(run.score for run in self.rivals[name].values()):.3f}" if self.rivals else "-"
        accepts = (facts[key][name] for key in ("false_accepts_per_40", "no_gain_accepts_per_40"))
        share = facts["tokens_for_score"].get(name)
        return (at_tokens, *(f"{count} of 40" for count in accepts), "-" if share is None else f"{share:.2f}")


def wanted() -> tuple[list[str], int]:
    """Return the rows and the number of worlds that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows",
        default=",".join((*measure.sized([*ROWS], [YARDSTICK, "default"]), GEPA)),
        help="rows to measure, with commas between them",
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of worlds")
    parser.add_argument("--world", choices=sorted(FITS), default="recorded", help="how far targets keep to rules")
    parser.add_argument("-o", action="append", metavar="KEY=VALUE", help=f"a setting of a further row, '{GIVEN}'")
    words = parser.parse_args()
    os.environ[WORLD_FIT] = words.world
    names = [name for name in words.rows.split(",") if name]
    if words.o:
        ROWS[GIVEN] = tuple(words.o)
        names.append(GIVEN)
    if unknown := set(names) - {*ROWS, GEPA}:
        parser.error(f"there is no row '{min(unknown)}'; there are {', '.join((*ROWS, GEPA))}")
    if not set(names) & set(ROWS):
        parser.error("a row of skillgit is needed: the rival gets as many tokens as that")
    return names, words.seeds


def main() -> None:
    names, count = wanted()
    searches = all_searches([name for name in names if name != GEPA], range(1, count + 1))
    has_rival = GEPA in names and rival.is_installed()
    comparison = Comparison(searches, has_rival=has_rival)
    facts, rows = comparison.facts(), comparison.rows()
    for name, runs in searches.items():
        print(f"{name}: prompt tokens and calls by stage", *stage_lines(runs), "", sep="\n")  # noqa: T201 - a report
    if GEPA in names and not has_rival:
        print("There is no row of GEPA without its package: pip install gepa.", end="\n\n")  # noqa: T201 - the same
    cells = {name: comparison.cells(name, facts) for name in searches}
    measure.report(f"search in {count} worlds", table(rows, cells), rows | facts)


if __name__ == "__main__":
    main()
