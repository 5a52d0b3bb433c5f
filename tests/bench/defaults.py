"""``make bench-defaults``: what ``_base_: skillopt`` is chosen by, on the offline models and the items of the demo.

Every setting trains the same eight seeds, each with a division of the items of its own, for two epochs. It reports the
score of the best version on the selection and the test split, calls and prompt tokens; means, and the standard error of
the test score. The last line is JSON: setting to its test score, its standard error and its thousands of tokens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import measure

SEEDS = range(1, measure.sized(9, 3))
REFERENCE = ("train.batch_size=40",)
"""The demo has the other values of the reference."""
ONE_CALL, SALVAGE, CONTRAST = "optimizer.aggregate=one_call", "optimizer.salvage=true", "gradient.contrast=2"
ALL = {
    "reference": REFERENCE,
    "batches of 20": ("train.batch_size=20",),
    "and one call": ("train.batch_size=20", ONE_CALL),
    "and salvage": ("train.batch_size=20", SALVAGE),
    "one call and salvage": ("train.batch_size=20", ONE_CALL, SALVAGE),
    "skillopt": ("train.batch_size=20", ONE_CALL, SALVAGE, CONTRAST),
}
SETTINGS = measure.sized(ALL, {name: ALL[name] for name in ("reference", "skillopt")})
LENGTH = measure.sized(
    ("train.num_epochs=2",), ("train.num_epochs=1", "evaluation.sel_env_num=8", "evaluation.test_env_num=4")
)


def trained(setting: str, seed: int) -> tuple[float, float, int, int]:
    """Return selection score, test score, calls and prompt tokens of one run."""
    overrides = (*SETTINGS[setting], f"train.seed={seed}", f"env.split_seed={seed}", *LENGTH)
    words = [word for override in overrides for word in ("-o", override)]
    with TemporaryDirectory() as folder:
        for command in (("init",), ("train", "demo", "--run", "bench", "--quiet", "--json", *words)):
            program = (sys.executable, "-m", "skillgit", "-C", folder, *command)
            done = subprocess.run(program, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    result = json.loads(done.stdout)
    best = next(row for row in result["report"] if row["label"] == "best")
    return best["selection"], best["test"], result["cost"]["calls"], result["cost"]["tokens_in"]


def main() -> None:
    pairs = [(setting, seed) for setting in SETTINGS for seed in SEEDS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(pairs, pool.map(lambda pair: trained(*pair), pairs), strict=True))
    rows, figures = [("setting", "selection", "test", "±", "calls", "tokens")], dict[str, float]()
    for setting in SETTINGS:
        selection, test, calls, tokens = zip(*(results[setting, seed] for seed in SEEDS), strict=True)
        error, thousands = stdev(test) / sqrt(len(SEEDS)), mean(tokens) / 1000
        cells = f"{mean(selection):.3f}", f"{mean(test):.3f}", f"{error:.3f}", f"{mean(calls):.0f}", f"{thousands:.0f}k"
        rows.append((setting, *cells))
        name = setting.replace(" ", "_")
        figures |= {name: round(mean(test), 4), f"{name}_se": round(error, 4), f"{name}_ktokens": round(thousands, 1)}
    measure.report("settings of skillopt, eight seeds of the demo", rows, figures)


if __name__ == "__main__":
    main()
