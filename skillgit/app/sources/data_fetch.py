"""``skillgit data fetch``: public data from the Hugging Face hub, written as files that an environment reads."""

from __future__ import annotations

import hashlib
import json
import logging
import resource
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.skill_format.atomic_write import refuse_way_out, typed_path
from skillgit.domain.evaluation import Split
from skillgit.domain.ids import digest
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import ConflictError, DataError, NotFoundError, ServiceError, UsageError
from skillgit.plugin.data_rows import raise_all, read_rows
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, SourceKind
from skillgit.plugin.registry import load_conversion, load_environment
from skillgit.plugin.splits import missing_ids, read_folders, read_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import IO

    from huggingface_hub.hf_api import RepoSibling

    from skillgit.app.workspace.context import Context


PARQUET = ".parquet"
_PATIENCE_S = 30.0
_MOST_BYTES = 16 << 30
"""Bytes that a hub may declare in all, and that one file may unpack to or be written with; texts take far less."""
_LEAST_BYTES = 1 << 20  # a file that the library keeps beside those of the source may be larger than they are


def download(source: PublicSource, revision: str, environ: Mapping[str, str]) -> tuple[str, tuple[Path, ...]]:
    """Fetch the files of ``source`` as they are at ``revision``, and return the commit and their paths.

    ``HF_ENDPOINT`` in ``environ`` names another hub, ``HF_HUB_CACHE`` another cache; the library reads ``HF_TOKEN``.
    """
    if find_spec("huggingface_hub") is None or find_spec("pyarrow") is None:
        raise UsageError(
            f"fetching {source.place} needs the extra 'data'", hint=f"pip install 'skillgit[data]'; or {source.layout}"
        )
    folder = _snapshot(source, revision, environ)
    files = tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
    if not files:
        raise NotFoundError(
            f"{source.place} at {revision} has no file like {' or '.join(source.files)}", hint=source.layout
        )
    return folder.name, files


