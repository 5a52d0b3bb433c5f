"""The folders of one call to an agent: made for it, used by nothing else, and removed after it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillgit.domain.untrusted.file_names import file_name
from skillgit.plugin.seed_folder import write_files
from skillgit_backends.agent_cli.prompting import DeliveredSkill, PictureFile

_PRIVATE, _FOLDER = 0o600, 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWorkspace:
    root: Path  # holds the others; its path is in the environment of every process of the call

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def outside(self) -> Path:
        """Files of the call that a sandboxed agent cannot write."""
        return self.root / "call"

    def place_skills(self, folder: str, skills: Sequence[DeliveredSkill]) -> None:
        """Write each skill as ``<folder>/<name>/SKILL.md``, with its other files, into the workspace."""
        for skill in skills:
            texts = {"SKILL.md": skill.document, **skill.files}
            path = self.work / folder / file_name(skill.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_files(path, {name: text.encode(errors="replace") for name, text in texts.items()})

    def place_pictures(self, pictures: Sequence[PictureFile]) -> list[Path]:
        paths = [self.work / picture.name for picture in pictures]
        for path, picture in zip(paths, pictures, strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(picture.data)
        return paths

    def place_private(self, path: Path, text: str) -> Path:
        """Write a file that only this user may read."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w", encoding="utf-8", errors="replace"
        ) as file:
            file.write(text)
        return path


@contextmanager
def fresh_workspace() -> Iterator[CallWorkspace]:
    """Give the folders for one call, and remove them with all that is inside."""
    root = Path(tempfile.mkdtemp(prefix="skillgit-agent-")).resolve()
    workspace = CallWorkspace(root=root)
    try:
        for folder in (workspace.home, workspace.work, workspace.temporary, workspace.outside):
            folder.mkdir(mode=_FOLDER)
        yield workspace
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():  # an agent may have taken its own right to write into a folder
        for folder, names, _ in os.walk(root):
            for path in (Path(folder, name) for name in names):
                if not path.is_symlink():
                    path.chmod(_FOLDER)
        shutil.rmtree(root, ignore_errors=True)
