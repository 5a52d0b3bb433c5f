"""The only writer of stdout: data and nothing else, through a pager or into a file where the user wants that."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from skillgit.domain.untrusted.model_text import visible
from skillgit.errors import SkillgitError
from skillgit.view.json_values import document_text, plain_value, record_text
from skillgit.view.surface import Screen

FALLBACK = "less -FRX"
PAINTERS = frozenset({"delta", "diff-so-fancy", "diff-highlight", "bat", "batcat"})
"""Pagers that want to colour a diff themselves."""


class Pager:
    """A running pager; ``LESS`` and ``LV`` get git's defaults."""

    def __init__(self, command: str, environ: Mapping[str, str]) -> None:
        settings = {"LESS": "FRX", "LV": "-c"} | dict(environ)
        self._process = subprocess.Popen(  # noqa: S602 - a pager is a shell command of the user's own, as in git
            command, shell=True, stdin=subprocess.PIPE, env=settings
        )

    @property
    def stream(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdin)

    def close(self) -> None:
        """Wait until the reader has left; Ctrl-C belongs to the pager meanwhile."""
        with _interrupts_ignored():
            with suppress(BrokenPipeError):
                self.stream.close()
            self._process.wait()


def choose(environ: Mapping[str, str], directory: Path) -> str:
    """Return the command of the pager: ``SKILLGIT_PAGER``, what git would use, ``less``; empty for none."""
    command = environ.get("SKILLGIT_PAGER")
    if command is None:
        command = _git_pager(environ, directory) or FALLBACK
    command = command.strip()
    words = [word for word in _words(command) if "=" not in word]
    is_there = bool(words) and shutil.which(words[0], path=environ.get("PATH")) is not None
    return command if is_there and command != "cat" else ""


def paints_diffs(command: str) -> bool:
    return any(Path(word).name in PAINTERS for word in _words(command))


def _git_pager(environ: Mapping[str, str], directory: Path) -> str:
    # git alone knows GIT_PAGER, core.pager, PAGER and their order. It is asked outside of the repository: what that
    # itself names may be a stranger's program, and a reader of a history has not asked for it.
    try:
        answer = subprocess.run(
            ["git", "var", "GIT_PAGER"],  # noqa: S607 - the git on the PATH is the user's
            cwd=directory.anchor or "/",
            env={name: value for name, value in environ.items() if name != "GIT_DIR"},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Output:
    """Writes data to stdout, or to a pager in front of it; ``pager`` starts one where there shall be one."""

    def __init__(self, stream: IO[bytes], *, screen: Screen, encoding: str, pager: Callable[[], Pager | None]) -> None:
        self.screen = screen
        self._stream = stream
        self._encoding = encoding
        self._pager = pager

    def text(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._write(f"{self.screen.shown(line)}\n".encode(self._encoding, errors="replace"))

    def document(self, schema: str, body: object) -> None:
        """Write one JSON document: a dataclass or a mapping, with the name of its shape in front."""
        self._write(document_text(schema, body).encode())

    def records(self, rows: Iterable[object]) -> None:
        for row in rows:
            self._write(f"{record_text(row)}\n".encode())

    def table(self, rows: Iterable[Sequence[object]]) -> None:
        """Write rows of tab-separated cells, one a line."""
        for row in rows:
            self._write(("\t".join(map(_cell, row)) + "\n").encode())

    def raw(self, data: bytes) -> None:
        """Write bytes as they are; a terminal gets them as text, and what would act on it is shown."""
        if not self.screen.terminal:
            self._write(data)
        elif data:
            self.text(data.decode(errors="replace").removesuffix("\n").split("\n"))

    @contextmanager
    def paged(self) -> Iterator[None]:
        pager = self._pager()
        if pager is None:
            yield
            return
        stdout, self._stream = self._stream, pager.stream
        try:
            yield
        except BrokenPipeError:
            pass  # the reader has seen enough and left the pager
        finally:
            self._stream = stdout
            pager.close()

    def flush(self) -> None:
        """Hand everything to the operating system, so that a failure is noticed while it can still be reported."""
        with _named_failure():
            self._stream.flush()

    def _write(self, data: bytes) -> None:
        with _named_failure():
            # With PYTHONUNBUFFERED stdout is a raw file, which may take a part only: of a pipe whose reader left, say.
            while data:
                data = data[self._stream.write(data) :]


@contextmanager
def _named_failure() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise BrokenPipeError from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SkillgitError(
            f"cannot write to stdout: {reason}", hint="check the disk, or the pipe's other end"
        ) from error


def _cell(value: object) -> str:
    plain = plain_value(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, list):
        return ",".join(map(str, plain))
    # A cell must not end its row or its column.
    return visible(str(plain).replace("\t", " ").replace("\n", " "))
