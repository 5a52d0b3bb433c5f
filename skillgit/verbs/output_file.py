"""Files that an answer is written to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from skillgit.app.skill_format.atomic_write import refuse_way_out
from skillgit.app.workspace.request import MisuseError
from skillgit.errors import SkillgitError
from skillgit.verbs.verb import Form, VerbSession

STDOUT = "-"
"""The FILE of ``--output`` that is stdout: what would be written there replaces the answer."""


def refuse_two_answers(session: VerbSession, output: str) -> None:
    """Refuse to write to stdout both what ``--output`` writes and a document."""
    if output == STDOUT and session.form is not Form.TEXT:
        raise MisuseError(f"--output {STDOUT} cannot be combined with --{session.form.value}")


def write_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``, which holds the old content or the new one at any moment."""
    refuse_way_out(path.absolute(), follow=True)
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(content)  # a link, pipe or device, as /dev/stdout: nothing may take its place
            return
        young = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            young.write_bytes(content)
            if path.exists():
                shutil.copymode(path, young)
            young.replace(path)
        finally:
            young.unlink(missing_ok=True)
    except BrokenPipeError:
        raise  # the file is a pipe, as /dev/stdout may be
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SkillgitError(f"cannot write {path}: {reason}", hint="check the folder and its permissions") from error
