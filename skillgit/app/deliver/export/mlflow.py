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

import yaml

from skillgit.app.deliver.export.tables import EventTableRow, RunData, VersionRow, run_data
from skillgit.app.skill_format.atomic_write import put, refuse_way_out, typed_path, write_file
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.skill import Skill
from skillgit.errors import ConflictError
from skillgit.plugin.seed_folder import write_files
from skillgit.store import history_reader

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,200}")
_RUNNING, _FINISHED = 1, 3
_SCORES = ("score", "bound", "current", "best", "hard", "soft", "fixed", "broken", "p")
_COUNTS = ("merged", "ranked", "applied", "skipped", "budget")
_COSTS = ("calls", "tokens_in", "tokens_out", "usd", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedStore:
    run: str
    place: str
    experiment: str
    experiment_id: str
    run_id: str
    metrics: int


def export_mlflow(context: Context, revision: str, target: str) -> ExportedStore:
    """Add the run that ``revision`` belongs to to the store ``target``; a copy from an earlier export is replaced."""
    data = run_data(context, revision)
    with open_workspace(context) as workspace:
        best = next(row for row in data.versions if row.best)
        skill = history_reader.skill_at(workspace.repo, best.commit, data.skill)
    store = refuse_way_out(typed_path(context.directory, target))
    section = data.config.get("env")
    name = str((section.get("name") if isinstance(section, dict) else None) or data.skill.rpartition("/")[2])
    # An id has 18 digits, as MLflow makes them; it is equal for experiments of the same name.
    number = str(int(_digest(name)[:16], 16))[:18].ljust(18, "0")
    run_id = _digest(f"{data.run} {data.events[0].commit}")[:32]
    if store.exists() and not _is_store(store):
        raise ConflictError(f"{store} exists and is no MLflow store", hint="name a new folder, such as mlruns")
    experiment = store / number
    if not (experiment / "meta.yaml").is_file():
        write_file(experiment / "meta.yaml", _experiment_meta(data, name, number, experiment))
    files = dict(_run_files(data, skill, number, run_id, experiment / run_id))

    def write(beside: Path) -> None:
        write_files(beside, files)
        for kind in ("artifacts", "metrics", "params", "tags"):
            (beside / kind).mkdir(exist_ok=True)

    put(experiment / run_id, write)
    metrics = sum(path.startswith("metrics/") for path in files)
    return ExportedStore(
        run=data.run, place=str(store), experiment=name, experiment_id=number, run_id=run_id, metrics=metrics
    )


def _is_store(store: Path) -> bool:
    inside = [path for path in store.iterdir() if path.name not in {".trash", "models"}] if store.is_dir() else [store]
    return all((path / "meta.yaml").is_file() for path in inside)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _experiment_meta(data: RunData, name: str, number: str, folder: Path) -> bytes:
    moment = _milliseconds(data.events[0])
    return _yaml(
        {
            "artifact_location": folder.as_uri(),
            "creation_time": moment,
            "experiment_id": number,
            "last_update_time": moment,
            "lifecycle_stage": "active",
            "name": name,
        }
    )


def _run_files(data: RunData, skill: Skill, experiment: str, run_id: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    first, last = data.events[0], data.events[-1]
    yield (
        "meta.yaml",
        _yaml(
            {
                "artifact_uri": (folder / "artifacts").as_uri(),
                "end_time": _milliseconds(last) if data.outcome else None,
                "entry_point_name": "",
                "experiment_id": experiment,
                "lifecycle_stage": "active",
                "run_id": run_id,
                "run_name": data.run,
                "run_uuid": run_id,
                "source_name": "",
                "source_type": 4,  # local
                "source_version": "",
                "start_time": _milliseconds(first),
                "status": _FINISHED if data.outcome else _RUNNING,
                "tags": [],
                "user_id": "",
            }
        ),
    )
    for name, value in _parameters(data.config):
        yield f"params/{name}", value[:6000].encode("utf-8", "replace")
    for name, lines in _metrics(data).items():
        yield f"metrics/{name}", "".join(lines).encode()
    for name, value in _tags(data):
        yield f"tags/{name}", value[:5000].encode("utf-8", "replace")
    for path, content in skill.files.items():
        yield f"artifacts/{skill.name}/{path}", content


def _parameters(config: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for section, values in config.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            # The configuration of a run that was fetched is a stranger's, and its keys become names of files.
            if _NAME.fullmatch(f"{section}.{name}"):
                yield f"{section}.{name}", str(value)


def _metrics(data: RunData) -> dict[str, list[str]]:
    """Return metric to its lines: time in milliseconds, value, step; none of them twice, as its databases want it."""
    rows = {row.version: row for row in data.versions}
    names: dict[str, dict[str, None]] = {}
    for event in data.events:
        row = rows.get(event.version) if event.version is not None else None
        for name, value in (*_of_event(event), *(_of_version(row) if row is not None else ())):
            names.setdefault(name, {})[f"{_milliseconds(event)} {value!r} {event.step}\n"] = None
    return {name: list(lines) for name, lines in names.items()}


def _of_event(event: EventTableRow) -> Iterator[tuple[str, float]]:
    for prefix, names in (("selection", _SCORES), ("patch", _COUNTS), ("cost", _COSTS if event.calls else ())):
        for name in names:
            value = getattr(event, name)
            # means over the part of the items that a decision needed are no scores
            if value is not None and not (event.unneeded and name in {"hard", "soft"}):
                yield f"{prefix}.{name}", float(value)


def _of_version(row: VersionRow) -> Iterator[tuple[str, float]]:
    yield "version", float(row.version)
    yield "skill.bytes", float(row.bytes)
    if row.test_hard is not None and row.test_soft is not None:
        yield "test.hard", row.test_hard
        yield "test.soft", row.test_soft


def _tags(data: RunData) -> Iterator[tuple[str, str]]:
    first = data.events[0]
    yield "mlflow.runName", data.run
    yield "mlflow.source.type", "LOCAL"
    yield "skillgit.run", data.run
    yield "skillgit.skill", data.skill
    yield "skillgit.best", version_label(data.best)
    yield "skillgit.commit", next(row.commit for row in data.versions if row.best)
    for name, value in (("outcome", data.outcome), ("target", first.target), ("optimizer", first.optimizer)):
        if value:
            yield f"skillgit.{name}", value


def _milliseconds(event: EventTableRow) -> int:
    return int(event.time.timestamp() * 1000)


def _yaml(values: Mapping[str, object]) -> bytes:
    return yaml.safe_dump(dict(values), sort_keys=True, allow_unicode=True).encode()
