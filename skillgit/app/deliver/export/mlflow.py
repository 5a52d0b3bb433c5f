"""A run in the file store of MLflow, as it documents it: experiments, runs, parameters, metrics by step, tags.

The library itself is not needed for that: a store is a folder for each experiment, in it a folder for each run, with
``meta.yaml`` in both; a parameter and a tag is a file with its value, a metric one with a line for each step.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from skillgit.app.deliver.export.tables import Row, RunData, run_data
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path, write_file
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.address import version_label
from skillgit.errors import ConflictError
from skillgit.plugin.seed_folder import write_files
from skillgit.store import history_reader

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}")
_RUNNING, _FINISHED, _LOCAL = 1, 3, 4
_METRICS: Final = {
    "selection": ["score", "bound", "current", "best", "hard", "soft", "fixed", "broken", "p"],
    "patch": ["merged", "ranked", "applied", "skipped", "budget"],
    "cost": ["calls", "tokens_in", "tokens_out", "usd", "seconds"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedStore:
    run: str
    place: str
    experiment: str
    experiment_id: str
    run_id: str
    metrics: int


def export_mlflow(workspace: Workspace, revision: str, target: str) -> ExportedStore:
    """Add the run that ``revision`` belongs to to the store ``target``; a copy from an earlier export is replaced."""
    data = run_data(workspace, revision)
    best = next(row for row in data.versions if row["best"])
    skill = history_reader.skill_at(workspace.repo, best["commit"], data.skill)
    store = refuse_way_out(typed_path(workspace.context.directory, target))
    if store.exists():
        entries = (
            [entry for entry in store.iterdir() if entry.name not in {".trash", "models"}]
            if store.is_dir()
            else [store]
        )
        if not all((entry / "meta.yaml").is_file() for entry in entries):
            raise ConflictError(f"{store} exists and is not an MLflow store", hint="name a new folder, such as mlruns")
    section = data.config.get("env")
    name = str((section.get("name") if isinstance(section, dict) else None) or data.skill.rpartition("/")[2])
    # An id has 18 digits, as MLflow makes them; it is equal for experiments of the same name.
    number = str(int(_digest(name)[:16], 16))[:18].ljust(18, "0")
    first, last = data.events[0], data.events[-1]
    run_id = _digest(f"{data.run} {first['commit']}")[:32]
    experiment, folder = store / number, store / number / run_id
    if not (experiment / "meta.yaml").is_file():
        meta = {
            "artifact_location": experiment.as_uri(),
            "creation_time": _milliseconds(first),
            "experiment_id": number,
            "last_update_time": _milliseconds(first),
            "lifecycle_stage": "active",
            "name": name,
        }
        write_file(experiment / "meta.yaml", _yaml(meta))
    run_meta: dict[str, object] = {
        "artifact_uri": (folder / "artifacts").as_uri(),
        "end_time": _milliseconds(last) if data.outcome else None,
        "entry_point_name": "",
        "experiment_id": number,
        "lifecycle_stage": "active",
        "run_id": run_id,
        "run_name": data.run,
        "run_uuid": run_id,
        "source_name": "",
        "source_type": _LOCAL,
        "source_version": "",
        "start_time": _milliseconds(first),
        "status": _FINISHED if data.outcome else _RUNNING,
        "tags": [],
        "user_id": "",
    }
    tags = {
        "mlflow.runName": data.run,
        "mlflow.source.type": "LOCAL",
        "skillgit.run": data.run,
        "skillgit.skill": data.skill,
        "skillgit.best": version_label(data.best),
        "skillgit.commit": best["commit"],
        "skillgit.outcome": data.outcome,
        "skillgit.target": first["target"],
        "skillgit.optimizer": first["optimizer"],
    }
    metrics = _metrics(data)
    files = {
        "meta.yaml": _yaml(run_meta),
        **{f"params/{key}": value[:6000].encode("utf-8", "replace") for key, value in _parameters(data.config)},
        **{f"metrics/{key}": "".join(lines).encode() for key, lines in metrics.items()},
        **{f"tags/{key}": str(value)[:5000].encode("utf-8", "replace") for key, value in tags.items() if value},
        **{f"artifacts/{skill.name}/{path}": content for path, content in skill.files.items()},
    }

    def write(beside: Path) -> None:
        write_files(beside, files)
        for kind in ("artifacts", "metrics", "params", "tags"):
            (beside / kind).mkdir(exist_ok=True)

    put(folder, write)
    return ExportedStore(
        run=data.run, place=str(store), experiment=name, experiment_id=number, run_id=run_id, metrics=len(metrics)
    )


def _parameters(config: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for section, values in config.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            # The configuration of a run that was fetched is a stranger's, and its keys become names of files.
            if _NAME.fullmatch(f"{section}.{name}"):
                yield f"{section}.{name}", str(value)


def _metrics(data: RunData) -> dict[str, list[str]]:
    """Return metric to its lines: time in milliseconds, value, step; none of them twice, as its databases want it."""
    versions = {row["version"]: row for row in data.versions}
    lines: dict[str, dict[str, None]] = {}
    for event in data.events:
        values = {
            f"{prefix}.{name}": event[name]
            for prefix, names in _METRICS.items()
            for name in names
            # a mean over the items that a decision needed is not a score; without calls there is no cost
            if not (event["unneeded"] and name in {"hard", "soft"}) and (prefix != "cost" or event["calls"])
        }
        if version := versions.get(event["version"]):
            values |= {"version": version["version"], "skill.bytes": version["bytes"]}
            values |= {"test.hard": version["test_hard"], "test.soft": version["test_soft"]}
        for name, value in values.items():
            if value is not None:
                lines.setdefault(name, {})[f"{_milliseconds(event)} {float(value)!r} {event['step']}\n"] = None
    return {name: list(own) for name, own in lines.items()}


def _milliseconds(event: Row) -> int:
    return int(event["time"].timestamp() * 1000)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _yaml(values: Mapping[str, object]) -> bytes:
    return yaml.safe_dump(dict(values), sort_keys=True, allow_unicode=True).encode()
