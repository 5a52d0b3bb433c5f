"""``skillgit data fetch``: write the public data of an environment as files that it reads."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.data import hub
from skillgit.app.data.writing import write_items
from skillgit.app.folders.typed import refuse_way_out, typed_path
from skillgit.errors import ConflictError, NotFoundError, UsageError
from skillgit.plugin.environment import SourceKind
from skillgit.plugin.faults import raise_all
from skillgit.plugin.manifests import missing_ids, read_ids
from skillgit.plugin.registry import load_conversion, load_environment
from skillgit.plugin.splits import read_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from skillgit.app.context import Context
    from skillgit.app.data.writing import Written
    from skillgit.domain.evaluation import Split
    from skillgit.plugin.environment import EnvironmentInfo, PublicSource

NOTE = "SOURCE.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What was written.

    Attributes:
        environment: The environment.
        place: The folder.
        source: The repository.
        revision: The commit that the rows are of.
        files: The files of items.
        repeated: How many rows were left out because they stood there already.
        options: What names the data in a configuration, as ``section.key=value``.
    """

    environment: str
    place: Path
    source: str
    revision: str
    files: tuple[Written, ...]
    repeated: int
    options: tuple[str, ...]


def fetch(
    context: Context,
    name: str,
    *,
    to: Path | None = None,
    revision: str | None = None,
    ids: Path | None = None,
    remark: Callable[[str], None] = lambda _: None,
) -> Fetched:
    """Fetch the public data of the environment ``name`` and write it to a new folder.

    Args:
        context: The outside world.
        name: An environment, installed or at ``path/to/file.py:Class``.
        to: The folder, ``data/<environment>`` if it is not named.
        revision: A commit of the repository, instead of the one that the environment names.
        ids: A manifest; only its items are written, divided as it says.
        remark: Is told what takes long.

    Raises:
        ConflictError: The folder is there already.
        DataError: Rows cannot be used, or ids of the manifest are not among them.
        NotFoundError: The environment's data are not on a hub.
        ServiceError: The hub cannot be reached.
        UsageError: The extra ``data`` is not installed, or the folder cannot be written.
    """
    info = load_environment(name, context.directory).info
    source = _fetchable(info)
    named = str(to or f"data/{info.name}")
    place = refuse_way_out(typed_path(context.directory, named))
    if place.exists():
        raise ConflictError(f"{place} is there already", hint="name another folder with --to, or remove this one")
    divided = read_folders(context.directory / ids, read_ids) if ids is not None else None
    remark(f"fetching {source.place} at {revision or source.revision}")
    snapshot = hub.download(source, revision or source.revision, context.environ)
    files, repeated = _write(info, source, snapshot, divided, place)
    return Fetched(
        environment=info.name,
        place=place,
        source=source.place,
        revision=snapshot.revision,
        files=files,
        repeated=repeated,
        options=(f"env.data_path={named}",) if ids is None else ("env.split_mode=split_dir", f"env.split_dir={named}"),
    )


def _fetchable(info: EnvironmentInfo) -> PublicSource:
    source = info.public
    if source is None:
        raise NotFoundError(f"{info.name} names no public data", hint=f"skillgit envs {info.name}")
    if source.kind is not SourceKind.HUGGINGFACE:
        raise NotFoundError(f"the data of {info.name} cannot be fetched from a hub", hint=source.layout)
    return source


def _write(
    info: EnvironmentInfo,
    source: PublicSource,
    snapshot: hub.Snapshot,
    divided: Mapping[Split, Sequence[str]] | None,
    place: Path,
) -> tuple[tuple[Written, ...], int]:
    """Write everything beside ``place`` and put it there when it is complete."""
    convert = load_conversion(source.convert)
    splits = None if divided is None else {name: split for split, names in divided.items() for name in names}
    part = place.with_name(f".{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        found = write_items(part, convert(hub.rows(snapshot)), splits)
        _refuse_missing(divided or {}, found.ids, f"{source.place} at {snapshot.revision}")
        (part / NOTE).write_text(_note(info, source, snapshot.revision, found.files), encoding="utf-8")
        part.rename(place)
    except OSError as error:
        raise UsageError(
            f"{place} cannot be written: {error.strerror}", hint="check the disk and its rights"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return found.files, found.repeated


def _refuse_missing(divided: Mapping[Split, Sequence[str]], found: Collection[str], source: str) -> None:
    missing = {split: [name for name in names if name not in found] for split, names in divided.items()}
    raise_all([missing_ids(split, names, len(divided[split]), source) for split, names in missing.items() if names])


def _note(info: EnvironmentInfo, source: PublicSource, revision: str, files: Sequence[Written]) -> str:
    """Return what a folder of fetched data says of itself; it is the same for the same data."""
    rows = [f"| `{file.path}` | {file.items} | `{file.sha256}` |" for file in files]
    return "\n".join(
        [
            f"# Data of {info.name}",
            "",
            f"From {source.place} at {revision}, written by `skillgit data fetch`.",
            f"Licence: {info.licence or 'not stated'}",
            "",
            "| file | items | sha256 |",
            "|---|--:|---|",
            *rows,
            "",
        ]
    )
