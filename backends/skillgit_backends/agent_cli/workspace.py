"""Owns the folders of one call, which nothing else has used or will use, and which variables its processes may see.

The home is not inside the temporary folder, because Codex puts no helper programs there and then cannot sandbox.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.file_names import file_name
from skillgit.plugin.seed_folder import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit_backends.agent_cli.prompting import DeliveredSkill, PictureFile

_PRIVATE = 0o600
_FOLDER = 0o700
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
ALLOWED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
)
"""What a program needs to be found, to write text and to reach its provider; credentials are not among it."""
_SHORTEST_SECRET = 8


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


def child_environment(
    environ: Mapping[str, str], workspace: CallWorkspace, *, names: Sequence[str] = (), **variables: str
) -> dict[str, str]:
    """Return the environment of an agent's process; an empty value of ``variables`` leaves one out."""
    base = {name: environ[name] for name in (*ALLOWED, *names) if name in environ}
    own = {"HOME": str(workspace.home), "TMPDIR": str(workspace.temporary), "TERM": "dumb", "NO_COLOR": "1"}
    return base | own | {name: value for name, value in variables.items() if value}


def without_secrets(text: str, environment: Mapping[str, str], secrets: Sequence[str]) -> str:
    """Return ``text`` without the values of the variables called ``secrets``."""
    for name in secrets:
        value = environment.get(name, "")
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "[redacted]")
    return text
