"""Programs that train a skill, compared on real tasks with one real model.

A task is a folder that a script of ``tasks/`` makes from public packages. Every program asks the same address
(``door.py``), shows the target the same prompts and is scored by the same scorer; they differ in method alone::

    python tests/bench/real/tasks/archive_sections.py archive-sections
    python tests/bench/real/compare.py run archive-sections refine --seed 1 --folder results --target http://127.0.0.1:8081/v1
    python tests/bench/real/compare.py table results

The optimizer is whoever answers: each of its questions is a file ``NAME.prompt.md`` in the folder that ``run`` prints,
and the run waits for ``NAME.answer.md`` beside it. ``compare.py wait FOLDER`` prints the oldest open question, as soon
as there is one. The same ``run`` goes on after any stop: the program starts over, and every reply that was given is
given again. A peer runs in an interpreter of its own, ``--python`` (see ``peers/``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

from door import OPTIMIZER, TARGET, Door, opened  # noqa: E402
from task import Task  # noqa: E402

from skillgit.domain.evaluation import Split  # noqa: E402
from skillgit.domain.protected_regions import frontmatter  # noqa: E402
from skillgit.domain.statistics import bootstrap_interval  # noqa: E402

RUN = "trained"
PEERS = ("gepa", "skillopt")
SKILLGIT: Mapping[str, Mapping[str, Any]] = {
    "refine": {"_base_": ["refine"]},
    "one-candidate": {"_base_": ["skillopt"]},
    "reference": {"_base_": ["reference"]},
    "racing": {"_base_": ["racing"]},
}
"""Our own programs, to what each changes in the default configuration of ``tasks``; ``refine`` is the default."""
NAMES = {
    "refine": "**skillgit, `refine`** (the default)",
    "one-candidate": "skillgit, `skillopt`",
    "skillopt": "SkillOpt 0.2.0",
    "gepa": "GEPA 0.1.4",
}
"""Programs as the documents call them."""
COUNTS = ("tokens_in", "tokens_out", "cached")
BESIDE = {
    "train": {"num_epochs": 2, "batch_size": 20, "preflight": False},
    "env": {"exec_timeout": 1800.0},
    "calls": {"concurrency": 4, "temperature": 0, "timeout_s": 7200.0},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    run = verbs.add_parser("run", help="let a program train on a task, and measure what it found")
    run.add_argument("task", type=Path, help="folder that a script of tasks/ made")
    run.add_argument("program", choices=[*PEERS, *SKILLGIT])
    run.add_argument("--seed", type=int, default=1, help="of the program's own draws")
    run.add_argument("--folder", type=Path, default=Path("results"), help="of all results")
    run.add_argument("--target", required=True, help="address of the target's server, with its /v1")
    run.add_argument("--at-once", type=int, default=4, help="requests to the target; 1 where several programs run")
    run.add_argument("--python", default=sys.executable, help="interpreter that has the peer")
    run.set_defaults(do=train)
    wait = verbs.add_parser("wait", help="print the path of the oldest open question to the optimizer")
    wait.add_argument("folder", type=Path, help="that run printed")
    wait.add_argument("--seconds", type=float, default=570, help="after which it gives up, with exit code 75")
    wait.set_defaults(do=lambda words: sys.exit(wait_for_question(words.folder, words.seconds)))
    record = verbs.add_parser("record", help="make a run of skillgit a configuration that replays it")
    record.add_argument("run", type=Path, help="folder of the run: results/TASK/PROGRAM-SEED")
    record.add_argument("config", type=Path, help="the file to write, configs/recorded/NAME.yaml")
    record.set_defaults(do=lambda words: write_record(words.run, words.config))
    table = verbs.add_parser("table", help="print what all programs found")
    table.add_argument("folder", type=Path, help="of all results")
    table.set_defaults(do=lambda words: sys.stdout.write(tables(words.folder)))
    words = parser.parse_args()
    words.do(words)


def train(words: Namespace) -> None:
    """Run a program from its start, measure its best text on both held-out splits, and write ``result.json``."""
    place = words.folder.resolve() / words.task.resolve().name / f"{words.program}-{words.seed}"
    work = place / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (place / "over").unlink(missing_ok=True)
    sys.stdout.write(f"questions to the optimizer: {place / OPTIMIZER}\n")
    sys.stdout.flush()
    began = time.time()
    with opened(words.target, words.folder.resolve() / "replies.db", place / OPTIMIZER, words.at_once) as door:
        model = door.models()["data"][0]["id"]
        address = f"{door.url}/target/v1"
        task = Task(Namespace(folder=words.task.resolve(), target=address, model=model, judge=address, optimizer=""))
        door.held_out = frozenset(str(item.content["prompt"]) for item in task.test)
        try:
            best = (_train_peer if words.program in PEERS else _train_skillgit)(words, work, door, model)
        finally:
            (place / "over").touch()
        used = {role: asdict(counts) for role, counts in door.used.items()}
        took = time.time() - began
        scores = {
            split.value: {
                name: [outcome.scored.hard for outcome in task.outcomes(items, text)]
                for name, text in (("seed", task.body), ("best", best))
            }
            for split, items in ((Split.SELECTION, task.selection), (Split.TEST, task.test))
        }
    result = {
        "program": words.program, "seed": words.seed, "task": words.task.resolve().name, "model": model,
        "scores": scores, "used": used, "seconds": round(took, 1), "best": best,
    }  # fmt: skip
    (place / "result.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    means = {split: {name: mean(values) for name, values in rows.items()} for split, rows in scores.items()}
    sys.stdout.write(json.dumps({"program": words.program, "seed": words.seed, **means, "used": used}) + "\n")


def _train_peer(words: Namespace, work: Path, door: Door, model: str) -> str:
    program = HERE / "peers" / f"{words.program}_program.py"
    command = [words.python, str(program), str(words.task.resolve()), "--seed", str(words.seed), "--model", model]
    command += ["--target", f"{door.url}/target/v1", "--optimizer", f"{door.url}/{OPTIMIZER}/v1", "--out", str(work)]
    with (work / "log").open("w", encoding="utf-8") as log:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=work)
    return (work / "best.md").read_text(encoding="utf-8").strip()


def _train_skillgit(words: Namespace, work: Path, door: Door, model: str) -> str:
    repository = work / "repository"
    shutil.copytree(words.task, repository)
    changes = dict(SKILLGIT[words.program])
    base = ["tasks/default", *changes.pop("_base_", [])]
    address = f"{door.url}/v1"
    models = {
        "target": model, "target_backend": "openai_compatible", "optimizer": OPTIMIZER,
        "optimizer_backend": "openai_compatible", "openai_compatible_base_url": address,
        "optimizer_timeout_s": 7200.0,
    }  # fmt: skip
    settings = {"_base_": base, "model": models, **BESIDE, **changes}
    settings["train"] = {**BESIDE["train"], **changes.get("train", {}), "seed": words.seed}
    (repository / "models.yaml").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    program = str(Path(sys.executable).with_name("skillgit"))
    git = ["git", "-C", str(repository), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "The task as it was drawn"]):
        subprocess.run([*git, *command], check=True)
    with (work / "log").open("w", encoding="utf-8") as log:
        subprocess.run(
            [program, "-C", str(repository), "train", "models.yaml", "--run", RUN],
            check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    (document,) = words.task.glob(".claude/skills/*/SKILL.md")
    subprocess.run([program, "-C", str(repository), "checkout", f"{RUN}/best"], check=True, capture_output=True)
    text = (repository / document.relative_to(words.task)).read_text(encoding="utf-8")
    return text[len(frontmatter(text)) :].strip()


def wait_for_question(folder: Path, seconds: float) -> int:
    """Print the oldest question without an answer; the exit code is 0, 1 when the run is over, 75 when time is up."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pages = sorted(folder.glob("*.prompt.md"), key=lambda page: page.stat().st_mtime)
        for page in pages:
            if not page.with_name(page.name.replace(".prompt.md", ".answer.md")).is_file():
                sys.stdout.write(f"{page}\n")
                return 0
        if (folder.parent / "over").is_file():
            sys.stdout.write("the run is over\n")
            return 1
        time.sleep(0.5)
    return 75


