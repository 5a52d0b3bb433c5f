"""A result that is written to a file that the user names: whole, or not at all."""

from __future__ import annotations

import io
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillgit.app.folders.typed import refuse_way_out
from skillgit.cli.output import Output
from skillgit.cli.screen import Screen
from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def output_to(path: Path) -> Iterator[Output]:
    """Give a writer whose text, in UTF-8 and without colour, becomes the file ``path`` at the end.

    Raises:
        SkillgitError: The file cannot be written.
        UsageError: A link in a work tree leads from it to a file elsewhere.
    """
    refuse_way_out(path.absolute(), followed=True)
    content = io.BytesIO()
    yield Output(content, screen=Screen(), encoding="utf-8", pager=lambda: None)
    try:
        _write(path, content.getvalue())
    except BrokenPipeError:
        raise  # FILE is a pipe, as /dev/stdout may be
    except OSError as error:
        raise SkillgitError(
            f"cannot write {path}: {os.strerror(error.errno) if error.errno else error}",
            hint="check the folder and its permissions",
        ) from error


def _write(path: Path, content: bytes) -> None:
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
