"""Which files of a skill may be trained, and where a new one may stand.

Patterns are relative to the skill folder. They are compared folder by folder, so that ``references/*.md`` means the
files that are in ``references`` and none below. ``*``, ``?`` and ``[…]`` are as in a shell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.file_names import clashes, path_fault

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill

_BINARY = frozenset(
    f".{ending}"
    for endings in (
        "avif bmp gif ico jpeg jpg png tiff webp",
        "doc docx odp ods odt pdf pptx xls xlsx",
        "7z bz2 gz jar rar tar xz zip",
        "flac mov mp3 mp4 ogg wav webm",
        "bin class dll eot exe otf pyc so sqlite ttf wasm woff woff2",
    )
    for ending in endings.split()
)
_FOLDER_AND_NAME = 2
_PROSE = frozenset({".md", ".markdown", ".txt"})


@dataclass(frozen=True, slots=True)
class TrainableFiles:
    """The files that steps may edit."""

    patterns: tuple[str, ...] = (DOCUMENT,)  # patterns of their paths inside the skill folder

    @property
    def beyond_document(self) -> bool:
        """Whether there may be others than ``SKILL.md``."""
        return any(pattern != DOCUMENT for pattern in self.patterns)

    def covers(self, path: str) -> bool:
        """Say whether the file at ``path`` may be edited, or made where there is none."""
        return any(_matches(path, pattern) for pattern in self.patterns)


def _matches(path: str, pattern: str) -> bool:
    names, globs = path.split("/"), pattern.split("/")
    return len(names) == len(globs) and all(map(fnmatchcase, names, globs))


def pattern_problem(pattern: str) -> str:
    """Return why ``pattern`` cannot name trainable files, to be after it in a sentence; empty if it can."""
    parts = pattern.split("/")
    if pattern.startswith(("/", "~")) or ".." in parts or "\\" in pattern or ":" in parts[0]:
        return "does not stay inside the skill folder"
    if not {"", "."}.isdisjoint(parts) or pattern != pattern.strip():
        return "is no path in its shortest form"
    if "#" in pattern or parts[-1].casefold() == "frontmatter":
        return "names a part of a file, and only whole files are trained; frontmatter never is"
    if any("**" in part for part in parts):
        return "has a '**', and patterns go folder by folder, as in references/*.md"
    if any(part.startswith(".") for part in parts):
        return "names hidden files, which are no part of a skill"
    if _ending(pattern) in _BINARY:
        return "names binary files, and only text can be trained"
    return ""


def is_prose(path: str) -> bool:
    """Say whether the file at ``path`` is text for reading, and no code or data."""
    return _ending(path) in _PROSE


def _ending(path: str) -> str:
    """Return the ending of a file's name with its dot, in lower case; empty if it has none."""
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f"{dot}{ending}".casefold() if stem else ""


def new_file_problem(skill: Skill, path: str) -> str:
    """Return why an edit cannot add a file at ``path`` to ``skill``, as a clause; empty if it can."""
    parts = path.split("/")
    if len(parts) != _FOLDER_AND_NAME or not {"", ".", ".."}.isdisjoint(parts):
        return "a new file belongs in a folder of the skill, one level deep"
    if pattern_problem(path) or any(sign in path for sign in "*?[") or not path.isprintable():
        return "a new file has a plain name and holds text"
    if fault := path_fault(path):
        return f"a new file has a name that every system can hold: {fault}"
    return next((f"it would stand in the way: {clash}" for clash in clashes((*skill.files, path))), "")
