"""A skill: a folder with a ``SKILL.md`` and companions, within limits of size, and which of its files may be trained.

Patterns of trainable files are relative to the skill folder. They are compared folder by folder, so that
``references/*.md`` means the files that are in ``references`` and none below. ``*``, ``?`` and ``[…]`` are as in a
shell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from skillgit.domain.untrusted.file_names import clashes, file_name, path_fault, shown, tree_paths
from skillgit.domain.untrusted.model_text import hidden_in, name_of
from skillgit.errors import SkillError, UnsafeNameError

DOCUMENT = "SKILL.md"
DESCRIPTION = "frontmatter.description"
"""Names, among the patterns of trainable files, the one value of the frontmatter that can be trained."""
MOST_DOCUMENT = 1 << 20
"""Bytes of a ``SKILL.md``: more than a model is shown with a question, and compared and drawn in seconds."""
MOST_COMPANION = 4 << 20
"""Bytes of another text file of a skill, such as a table; pictures and other binary files have no limit."""
_SHORTER = "move what is data out of the skill, or into several files"


@dataclass(frozen=True, slots=True)
class Skill:
    r"""A skill folder as a value; a SkillError without a ``SKILL.md`` in UTF-8, or for a name that is not a path.

    Wherever it comes from, its name and the paths of its files are ``TreePath``: they can be joined to a folder.

    Attributes:
        name: The folder's name; it equals ``name`` in the frontmatter.
        files: Path inside the folder (``/`` as separator) to content. Sorted by path. Holds ``SKILL.md``.
        executable: The paths whose executable bit is set.

    >>> skill = Skill(name='search', files={'SKILL.md': b'# Search\n', 'notes/units.md': b'km\n'})
    >>> list(skill.files)
    ['SKILL.md', 'notes/units.md']
    """

    name: str
    files: Mapping[str, bytes]
    executable: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        try:
            name, paths = file_name(self.name), tree_paths(sorted(self.files))
        except UnsafeNameError as error:
            raise SkillError(f"the skill cannot be used: {error.message}", hint=error.hint) from error
        if DOCUMENT not in self.files:
            raise SkillError(f"skill '{self.name}' has no {DOCUMENT}", hint=f"add {DOCUMENT} to the folder")
        try:
            self.files[DOCUMENT].decode()
        except UnicodeDecodeError as error:
            raise SkillError(f"{DOCUMENT} of skill '{self.name}' is not UTF-8", hint="save it as UTF-8") from error
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "files", MappingProxyType({path: self.files[path] for path in paths}))

    def __reduce__(self) -> tuple[object, ...]:  # a read-only mapping cannot be pickled
        return type(self), (self.name, dict(self.files), self.executable)

    @property
    def document(self) -> str:
        return self.files[DOCUMENT].decode()

    @property
    def digest(self) -> str:
        """SHA-256 over paths, modes and contents: equal exactly for equal skills."""
        state = hashlib.sha256()
        for path, content in self.files.items():
            mode = b"x" if path in self.executable else b"-"
            state.update(b"%s %d %d\0%s\0" % (mode, len(path.encode()), len(content), path.encode()))
            state.update(content)
        return state.hexdigest()

    def text_files(self) -> Iterator[tuple[str, str]]:
        """Yield path and text of every file that is UTF-8 without NUL bytes."""
        for path, content in self.files.items():
            if (text := _text(content)) is not None:
                yield path, text

    @property
    def excess(self) -> str:
        """Which text is longer than a skill's texts may be, as a sentence without a full stop; empty if none is."""
        return excess(self.files)

    def bounded(self) -> Skill:
        """Return the skill itself; a SkillError if one of its texts is longer than a skill's texts may be."""
        if self.excess:
            raise SkillError(self.excess, hint=_SHORTER)
        return self

    def with_text(self, path: str, text: str) -> Skill:
        return replace(self, files={**self.files, path: text.encode("utf-8", "replace")})