def write_record(run: Path, config: Path) -> None:
    """Write the task and every reply of a run beside ``config``, which replays them: same prompts, same commits."""
    repository, folder = run / "work" / "repository", config.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (data,), (document,) = repository.glob("tasks/*.jsonl"), repository.glob(".claude/skills/*/SKILL.md")
    seed = subprocess.run(
        ["git", "-C", str(repository), "show", f"main:{document.relative_to(repository)}"],
        capture_output=True,
        check=True,
    ).stdout
    (folder / "SKILL.md").write_bytes(seed)
    shutil.copy(data, folder / "tasks.jsonl")
    shutil.copy(repository / "SOURCE.json", folder)
    with closing(sqlite3.connect(repository / ".git" / "skillgit" / "ledger.db")) as ledger:
        rows = ledger.execute("SELECT request, reply, tokens_in, tokens_out, cached FROM reply ORDER BY time, rowid")
        lines = [
            {"request": request, "reply": json.loads(reply) | {"usage": dict(zip(COUNTS, counts, strict=True))}}
            for request, reply, *counts in rows
        ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "replies.jsonl").write_text(text, encoding="utf-8")
    settings = json.loads((repository / "models.yaml").read_text(encoding="utf-8"))
    models = {name: settings["model"][name] for name in ("target", "optimizer")}
    models |= {"target_backend": "replay", "optimizer_backend": "replay", "replay_path": f"{folder.name}/replies.jsonl"}
    settings["_base_"] = [f"../{name}.yaml" if "/" in name else f"../_base_/{name}.yaml" for name in settings["_base_"]]
    settings["env"] = {"data_path": f"{folder.name}/tasks.jsonl", "skill_init": f"{folder.name}/SKILL.md"}
    settings["model"] = models
    settings["calls"] = {"temperature": settings["calls"]["temperature"]}
    config.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def tables(folder: Path) -> str:
    """Return a table in Markdown for each task, and what all of it is as one JSON object on the last line."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("*/*/result.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        found[result["task"]][result["program"]].append(result)
    lines, figures = [], dict[str, Any]()
    for task, programs in found.items():
        columns = ("program", "seeds", "selection, best", "test, best", "gain on test, 95 %", "tokens", "calls")
        lines += [f"## {task}", "", f"| {' | '.join(columns)} |", "|---|--:|---|---|---|--:|--:|"]
        ranked = sorted(programs.items(), key=lambda pair: -_best_test(pair[1]))
        first = _by_item(ranked[0][1], "best")
        behind = list[str]()
        for program, results in ranked:
            rows = [_row(result) for result in results]
            own = _by_item(results, "best")
            gains = [best - seed for best, seed in zip(own, _by_item(results, "seed"), strict=True)]
            low, high = bootstrap_interval(gains)
            cells = {name: mean([row[name] for row in rows]) for name in rows[0]}
            each = ", ".join(shown(row["best"]) for row in rows)
            lines.append(
                f"| {NAMES.get(program, program)} | {len(rows)} | {shown(cells['sel_best'])} "
                f"| {shown(cells['best'])}{f' ({each})' if rows[1:] else ''} "
                f"| {shown(mean(gains), '+')}, {shown(low, '+')} to {shown(high, '+')} "
                f"| {cells['tokens'] / 1000:.0f}k | {cells['calls']:.0f} |"
            )
            figures[f"{task}/{program}"] = cells | {"seeds": len(rows), "gain": mean(gains), "low": low, "high": high}
            if program != ranked[0][0]:
                ahead = [best - other for best, other in zip(first, own, strict=True)]
                low, high = bootstrap_interval(ahead)
                behind.append(f"of {program} by {shown(mean(ahead), '+')} ({shown(low, '+')} to {shown(high, '+')})")
        seed = figures[f"{task}/{ranked[0][0]}"]
        lines += ["", f"The seed scores {shown(seed['sel_seed'])} on selection and {shown(seed['seed'])} on test."]
        if behind:
            lines += [f"On the same test items {ranked[0][0]} is ahead {', '.join(behind)}; 95 % in brackets."]
        lines.append("")
    return "\n".join([*lines, json.dumps(figures)]) + "\n"


def shown(share: float, sign: str = "-") -> str:
    """Return a share as the documents have it: .550, and +.300 for a difference."""
    return format(share, f"{sign}.3f").replace("0.", ".", 1).replace("-", "\N{MINUS SIGN}")


def _best_test(results: Sequence[Mapping[str, Any]]) -> float:
    return mean([mean(result["scores"]["test"]["best"]) for result in results])


def _row(result: Mapping[str, Any]) -> dict[str, float]:
    scores, used = result["scores"], [result["used"][role] for role in (TARGET, OPTIMIZER)]
    return {
        "sel_seed": mean(scores["selection"]["seed"]),
        "sel_best": mean(scores["selection"]["best"]),
        "seed": mean(scores["test"]["seed"]),
        "best": mean(scores["test"]["best"]),
        "tokens": sum(counts["tokens_in"] for counts in used),
        "calls": sum(counts["calls"] for counts in used),
    }


def _by_item(results: Sequence[Mapping[str, Any]], text: str) -> list[float]:
    """Return the score of each test item with a text, a mean over the seeds: items are what an interval draws from."""
    return [mean(values) for values in zip(*(result["scores"]["test"][text] for result in results), strict=True)]


if __name__ == "__main__":
    main()
