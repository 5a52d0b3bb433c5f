"""The pages of DocVQA: where a page is found, and how it is shown to a model."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.names import path_fault
from skillgit.errors import DataError, EnvironmentFaultError
from skillgit.files import read_plain
from skillgit.plugin.backend import Image

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MEGABYTE = 1_000_000
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


class Pages:
    """Finds pages by the names that data give them.

    Args:
        folder: Where pages are; None for the folders of the data files themselves.
        limit_mb: Largest file in megabytes.
    """

    def __init__(self, *, folder: Path | None, limit_mb: float) -> None:
        self._folder = folder
        self._limit = limit_mb
        self._found: dict[str, Path] = {}

    def find(self, where: str, name: str, row: Mapping[str, object], beside: Path) -> str:
        """Find the page ``name`` and return the digest of its bytes.

        Args:
            row: The row; its document id and page number lead to the names that MP-DocVQA gives to the same pages.

        Raises:
            DataError: There is no such page, it is too large or it is no picture.
        """
        folder = self._folder or beside
        path = next((path for path in _candidates(folder, name, row) if path.is_file()), None)
        if path is None:
            raise DataError(
                f"{where}: there is no page {name} in {folder}", hint="set env.image_dir to the folder of the pages"
            )
        data = read_plain(path, most=None, follow=True)
        if len(data) > self._limit * _MEGABYTE:
            raise DataError(
                f"{where}: {path} has {len(data) / _MEGABYTE:.1f} MB, more than {self._limit:g}",
                hint="make the pages smaller, or raise env.max_image_mb if the model takes such pictures",
            )
        if not _media_type(data):
            raise DataError(f"{where}: {path} is no PNG, JPEG, GIF or WebP", hint="convert it")
        self._found[name] = path
        return hashlib.sha256(data).hexdigest()[:16]

    def image(self, name: str, *, detail: str) -> Image:
        """Return a page that was found before, as it is shown to a model.

        Raises:
            EnvironmentFaultError: It has gone since.
        """
        try:
            data = read_plain(self._found[name], most=None, follow=True)
        except OSError as error:
            raise EnvironmentFaultError(
                f"page {name} cannot be read: {error.strerror}", hint="check the folder"
            ) from error
        return Image(media_type=_media_type(data), data=base64.b64encode(data).decode(), detail=detail)


def _candidates(folder: Path, name: str, row: Mapping[str, object]) -> Iterator[Path]:
    # Data can be a stranger's: a path that leads out of the folder is looked for by its last part alone.
    if not path_fault(name):
        yield folder / name
    yield folder / PurePosixPath(name).name
    document, number = str(row.get("ucsf_document_id") or ""), str(row.get("ucsf_document_page_no") or "")
    if document and not path_fault(document) and number.isdigit():
        yield from (folder / f"{document}_{number}{suffix}" for suffix in (".png", ".jpg"))
        # MP-DocVQA counts the pages of a document from 0, DocVQA from 1.
        yield from (folder / f"{document}_p{int(number) - 1}{suffix}" for suffix in (".jpg", ".png"))


def _media_type(data: bytes) -> str:
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