def _snapshot(source: PublicSource, revision: str, environ: Mapping[str, str]) -> Path:
    from huggingface_hub import HfApi, errors  # noqa: PLC0415 - an extra
    from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415 - an extra

    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    hub = HfApi(endpoint=environ.get("HF_ENDPOINT") or None)
    try:
        # Asked first: it fails at once where the download would try for half a minute, and it knows a tag's commit.
        info = hub.dataset_info(source.place, revision=revision, timeout=_PATIENCE_S, files_metadata=True)
        with _files_within(_largest(source, info.siblings or ())):
            folder = hub.snapshot_download(
                source.place,
                repo_type="dataset",
                revision=info.sha,
                allow_patterns=list(source.files),
                cache_dir=environ.get("HF_HUB_CACHE") or None,
            )
    except DataError:
        raise
    except (errors.GatedRepoError, errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise NotFoundError(
            f"the hub does not give out {source.place} at {revision}",
            hint=f"check --revision, and HF_TOKEN if access has to be asked for; or {source.layout}",
        ) from error
    except Exception as error:  # the library raises errors of several others besides its own
        raise ServiceError(
            f"{source.place} cannot be fetched: {_first_line(error)}", hint=f"check the network; or {source.layout}"
        ) from error
    return Path(str(folder))


def _largest(source: PublicSource, files: Sequence[RepoSibling]) -> int:
    """Return the bytes of the largest file with rows as the hub declares it; the limit where it declares none."""
    sizes = [file.size for file in files if any(fnmatch(file.rfilename, pattern) for pattern in source.files)]
    if sum(size or 0 for size in sizes) > _MOST_BYTES:
        raise _too_large(source.place)
    return max((_MOST_BYTES if size is None else size for size in sizes), default=0)


@contextmanager
def _files_within(most: int) -> Iterator[None]:
    """Let no file that this process writes grow beyond ``most`` bytes: a hub may send more than it has declared."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_FSIZE, (min([max(most, _LEAST_BYTES), *limits]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _too_large(size: object) -> DataError:
    return DataError(
        f"{size} is larger than {_MOST_BYTES >> 30} GiB", hint="name another --revision, or place the data by hand"
    )


def rows(files: Sequence[Path]) -> Iterator[Mapping[str, object]]:
    for path in files:
        if path.suffix == PARQUET:
            yield from _parquet(path)
        else:
            yield from (row.fields for row in read_rows(path))


def _parquet(path: Path) -> Iterator[Mapping[str, object]]:
    from pyarrow import ArrowException  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    try:
        with ParquetFile(path) as file:
            groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
            if sum(group.total_byte_size for group in groups) > _MOST_BYTES:
                raise _too_large(f"{path}, unpacked,")
            for batch in file.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
    except ArrowException as error:
        raise DataError(
            f"{path} is not Parquet: {_first_line(error)}", hint="remove it, so that it is fetched anew"
        ) from error


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


ITEMS = "items.jsonl"
FOLDERS = {Split.TRAIN: "train", Split.SELECTION: "val", Split.TEST: "test"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file of items."""

    path: str
    items: int
    sha256: str  # the digest of its bytes


class _File:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._sha = stream, hashlib.sha256()
        self._items = self._bytes = 0

    def add(self, row: Mapping[str, object]) -> None:
        line = f"{json.dumps(row, ensure_ascii=False)}\n".encode()
        self._bytes += len(line)
        if self._bytes > _MOST_BYTES:
            raise _too_large("a file of items")
        self._stream.write(line)
        self._sha.update(line)
        self._items += 1

    def written(self, path: str) -> Written:
        return Written(path=path, items=self._items, sha256=self._sha.hexdigest())


def write_items(
    folder: Path, rows: Iterable[Mapping[str, object]], splits: Mapping[str, Split] | None
) -> tuple[tuple[Written, ...], Collection[str], int]:
    """Write ``rows``, read once as they come, below the new ``folder``; return files, ids and how many were repeated.

    ``splits`` says which split an id belongs to; rows with other ids are left out. None writes all rows to one file.
    """
    names = {None: ITEMS} if splits is None else {split: f"{FOLDERS[split]}/{ITEMS}" for split in Split}
    contents: dict[str, str] = {}
    repetitions = 0
    with ExitStack() as stack:
        files = {}
        for key, name in names.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            files[key] = _File(stack.enter_context((folder / name).open("wb")))
        for row in rows:
            identity = str(row["id"])
            split = splits.get(identity) if splits is not None else None
            if splits is not None and split is None:
                continue
            if identity not in contents:
                contents[identity] = digest(row)
                files[split].add(row)
                continue
            if contents[identity] != digest(row):
                raise DataError(f"two different rows have the id {shown(identity)}", hint="try another --revision")
            repetitions += 1
    item_files = tuple(files[key].written(name) for key, name in names.items())
    return item_files, contents, repetitions


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedData:
    """What was written."""

    environment: str
    place: Path
    source: str
    revision: str
    files: tuple[Written, ...]
    repeated: int  # rows left out because they were there already
    options: tuple[str, ...]  # what names the data in a configuration, as ``section.key=value``


def fetch(
    context: Context,
    name: str,
    *,
    to: Path | None = None,
    revision: str | None = None,
    ids: Path | None = None,
    remark: Callable[[str], None] = lambda _: None,
) -> FetchedData:
    """Fetch the public data of the environment ``name`` into a new folder, ``data/<environment>`` by default.

    ``revision`` replaces the commit that the environment names; ``ids`` is a manifest: only its items are written,
    divided as it says.
    """
    info = load_environment(name, context.directory).info
    source = _fetchable(info)
    target = str(to or f"data/{info.name}")
    folder = refuse_way_out(typed_path(context.directory, target))
    if folder.exists():
        raise ConflictError(f"{folder} is there already", hint="name another folder with --to, or remove this one")
    split_ids = read_folders(context.directory / ids, read_ids) if ids is not None else None
    remark(f"fetching {source.place} at {revision or source.revision}")
    commit, files = download(source, revision or source.revision, context.environ)
    item_files, repetitions = _write(info, files, commit, split_ids, folder)
    return FetchedData(
        environment=info.name,
        place=folder,
        source=source.place,
        revision=commit,
        files=item_files,
        repeated=repetitions,
        options=(f"env.data_path={target}",)
        if ids is None
        else ("env.split_mode=split_dir", f"env.split_dir={target}"),
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
    files: Sequence[Path],
    revision: str,
    split_ids: Mapping[Split, Sequence[str]] | None,
    folder: Path,
) -> tuple[tuple[Written, ...], int]:
    """Write everything beside ``folder`` and put it there when it is complete."""
    source = _fetchable(info)
    convert = load_conversion(source.convert)
    splits = None if split_ids is None else {name: split for split, names in split_ids.items() for name in names}
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        item_files, ids, repetitions = write_items(part, convert(rows(files)), splits)
        _refuse_missing(split_ids or {}, ids, f"{source.place} at {revision}")
        (part / "SOURCE.md").write_text(_note(info, source.place, revision, item_files), encoding="utf-8")
        part.rename(folder)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}", hint="check the disk and its rights"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return item_files, repetitions


def _refuse_missing(split_ids: Mapping[Split, Sequence[str]], present: Collection[str], source: str) -> None:
    missing = {split: [name for name in names if name not in present] for split, names in split_ids.items()}
    raise_all([missing_ids(split, names, len(split_ids[split]), source) for split, names in missing.items() if names])


def _note(info: EnvironmentInfo, origin: str, revision: str, files: Sequence[Written]) -> str:
    """Return what a folder of fetched data says of itself; it is the same for the same data."""
    rows = [f"| `{file.path}` | {file.items} | `{file.sha256}` |" for file in files]
    head = f"# Data of {info.name}\n\nFrom {origin} at {revision}, written by `skillgit data fetch`.\n"
    licence = f"Licence: {info.licence or 'not stated'}\n"
    return "\n".join([f"{head}{licence}", "| file | items | sha256 |", "|---|--:|---|", *rows, ""])
