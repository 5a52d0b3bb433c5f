"""A skill as one file: a zip archive whose bytes depend on nothing but the skill."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill

ENDINGS = (".zip", ".skill")
"""How the names of archives end."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip archive can hold, which is no time of anybody's."""
_UNIX = 3
_FILE, _PROGRAM = 0o100644, 0o100755


def archive(skill: Skill) -> bytes:
    """Return a zip archive with the files of ``skill`` in one folder that bears its name.

    Equal skills give equal bytes on every machine. So files are sorted and stored uncompressed, for compressors differ
    between versions and systems.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as target:
        for path, content in skill.files.items():
            member = zipfile.ZipInfo(f"{skill.name}/{path}", _EPOCH)
            member.create_system = _UNIX
            member.external_attr = (_PROGRAM if path in skill.executable else _FILE) << 16
            target.writestr(member, content)
    return written.getvalue()
