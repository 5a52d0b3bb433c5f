"""``skillgit plugins NAME --fetch DIR``: public data of an environment, written as files that it reads."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from skillgit.app.skill_format.atomic_write import refuse_way_out, typed_path
from skillgit.app.sources.public_data.contents import is_archive, published_rows, unpack
from skillgit.app.sources.public_data.downloads import (
    MOST_BYTES,
    Downloads,
    FetchProgress,
    PublishedFiles,
    cache_folder,
    in_megabytes,
    listed,
    matches,
    too_large,
)
from skillgit.app.workspace.context import Context
from skillgit.domain.evaluation import Split
from skillgit.domain.ids import digest
from skillgit.domain.untrusted.file_names import TreePath, name_key, shown
from skillgit.errors import ConflictError, DataError, NotFoundError, UsageError
from skillgit.files import shortage
from skillgit.plugin.data_rows import raise_all
from skillgit.plugin.environment import Assets, Attachment, EnvironmentInfo, PublicSource, PublishedRow, SourceKind
from skillgit.plugin.registry import environment_info, load_conversion
from skillgit.plugin.splits import missing_ids, read_folders, read_ids

ITEMS = "items.jsonl"
FOLDERS = {Split.TRAIN: "train", Split.SELECTION: "val", Split.TEST: "test"}
_HINT = "try another --revision"
_NUMBERING = re.compile(r"(?i)(?:^|_|[a-z])(?:id|index|no|number)$")  # fields that number rows and say nothing of them
SplitIds = Mapping[Split, "Sequence[str]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    path: str
    items: int
    sha256: str  # the digest of its bytes


class AssetFolder:
    """The folder of the files that items name; equal files of one name are one file, other ones are refused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._digests)

    @property
    def sha256(self) -> str:
        return digest(sorted(self._digests.items()))

    def add(self, name: str, content: IO[bytes]) -> Path:
        """Write a file and return its path; an UnsafeNameError if its name is none, a DataError if it is taken."""
        path = self._folder / TreePath(name)
        beside = path.with_name(f"{path.name}.part")
        beside.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as stream:
            shutil.copyfileobj(content, stream)
        with beside.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        if self._digests.setdefault(name_key(name), sha256) != sha256:
            raise DataError(f"two different files have the name {shown(name)}", hint=_HINT)
        return beside.replace(path)


class ItemFiles:
    """Files of items below a new folder: one of all items, or one for each split in the order of its ids."""

    def __init__(self, folder: Path, split_ids: SplitIds | None) -> None:
        self._folder, self._split_ids = folder, split_ids
        self._splits = {name: split for split, ids in (split_ids or {}).items() for name in ids}
        self._contents: dict[str, str] = {}
        self._seen = set[str]()
        self.repetitions = 0
        self.same = 0

    def write(self, rows: Iterable[Mapping[str, object]], assets: AssetFolder, source: str) -> tuple[Written, ...]:
        """Write ``rows``, read once as they come; a DataError if ids of a split are not in ``source``, or repeated."""
        if self._split_ids is None:
            lines = (self._line(row, assets) for row in self._new(rows))
            return (_written(self._folder, ITEMS, lines),)
        by_id = {str(row["id"]): self._line(row, assets) for row in self._new(rows)}
        faults = [
            missing_ids(split, missing, len(ids), source)
            for split, ids in self._split_ids.items()
            if (missing := [name for name in ids if name not in by_id])
        ]
        raise_all(faults)
        return tuple(
            _written(self._folder, f"{FOLDERS[split]}/{ITEMS}", (by_id[name] for name in dict.fromkeys(ids)))
            for split, ids in self._split_ids.items()
        )

    def _new(self, rows: Iterable[Mapping[str, object]]) -> Iterable[Mapping[str, object]]:
        """Yield the rows that are wanted, each once."""
        for row in rows:
            identity = str(row["id"])
            if self._split_ids is not None and identity not in self._splits:
                continue
            content = self._digest(row, identity)
            if identity not in self._contents:
                self._contents[identity] = content
                content_fields = {key: value for key, value in row.items() if not _NUMBERING.search(key)}
                fingerprint = digest(_replaced(content_fields, lambda file: hashlib.sha256(file.content).hexdigest()))
                self.same += fingerprint in self._seen
                self._seen.add(fingerprint)
                yield row
            elif self._contents[identity] == content:
                self.repetitions += 1
            else:
                raise DataError(f"two different rows have the id {shown(identity)}", hint=_HINT)

    @staticmethod
    def _digest(row: Mapping[str, object], identity: str) -> str:
        try:
            return digest(_replaced(row, lambda file: [file.name, hashlib.sha256(file.content).hexdigest()]))
        except (TypeError, ValueError) as error:
            raise DataError(f"the row {shown(identity)} cannot be written as JSON: {error}", hint=_HINT) from error

    @staticmethod
    def _line(row: Mapping[str, object], assets: AssetFolder) -> bytes:
        def name(file: Attachment) -> str:
            assets.add(file.name, BytesIO(file.content))
            return file.name

        return f"{json.dumps(_replaced(row, name), ensure_ascii=False)}\n".encode()


