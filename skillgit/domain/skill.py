"""A skill: a folder with a ``SKILL.md`` and companions, within limits of size, with names that are paths."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from skillgit.domain.untrusted.file_names import file_name, shown, tree_paths
from skillgit.errors import SkillError, UnsafeNameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DOCUMENT = "SKILL.md"
MOST_DOCUMENT = 1 << 20
"""Bytes of a ``SKILL.md``: more than a model is shown with a question, and compared and drawn in seconds."""
MOST_COMPANION = 4 << 20
"""Bytes of another text file of a skill, such as a table; pictures and other files that are no text have no limit."""
_SHORTER = "move what is data out of the skill, or into several files"


@dataclass(frozen=True, slots=True)
class Skill:
    r"""An Agent Skills folder as a value.

    Wherever it comes from, its name and the paths of its files are ``TreePath``: they can be joined to a folder.

    Attributes:
        name: The folder's name; it equals ``name`` in the frontmatter.
        files: Path inside the folder (``/`` as separator) to content. Sorted by path. Holds ``SKILL.md``.
        executable: The paths whose executable bit is set.

    Raises:
        SkillError: It has no ``SKILL.md`` in UTF-8, or a name that is no path.

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

    @property
    def document(self) -> str:
        """The text of ``SKILL.md``."""
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
        """Return the skill itself.

        Raises:
            SkillError: One of its texts is longer than a skill's texts may be.
        """
        if self.excess:
            raise SkillError(self.excess, hint=_SHORTER)
        return self

    def with_text(self, path: str, text: str) -> Skill:
        """Return the skill with the file at ``path`` set to ``text``."""
        return replace(self, files={**self.files, path: text.encode("utf-8", "replace")})


def excess(files: Mapping[str, bytes]) -> str:
    """Return which text of a skill, path to content, is too long, as a sentence without a full stop; empty if none."""
    for path, content in files.items():
        most = MOST_DOCUMENT if path == DOCUMENT else MOST_COMPANION
        if len(content) > most and (path == DOCUMENT or _text(content) is not None):
            return f"the text of {shown(path)} is longer than {most >> 20} MiB, the most that a skill may hold there"
    return ""


def _text(content: bytes) -> str | None:
    """Return what a file says; None if it is no text."""
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
