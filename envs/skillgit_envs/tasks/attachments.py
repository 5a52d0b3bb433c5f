"""The files that items name: found next to the data, known by the digest of their bytes, read when used."""

from __future__ import annotations

import base64
import errno
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from skillgit.domain.untrusted.file_names import TreePath, clashes, path_fault, shown
from skillgit.domain.untrusted.model_text import unstorable_place
from skillgit.errors import DataError, EnvironmentFaultError, UnsafeNameError
from skillgit.files import read_plain
from skillgit.plugin.backend import Image
from skillgit_envs.shipped_environment import read_again

Listed = list[dict[str, str]]  # files as an item's content holds them: ``name`` and ``digest``

_LARGEST = 64 << 20
_PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


class Attachments:
    def __init__(self) -> None:
        self._paths: dict[str, Path] = {}
        self._texts: dict[str, bytes] = {}  # digest to the content of files that the data hold themselves

    def find(self, where: str, names: Sequence[str | tuple[str, str]], folders: Sequence[Path]) -> Listed:
        """Return the files that ``names`` mean, from the first of ``folders`` that has it; a folder means its files.

        A pair of name and text is a file by itself.
        """
        entries = [entry for name in names for entry in self._found(where, name, folders)]
        paths = [entry["name"] for entry in entries]
        twice = next((name for name in paths if paths.count(name) > 1), "")
        if twice:
            raise DataError(f"{where} names the file {twice} twice", hint="name it once")
        for clash in clashes(paths):
            raise DataError(f"{where}: {clash}", hint="rename one of them")
        return entries

    def _found(self, where: str, entry: str | tuple[str, str], folders: Sequence[Path]) -> Iterator[dict[str, str]]:
        if isinstance(entry, tuple):
            content = entry[1].encode()
            digest = hashlib.sha256(content).hexdigest()[:16]
            self._texts[digest] = content
            yield {"name": _path(where, entry[0]), "digest": digest}
            return
        name = entry
        path = _path(where, str(PurePosixPath(name)) if name else "")
        folder = next((folder for folder in folders if (folder / path).exists()), None)
        if folder is None:
            raise DataError(f"{where}: there is no file {name} in {folders[0]}", hint="check the name")
        target = folder / path
        files = sorted(file for file in target.rglob("*") if file.is_file()) if target.is_dir() else [target]
        if not files:
            raise DataError(f"{where}: the folder {name} is empty", hint="put files into it, or do not name it")
        for file in files:
            if unstorable_place(file.name) is not None:
                raise DataError(f"{where}: the name of {file} is not UTF-8", hint="rename the file")
            inside = _path(where, file.relative_to(folder).as_posix())
            yield {"name": inside, "digest": self._keep(where, file, folder)}

    def _keep(self, where: str, file: Path, folder: Path) -> str:
        if not file.resolve().is_relative_to(folder.resolve()):
            raise DataError(f"{where}: {file} leads out of the folder of the data", hint="copy the file instead")
        try:
            data = read_plain(file, most=_LARGEST, follow=True)
        except OSError as error:
            too_large = error.errno == errno.EOVERFLOW
            hint = "give the task a smaller file" if too_large else "check the file and its permissions"
            raise DataError(f"{where}: {file} cannot be read: {error.strerror}", hint=hint) from error
        digest = hashlib.sha256(data).hexdigest()[:16]
        self._paths[digest] = file
        return digest

    def read(self, entry: Mapping[str, str]) -> bytes:
        if (content := self._texts.get(entry["digest"])) is not None:
            return content
        path = self._paths[entry["digest"]]
        data = read_again(path, hint="check the data", most=_LARGEST)
        if hashlib.sha256(data).hexdigest()[:16] != entry["digest"]:
            raise EnvironmentFaultError(f"{path} has changed since the run began", hint="start the run again")
        return data

    def picture(self, entry: Mapping[str, str]) -> Image:
        kind = _PICTURES[Path(entry["name"]).suffix.lower()]
        return Image(media_type=kind, data=base64.b64encode(self.read(entry)).decode())


def _path(where: str, name: str) -> TreePath:
    try:
        return TreePath(name)
    except UnsafeNameError as error:
        problem = f"{where} names the file {shown(name)}, which is not a path next to the data: {path_fault(name)}"
        raise DataError(problem, hint="put files into the data's folder, and name them from there") from error


def check_pictures(where: str, entries: Listed) -> None:
    for entry in entries:
        if Path(entry["name"]).suffix.lower() not in _PICTURES:
            raise DataError(f"{where}: {entry['name']} is not a PNG, JPEG, GIF or WebP", hint="convert it")
