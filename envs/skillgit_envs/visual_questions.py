"""Questions about pictures, which are found once, known by digest, and shown in their order for one answer."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import cast

from skillgit.domain.trajectory import Item
from skillgit.domain.untrusted.file_names import path_fault
from skillgit.errors import DataError
from skillgit.files import read_plain
from skillgit.plugin.backend import Image
from skillgit.plugin.environment import Attachment, PublishedRow
from skillgit_envs.shipped_environment import read_again
from skillgit_envs.short_answers import ShortAnswers

_MEGABYTE = 1_000_000
_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


class Pictures:
    """Finds pictures by the names that data give them: in ``folder``, or next to the data files if it is None."""

    def __init__(self, *, folder: Path | None, limit_mb: float) -> None:
        self._folder = folder
        self._limit = limit_mb
        self._paths: dict[str, Path] = {}

    def find(self, where: str, name: str, beside: Path, *, more_names: Sequence[str] = ()) -> str:
        """Find the picture ``name``, which may have ``more_names``, and return the digest of its bytes."""
        folder = self._folder or beside
        # Data can be a stranger's: a path that leads out of the folder is looked for by its last part alone.
        names = [alias for alias in (name, PurePosixPath(name).name, *more_names) if not path_fault(alias)]
        path = next((folder / alias for alias in names if (folder / alias).is_file()), None)
        if path is None:
            problem = f"{where}: there is no picture {name} in {folder}"
            raise DataError(problem, hint="set env.image_dir to the folder of the pictures")
        data = read_plain(path, most=None, follow=True)
        if len(data) > self._limit * _MEGABYTE:
            raise DataError(
                f"{where}: {path} has {len(data) / _MEGABYTE:.1f} MB, more than {self._limit:g}",
                hint="make the pictures smaller, or raise env.max_image_mb if the model takes such pictures",
            )
        if not media_type(data):
            raise DataError(f"{where}: {path} is not a PNG, JPEG, GIF or WebP", hint="convert it")
        self._paths[name] = path
        return hashlib.sha256(data).hexdigest()[:16]

    def image(self, name: str, *, detail: str) -> Image:
        """Return a picture that was found before, as it is shown to a model."""
        data = read_again(self._paths[name], f"picture {name}")
        return Image(media_type=media_type(data), data=base64.b64encode(data).decode(), detail=detail)


def media_type(data: bytes) -> str:
    """Return the type of a picture by its first bytes; empty for what is none that models take."""
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")


SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


def picture(name: str, row: PublishedRow, value: object, *, suffix: str = "") -> Attachment:
    """Return the picture in a published value as a file, its suffix by its bytes; a DataError if it holds none."""
    content = value.get("bytes") if isinstance(value, dict) else None
    kind = media_type(content) if isinstance(content, bytes) else ""
    if not isinstance(content, bytes) or not kind:
        problem = f"row {row.number} of {row.file} has no picture for {name}"
        raise DataError(problem, hint="take the revision that is pinned")
    return Attachment(name=f"{name}{suffix or '.' + kind.partition('/')[2]}", content=content)


class VisualQuestions(ShortAnswers):
    """Items that name their pictures in ``images``, or have none."""

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        own = None if self._brings_data else self._folder / "data"
        folder = root / str(self._options["image_dir"]) if self._options["image_dir"] else own
        self._pictures = Pictures(folder=folder, limit_mb=float(self._options["max_image_mb"]))

    @property
    def _shaping(self) -> Sequence[object]:
        return [str(self._options["image_detail"])]

    def _images(self, item: Item) -> tuple[Image, ...]:
        return self.pictures(item)

    def pictures(self, item: Item) -> tuple[Image, ...]:
        detail = str(self._options["image_detail"]).replace("auto", "")
        return tuple(self._pictures.image(name, detail=detail) for name in self._names(item))

    def _names(self, item: Item) -> Sequence[str]:
        return cast("Sequence[str]", item.content["images"])
