"""What is remembered of installed skills: in the repository's private folder, never in the skill's.

Each place has layers, one for each skill that was put there and not taken away since. A layer keeps a copy of what was
there before. It is written before the place changes, and what the place holds says whether it did: a process that is
killed leaves a place that is old or new, and a record that can take it back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from skillgit.app.skill_format.atomic_write import remove_tree, sweep, write_file
from skillgit.app.skill_format.folder_contents import fingerprint, read_entries
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import ConflictError, HistoryError
from skillgit.files import locked, open_plain, read_plain
from skillgit.store.repo import Repo

_FOLDER, _FILE, _LOCK, _KEPT = "adopted", "places.json", "lock", "kept"
_SCHEMA = "skillgit.adopted/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    name: str  # what it was called: ``<run>/v<N>``, or a commit
    run: str  # empty for a commit outside of runs
    version: int | None  # absent for anything else
    commit: str
    installed: str
    found: str  # fingerprint of what was there before; empty for nothing
    kept: str  # name of the copy of that; empty if nothing was there
    made: tuple[str, ...]  # folders around the place that were made for it, the outermost first
    time: datetime  # when, as RFC 3339


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledFolder:
    path: str
    skill: str
    layers: tuple[Layer, ...]

    @property
    def top(self) -> Layer:
        return self.layers[-1]


class InstallRecord:
    """The places of a repository; held by one process at a time while it changes them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.places = _read(folder / _FILE)

    def kept(self, name: str) -> Path:
        return self._folder / _KEPT / name / "content"

    def at(self, path: Path) -> InstalledFolder | None:
        return self.places.get(str(path))

    def push(self, path: Path, skill: str, layer: Layer) -> None:
        location = self.at(path)
        layers = (*location.layers, layer) if location is not None else (layer,)
        self.places[str(path)] = InstalledFolder(path=str(path), skill=skill, layers=layers)
        self._save()

    def amend(self, path: Path, **changes: object) -> None:
        location = self.places[str(path)]
        layer = replace(location.top, **changes)  # type: ignore[arg-type]
        self.places[str(path)] = replace(location, layers=(*location.layers[:-1], layer))
        self._save()

    def pop(self, path: Path) -> None:
        """Forget the newest layer of ``path``, and remove its copy."""
        location = self.places[str(path)]
        if len(location.layers) == 1:
            del self.places[str(path)]
        else:
            self.places[str(path)] = replace(location, layers=location.layers[:-1])
        self._save()
        self._drop_unnamed()

    def settle(self, path: Path) -> None:
        """Forget layers that never reached ``path``, or were taken away by a process that was killed then."""
        sweep(path)
        now = fingerprint(read_entries(path))
        while (location := self.at(path)) is not None and now == location.top.found and now != location.top.installed:
            self.pop(path)
        self._drop_unnamed()

    def _save(self) -> None:
        rows = []
        for path, location in sorted(self.places.items()):
            layers = [asdict(layer) | {"time": layer.time.isoformat()} for layer in location.layers]
            rows.append({"path": path, "skill": location.skill, "layers": layers})
        document = {"schema": _SCHEMA, "places": rows}
        write_file(self._folder / _FILE, f"{json.dumps(document, indent=1)}\n".encode())

    def _drop_unnamed(self) -> None:
        names = {layer.kept for location in self.places.values() for layer in location.layers}
        folder = self._folder / _KEPT
        for copy in sorted(folder.iterdir()) if folder.is_dir() else ():
            if copy.name not in names:
                remove_tree(copy)


@contextmanager
def open_record(repo: Repo) -> Iterator[InstallRecord]:
    """Hold the record of installed skills; waits for the process that holds it now."""
    folder = repo.private_dir / _FOLDER
    try:
        folder.mkdir(exist_ok=True)
        handle = open_plain(folder / _LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise ConflictError(
            f"the repository at '{repo.common_dir}' cannot be written: {error.strerror}",
            hint=f"ls -ld {repo.common_dir}",
        ) from error
    with locked(handle):
        yield InstallRecord(folder)


def known_places(repo: Repo) -> tuple[InstalledFolder, ...]:
    try:
        by_path = _read(repo.private_dir / _FOLDER / _FILE)
    except OSError:
        return ()  # it cannot be written, so nothing was installed from here
    return tuple(by_path[path] for path in sorted(by_path))


def _read(file: Path) -> dict[str, InstalledFolder]:
    try:
        document = loads(read_plain(file))
        if document["schema"] != _SCHEMA:
            raise HistoryError(
                f"{file} was written by a newer skillgit", hint="update skillgit, or move the file away to start over"
            )
        return {row["path"]: _place(row) for row in document["places"]}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise HistoryError(
            f"{file}, the record of installed skills, cannot be read", hint="move it away to start over"
        ) from error


def _place(row: dict[str, object]) -> InstalledFolder:
    rows = row["layers"]
    if not isinstance(rows, list) or not rows:
        raise TypeError("a place has layers")
    layers = tuple(
        Layer(**(layer | {"made": tuple(layer["made"]), "time": datetime.fromisoformat(layer["time"])}))
        for layer in rows
    )
    return InstalledFolder(path=str(row["path"]), skill=str(row["skill"]), layers=layers)