def excess(files: Mapping[str, bytes]) -> str:
    """Return which text of a skill, path to content, is too long, as a sentence without a full stop; empty if none."""
    for path, content in files.items():
        most = MOST_DOCUMENT if path == DOCUMENT else MOST_COMPANION
        if len(content) > most and (path == DOCUMENT or _text(content) is not None):
            return too_long(path, most)
    return ""


def too_long(path: str, most: int) -> str:
    return f"the text of {shown(path)} is longer than {most >> 20} MiB, the most that a skill may hold there"


def _text(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


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
_PROSE = frozenset({".md", ".markdown", ".txt"})


@dataclass(frozen=True, slots=True)
class TrainableFiles:
    """The files that steps may edit, by patterns of their paths inside the skill folder."""

    patterns: tuple[str, ...] = (DOCUMENT,)

    @property
    def beyond_document(self) -> bool:
        return any(pattern not in {DOCUMENT, DESCRIPTION} for pattern in self.patterns)

    @property
    def description(self) -> bool:
        """Whether steps may replace the description in the frontmatter."""
        return DESCRIPTION in self.patterns

    def covers(self, path: str) -> bool:
        """Say whether the file at ``path`` may be edited, or made where there is none."""
        names = path.split("/")
        patterns = (pattern.split("/") for pattern in self.patterns if pattern != DESCRIPTION)
        return any(len(names) == len(globs) and all(map(fnmatchcase, names, globs)) for globs in patterns)


def pattern_problem(pattern: str) -> str:
    """Return why ``pattern`` cannot name trainable files, to be after it in a sentence; empty if it can."""
    if pattern == DESCRIPTION:
        return ""
    parts = pattern.split("/")
    if pattern.startswith(("/", "~")) or ".." in parts or "\\" in pattern or ":" in parts[0]:
        return "does not stay inside the skill folder"
    if not {"", "."}.isdisjoint(parts) or pattern != pattern.strip():
        return "is not a path in its shortest form"
    if "#" in pattern or parts[-1].casefold() == "frontmatter":
        return f"names a part of a file, and only whole files are trained, and {DESCRIPTION}"
    if any("**" in part for part in parts):
        return "has a '**', and patterns go folder by folder, as in references/*.md"
    if any(part.startswith(".") for part in parts):
        return "names hidden files, which do not belong to a skill"
    if _ending(pattern) in _BINARY:
        return "names binary files, and only text can be trained"
    return ""


def is_prose(path: str) -> bool:
    return _ending(path) in _PROSE


def _ending(path: str) -> str:
    """Return the ending of a file's name with its dot, in lower case; empty if it has none."""
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return f"{dot}{ending}".casefold() if stem else ""


def new_file_problem(skill: Skill, path: str) -> str:
    """Return why an edit cannot add a file at ``path`` to ``skill``, as a clause; empty if it can."""
    parts = path.split("/")
    if path.count("/") != 1 or not {"", ".", ".."}.isdisjoint(parts):
        return "a new file belongs in a folder of the skill, one level deep"
    if pattern_problem(path) or any(sign in path for sign in "*?[") or not path.isprintable():
        return "a new file has a plain name and holds text"
    if fault := path_fault(path):
        return f"a new file has a name that every system can hold: {fault}"
    return next((f"it would collide: {clash}" for clash in clashes((*skill.files, path))), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    line: int  # the line of the first one, counted from 1
    sentence: str  # how many there are, and which comes first; without a full stop


def hidden_characters(path: str, content: bytes) -> Hidden | None:
    """Return what is hidden in the file at ``path``; None if nothing is, or it is not text."""
    try:
        text = "" if b"\0" in content and not is_prose(path) else content.decode()
    except UnicodeDecodeError:
        return None
    if not (characters := hidden_in(text)):
        return None
    offset, first = characters[0]
    line = text.count("\n", 0, offset) + 1
    count = "a hidden character" if len(characters) == 1 else f"{len(characters)} hidden characters"
    comes = "" if len(characters) == 1 else ", the first"
    return Hidden(line=line, sentence=f"{path} has {count}{comes} in line {line}: {name_of(first)}")
