"""The Hugging Face hub: which files of a dataset repository are fetched, and the rows in them.

The library that talks to it is the extra ``data``. It keeps what it fetched in its own cache, so that a fetch that
broke off goes on, and a second one copies only.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import DataError, NotFoundError, ServiceError, UsageError
from skillgit.plugin.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.plugin.environment import PublicSource

PARQUET = ".parquet"
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was fetched.

    Attributes:
        revision: The commit of the repository.
        files: The files, by path.
    """

    revision: str
    files: tuple[Path, ...]


def download(source: PublicSource, revision: str, environ: Mapping[str, str]) -> Snapshot:
    """Fetch the files of ``source`` as they are at ``revision``.

    Args:
        source: The repository.
        revision: A commit, branch or tag.
        environ: ``HF_ENDPOINT`` names another hub, ``HF_HUB_CACHE`` another cache; the library reads ``HF_TOKEN``.

    Raises:
        NotFoundError: The repository, the revision or files of such names do not exist, or are not for everybody.
        ServiceError: The hub cannot be reached.
        UsageError: The extra is not installed.
    """
    if find_spec("huggingface_hub") is None or find_spec("pyarrow") is None:
        raise UsageError(
            f"fetching {source.place} needs the extra 'data'", hint=f"pip install 'skillgit[data]'; or {source.layout}"
        )
    place = _snapshot(source, revision, environ)
    files = tuple(sorted(path for path in place.rglob("*") if path.is_file()))
    if not files:
        raise NotFoundError(
            f"{source.place} at {revision} has no file like {' or '.join(source.files)}", hint=source.layout
        )
    return Snapshot(revision=place.name, files=files)


def _snapshot(source: PublicSource, revision: str, environ: Mapping[str, str]) -> Path:
    from huggingface_hub import HfApi, errors  # noqa: PLC0415 - an extra
    from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415 - an extra

    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    hub = HfApi(endpoint=environ.get("HF_ENDPOINT") or None)
    try:
        # Asked first: it fails at once where the download would try for half a minute, and it knows a tag's commit.
        commit = hub.dataset_info(source.place, revision=revision, timeout=_PATIENCE_S).sha
        place = hub.snapshot_download(
            source.place,
            repo_type="dataset",
            revision=commit,
            allow_patterns=list(source.files),
            cache_dir=environ.get("HF_HUB_CACHE") or None,
        )
    except (errors.GatedRepoError, errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise NotFoundError(
            f"the hub does not give out {source.place} at {revision}",
            hint=f"check --revision, and HF_TOKEN if access has to be asked for; or {source.layout}",
        ) from error
    except Exception as error:  # the library raises errors of several others besides its own
        raise ServiceError(
            f"{source.place} cannot be fetched: {_first_line(error)}", hint=f"check the network; or {source.layout}"
        ) from error
    return Path(str(place))


def rows(snapshot: Snapshot) -> Iterator[Mapping[str, object]]:
    """Yield the rows of Parquet, JSON, JSON lines and CSV files, one after the other.

    Raises:
        DataError: A file is broken.
    """
    for path in snapshot.files:
        if path.suffix == PARQUET:
            yield from _parquet(path)
        else:
            yield from (row.fields for row in read_rows(path))


def _parquet(path: Path) -> Iterator[Mapping[str, object]]:
    from pyarrow import ArrowException  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
    except ArrowException as error:
        raise DataError(
            f"{path} is not Parquet: {_first_line(error)}", hint="remove it, so that it is fetched anew"
        ) from error


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
