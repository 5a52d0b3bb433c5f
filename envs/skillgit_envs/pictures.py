"""Pictures that data name: found once, by digest, and shown to a model when they are asked for."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.file_names import path_fault
from skillgit.errors import DataError, EnvironmentFaultError
from skillgit.files import read_plain
from skillgit.plugin.backend import Image

if TYPE_CHECKING:
    from collections.abc import Sequence

_MEGABYTE = 1_000_000
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


class Pictures:
    """Finds pictures by the names that data give them.

    Args:
        folder: Where pictures are; None for the folders of the data files themselves.
        limit_mb: Largest file in megabytes.
    """

    def __init__(self, *, folder: Path | None, limit_mb: float) -> None:
        self._folder = folder
        self._limit = limit_mb
        self._paths: dict[str, Path] = {}

    def find(self, where: str, name: str, beside: Path, *, more_names: Sequence[str] = ()) -> str:
        """Find the picture ``name`` and return the digest of its bytes.

        Args:
            where: The row that names it, for messages.
            beside: The folder of the data file.
            more_names: Further names that the same picture may have.

        Raises:
            DataError: It is not there, too large, or no picture.
        """
        folder = self._folder or beside
        # Data can be a stranger's: a path that leads out of the folder is looked for by its last part alone.
        names = [alias for alias in (name, PurePosixPath(name).name, *more_names) if not path_fault(alias)]
        path = next((folder / alias for alias in names if (folder / alias).is_file()), None)
        if path is None:
            raise DataError(
                f"{where}: there is no picture {name} in {folder}",
                hint="set env.image_dir to the folder of the pictures",
            )
        data = read_plain(path, most=None, follow=True)
        if len(data) > self._limit * _MEGABYTE:
            raise DataError(
                f"{where}: {path} has {len(data) / _MEGABYTE:.1f} MB, more than {self._limit:g}",
                hint="make the pictures smaller, or raise env.max_image_mb if the model takes such pictures",
            )
        if not media_type(data):
            raise DataError(f"{where}: {path} is no PNG, JPEG, GIF or WebP", hint="convert it")
        self._paths[name] = path
        return hashlib.sha256(data).hexdigest()[:16]

    def image(self, name: str, *, detail: str) -> Image:
        """Return a picture that was found before, as it is shown to a model.

        Raises:
            EnvironmentFaultError: It cannot be read any more.
        """
        try:
            data = read_plain(self._paths[name], most=None, follow=True)
        except OSError as error:
            raise EnvironmentFaultError(
                f"picture {name} cannot be read: {error.strerror}", hint="check the folder"
            ) from error
        return Image(media_type=media_type(data), data=base64.b64encode(data).decode(), detail=detail)


def media_type(data: bytes) -> str:
    """Return the type of a picture by its first bytes; empty for what is none that models take."""
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
