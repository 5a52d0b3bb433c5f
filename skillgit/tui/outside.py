"""Programs that take the terminal for a while: the user's editor and pager."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from skillgit.app.history.plumbing import cat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.index.rows import LogRow
    from skillgit.tui.app import SkillgitApp

_DOCUMENT = "SKILL.md"


def paged(app: SkillgitApp, row: LogRow) -> None:
    """Show the event as ``skillgit show`` does, in its pager."""
    directory = str(app.context.directory)
    _in_terminal(app, [sys.executable, "-m", "skillgit", "-C", directory, "--color=always", "show", str(row.address)])


def edited(app: SkillgitApp, row: LogRow) -> None:
    """Read the skill's document from git, then open a copy of it in the editor."""
    app.read(_document, str(row.address), then=lambda found: _edit(app, row, found))


def _document(context: object, revision: str) -> bytes:
    return cat(context, f"{revision}:{_DOCUMENT}")  # type: ignore[arg-type]


def _edit(app: SkillgitApp, row: LogRow, document: bytes) -> None:
    environ = app.context.environ
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="skillgit-") as folder:
        path = Path(folder) / f"{str(row.address).replace('/', '-')}-{_DOCUMENT}"
        path.write_bytes(document)
        path.chmod(0o444)
        _in_terminal(app, [*shlex.split(editor), str(path)])


def _in_terminal(app: SkillgitApp, command: Sequence[str]) -> None:
    try:
        with app.suspend():
            subprocess.run(command, env=dict(app.context.environ), check=False)  # noqa: S603 - the user's own programs
    except SuspendNotSupported:
        app.notify("this terminal cannot be lent to another program", severity="warning")
    except OSError as error:
        app.notify(f"{command[0]}: {error.strerror}", severity="error", markup=False)