def _replaced(row: Mapping[str, object], value_of: Callable[[Attachment], object]) -> dict[str, object]:
    """Return ``row`` with something in the place of each attachment, alone or in a list."""

    def replaced(value: object) -> object:
        if isinstance(value, Attachment):
            return value_of(value)
        return [replaced(entry) for entry in value] if isinstance(value, list) else value

    return {key: replaced(value) for key, value in row.items()}


def _written(folder: Path, name: str, lines: Iterable[bytes]) -> Written:
    path, sha, items, size = folder / name, hashlib.sha256(), 0, 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        for line in lines:
            size += len(line)
            if size > MOST_BYTES:
                raise too_large("a file of items")
            stream.write(line)
            sha.update(line)
            items += 1
    return Written(path=name, items=items, sha256=sha.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSelection:
    """Which of the public data of an environment are fetched; by default all, of the pinned commit."""

    subset: str = ""  # the name of other data of the same environment
    revision: str = ""  # in place of the commit that the environment names
    ids: str = ""  # the folder of a manifest, or the name of one that comes with the data; it divides its items


ALL = DataSelection()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedData:
    environment: str
    place: Path
    source: str
    revision: str
    licence: str  # empty: unknown
    files: tuple[Written, ...]
    assets: int  # pictures, workbooks and other files that items name
    repeated: int  # rows left out because they were there already
    same: int  # rows under another id with the content of an earlier one; a division keeps them on one side
    options: tuple[str, ...]  # what names the data in a configuration, as ``section.key=value``


def fetch(
    context: Context,
    name: str,
    selection: DataSelection = ALL,
    *,
    to: Path | None = None,
    remark: Callable[[str], None] = lambda _: None,
    watch: Callable[[FetchProgress], None] = lambda _: None,
) -> FetchedData:
    """Fetch the public data of the environment ``name`` into a new folder, ``data/<environment>`` by default."""
    # What is large is announced by ``remark`` before it is fetched. An interrupted fetch goes on where it stopped.
    info = environment_info(name, context.directory)
    source = _source(info, selection)
    target = str(to or f"data/{info.name}")
    folder = refuse_way_out(typed_path(context.directory, target))
    if folder.exists():
        raise ConflictError(f"{folder} is there already", hint="name another folder with --fetch, or remove this one")
    split_ids = _split_ids(context, source, selection.ids)
    listing = listed(source, selection.revision or source.revision or "main", context.environ)
    remark(_announcement(listing))
    downloads = Downloads(cache_folder(context.environ), listing, watch).fetch()
    with _new_folder(folder) as part:
        items, assets = ItemFiles(part, split_ids), AssetFolder(part / source.assets.folder if source.assets else part)
        with tempfile.TemporaryDirectory(dir=part.parent, prefix=f".{folder.name}.", suffix=".rows") as staging:
            files = _sorted_out(source, downloads, assets, Path(staging))
            rows = converted_rows(source, published_rows(files))
            item_files = items.write(rows, assets, f"{listing.place} at {listing.revision}")
        (part / "SOURCE.md").write_text(_note(info, listing, item_files, source.assets, assets), encoding="utf-8")
    return FetchedData(
        environment=info.name,
        place=folder,
        source=listing.place,
        revision=listing.revision,
        licence=listing.licence,
        files=item_files,
        assets=len(assets),
        repeated=items.repetitions,
        same=items.same,
        options=tuple(_options(source, listing, target, is_split=split_ids is not None)),
    )


def converted_rows(source: PublicSource, rows: Iterable[PublishedRow]) -> Iterable[Mapping[str, object]]:
    """Return the rows of a data file that published ``rows`` become."""
    if ":" in source.convert:
        return load_conversion(source.convert)(rows)
    return ({**row.fields, "id": str(row.get(source.convert or "id"))} for row in rows)


def _source(info: EnvironmentInfo, selection: DataSelection) -> PublicSource:
    source = info.public
    if source is None:
        raise NotFoundError(f"{info.name} names no public data", hint=f"skillgit plugins {info.name}")
    if selection.subset:
        subset = source.subsets.get(selection.subset)
        if subset is None:
            names = ", ".join(source.subsets) or "none"
            raise UsageError(f"the data of {info.name} have no subset '{selection.subset}'", hint=f"there is {names}")
        source = subset
    if source.kind is SourceKind.MANUAL:
        raise NotFoundError(f"the data of {info.name} cannot be fetched", hint=source.layout)
    return source


def _split_ids(context: Context, source: PublicSource, manifest: str) -> SplitIds | None:
    if not manifest:
        return None
    folder = source.splits.get(manifest, context.directory / manifest)
    if not folder.is_dir():
        names = " and ".join(source.splits)
        hint = f"name a folder, or {names}, which comes with the data" if names else "name a folder with ids"
        raise DataError(f"there is no manifest {folder}", hint=hint)
    return read_folders(folder, read_ids)


def _announcement(listing: PublishedFiles) -> str:
    count = len(listing.files)
    size = in_megabytes(listing.size) if all(file.size is not None for file in listing.files) else "of unknown size"
    licence = listing.licence or "unknown"
    files = f"{count} file{'s' * (count > 1)}"
    return f"fetching {listing.place} at {listing.revision}: {files}, {size}; licence: {licence}"


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Give a folder next to ``folder``, which takes its name when it is complete; else nothing of it is left."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        yield part
        part.rename(folder)
    except OSError as error:
        raise shortage(error) or UsageError(
            f"{folder} cannot be written: {error.strerror}", hint="check the disk and its rights"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sorted_out(
    source: PublicSource, downloads: Mapping[str, Path], assets: AssetFolder, staging: Path
) -> Mapping[str, Path]:
    """Put assets into their folder, out of archives too; return the files with rows by their published names."""
    patterns = source.rows or source.files
    rows: dict[str, Path] = {}
    row_files = AssetFolder(staging)

    def place(name: str, content: IO[bytes], path: Path | None = None) -> None:
        if source.assets and matches(name, source.assets.files):
            parts, root = PurePosixPath(name).parts, source.assets.root
            path = assets.add("/".join(parts[parts.index(root) :]) if root in parts else name, content)
        if matches(name, patterns):
            rows[name] = path or row_files.add(name, content)

    for name, path in downloads.items():
        if is_archive(name):
            unpack(path, place)
        else:
            with path.open("rb") as content:
                place(name, content, path)
    if not rows:
        raise NotFoundError(f"{source.place} has no file like {' or '.join(patterns)}", hint=source.layout)
    return {name: rows[name] for name in sorted(rows)}


def _options(source: PublicSource, listing: PublishedFiles, target: str, *, is_split: bool) -> Iterator[str]:
    yield from ("env.split_mode=split_dir", f"env.split_dir={target}") if is_split else (f"env.data_path={target}",)
    if source.assets:
        yield f"env.{source.assets.option}={target}/{source.assets.folder}"
    for name, value in source.settings.items():
        yield f"env.{name}={value.replace('{revision}', listing.revision)}"


def _note(
    info: EnvironmentInfo, listing: PublishedFiles, files: Sequence[Written], assets: Assets | None, folder: AssetFolder
) -> str:
    """Return what a folder of fetched data says of itself; it is the same for the same data."""
    rows = [f"| `{file.path}` | {file.items} | `{file.sha256}` |" for file in files]
    if assets:
        rows.append(f"| `{assets.folder}` | {len(folder)} files | `{folder.sha256}` |")
    command = f"skillgit plugins {info.name} --fetch DIR"
    head = f"# Data of {info.name}\n\nFrom {listing.place} at {listing.revision}, written by `{command}`.\n"
    licence = f"Licence: {listing.licence or 'unknown'}\n"
    digests = [f"- `{file.name}` {file.digest}" for file in listing.files if file.digest]
    origin = ["", "Fetched, with their digests:", "", *digests] if digests else []
    return "\n".join([f"{head}{licence}", "| file | items | sha256 |", "|---|--:|---|", *rows, *origin, ""])
