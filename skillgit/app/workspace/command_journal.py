"""Commands that someone started from a page or a screen: who did, what they print, and how they end.

Each has a process of its own, the keeper, which runs as this module. It outlives its starter, keeps the outputs
within :data:`MOST`, and notes the exit code. As long as it lives it holds a lock on the facts of its command, which the
kernel gives back however it dies: so a command that runs is never confused with another process of the same number.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillgit.errors import ConflictError, NotFoundError
from skillgit.files import is_held, locked, open_plain, read_plain
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    from skillgit.domain.untrusted import model_text
    from skillgit.plugin import redaction
    from skillgit.store import repo as repositories

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context

KEPT: Final = 100
"""Commands that are remembered; of older ones only those that still run."""
MOST: Final = 1 << 20
"""Bytes that are kept of each output, the last ones."""
TERMINAL: Final = "terminal"
"""Who started what no page did."""
_SHOWN: Final = 1 << 17  # bytes of each output that are shown at most, the last ones
_FACTS, _OUTPUT, _ERRORS = ".command", ".out", ".err"
_FOLDER: Final = "commands"
_MODULE: Final = (sys.executable, "-P", "-m")  # a file in the folder that it is run in is not one of our modules
_KILLED: Final = 128 + signal.SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord:
    """A command as it was when it was read; ``exit_code`` is unknown while it runs, and if its keeper was killed."""

    folder: Path
    id: str  # names its files; later commands have greater ones
    time: datetime
    by: str  # the name of the token that asked for it
    words: tuple[str, ...]  # behind ``skillgit``
    back: str = ""  # the page that asked for it
    pid: int = 0  # 0 until it has begun
    exit_code: int | None = None
    runs: bool = False

    @property
    def code(self) -> int | None:
        """What a shell would say that it exited with; None while it runs."""
        return None if self.runs else _KILLED if self.exit_code is None else self.exit_code

    def now(self) -> CommandRecord:
        return _read(self.folder, self.id) or self

    def wait(self) -> CommandRecord:
        """Return the command as it is after its end."""
        with suppress(OSError), locked(open_plain(self._path(_FACTS)), fcntl.LOCK_SH):
            pass
        return self.now()

    def outputs(self, most: int = MOST) -> tuple[bytes, bytes]:
        """Return the last of what it printed, and the last of its notes."""
        return _tail(self._path(_OUTPUT), most), _tail(self._path(_ERRORS), most)

    def text(self) -> str:
        """Return the last of both outputs, without colours and what looks like a credential."""
        output, errors = self.outputs(_SHOWN)
        return redaction.redact(model_text.clean((errors + output).decode(errors="replace")))

    def interrupt(self) -> None:
        """Do to a command that runs what Ctrl-C does."""
        command = self.now()
        if command.runs and command.pid:
            with suppress(ProcessLookupError):
                os.killpg(os.getpgid(command.pid), signal.SIGINT)

    def remove(self) -> None:
        for suffix in (_OUTPUT, _ERRORS, _FACTS):
            self._path(suffix).unlink(missing_ok=True)

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self.id}{suffix}"


def own_folder(context: Context, name: str) -> Path:
    """Return a folder of what is remembered here, which only this user may read."""
    repo = repositories.Repo.discover(context.directory)
    try:
        folder = repo.private_dir / name
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        # nothing is remembered in a read-only repository
        return repo.common_dir / "skillgit" / name
    return folder


def command_line(context: Context, words: Sequence[str], options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what runs ``skillgit WORDS`` here as another process."""
    return (*_MODULE, "skillgit", "-C", str(context.directory), "--no-pager", *options, *words)


_STARTED: Final[list[subprocess.Popen[bytes]]] = []
"""Children of this process that are not known to be over."""


def start_command(
    context: Context, words: Sequence[str], *, by: str = TERMINAL, back: str = "", options: Sequence[str] = ()
) -> CommandRecord:
    """Start ``skillgit OPTIONS WORDS`` so that it survives this process; the options are not shown."""
    folder, now = own_folder(context, _FOLDER), context.clock()
    name = str(time.time_ns())
    try:
        for old in commands(context)[KEPT - 1 :]:
            if not old.runs:
                old.remove()
        facts, output, errors = (_created(folder / f"{name}{suffix}") for suffix in (_FACTS, _OUTPUT, _ERRORS))
    except OSError as error:
        raise ConflictError(
            f"no command can be started from here: {error.strerror}", hint=f"ls -ld {folder}"
        ) from error
    try:
        # taken here and inherited by the keeper, so that it is held at every moment
        fcntl.flock(facts, fcntl.LOCK_EX)
        _note(facts, time=now.isoformat(), by=by, words=tuple(map(redaction.redact, words)), back=back)
        keeper = subprocess.Popen(  # noqa: S603 - words of ours, and no shell
            (*_MODULE, __name__, str(facts), *command_line(context, words, options)),
            env=dict(context.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            pass_fds=(facts,),
            start_new_session=True,
        )
    finally:
        for handle in (facts, output, errors):
            os.close(handle)
    _STARTED[:] = [child for child in (*_STARTED, keeper) if child.poll() is None]
    return CommandRecord(folder=folder, id=name, time=now, by=by, words=tuple(words), back=back, runs=True)


def _created(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)


def commands(context: Context) -> tuple[CommandRecord, ...]:
    """Return the commands that were started here, the newest first."""
    folder = own_folder(context, _FOLDER)
    names = sorted((path.stem for path in folder.glob(f"*{_FACTS}")), reverse=True)
    return tuple(filter(None, (_read(folder, name) for name in names)))


def command(context: Context, name: str) -> CommandRecord:
    record = _read(own_folder(context, _FOLDER), name) if name.isalnum() else None
    if record is None:
        raise NotFoundError("there is no such command in the journal", hint="see what was run under Activity")
    return record


def _read(folder: Path, name: str) -> CommandRecord | None:
    path = folder / f"{name}{_FACTS}"
    is_alive = is_held(path)  # before it is read, so that no exit code is missed
    facts: dict[str, object] = {}
    try:
        for line in read_plain(path).splitlines():
            with suppress(ValueError):  # a full disk may have cut it off
                facts.update(json.loads(line))
        words, pid, code = facts["words"], facts.get("pid"), facts.get("exit")
        return CommandRecord(
            folder=folder,
            id=name,
            time=datetime.fromisoformat(str(facts["time"])),
            by=str(facts["by"]),
            words=tuple(map(str, words)) if isinstance(words, list) else (),
            back=str(facts["back"]),
            pid=pid if isinstance(pid, int) else 0,
            exit_code=code if isinstance(code, int) else None,
            runs=is_alive and code is None,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _tail(path: Path, most: int) -> bytes:
    """Return the end of a file, from the beginning of a line."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            start = max(0, os.fstat(file.fileno()).st_size - most)
            file.seek(start)
            content = file.read(most)
    except OSError:
        return b""
    return content.partition(b"\n")[2] if start else content


def _note(facts: int, **fields: object) -> None:
    """Add a line in one write; what a full disk cut off before it stays a line of its own."""
    with suppress(OSError):
        os.write(facts, f"{json.dumps(fields)}\n".encode())


def _keep(facts: int, words: Sequence[str]) -> None:
    """Run ``words``, with their outputs behind those of this process, and note how they end."""
    # Ctrl-C is for the command, which may have something to tidy up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(  # noqa: S603 - what start_command gave
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - one thread
    )
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    _note(facts, pid=process.pid)
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate((process.stdout, process.stderr), start=1):
            assert stream is not None  # noqa: S101 - for the type checker
            selector.register(stream, selectors.EVENT_READ, number)
        while selector.get_map():
            for key, _ in selector.select():
                if piece := os.read(key.fd, 1 << 16):
                    _write_within(key.data, piece)
                else:
                    selector.unregister(key.fileobj)
    code = process.wait()
    _note(facts, exit=code if code >= 0 else 128 - code)


def _write_within(output: int, piece: bytes) -> None:
    """Add to an output; what is too much goes from its beginning."""
    with suppress(OSError):  # a command goes on though the disk is full
        if (size := os.fstat(output).st_size) + len(piece) > MOST:
            end = os.pread(output, MOST // 2, max(0, size - MOST // 2))
            os.ftruncate(output, 0)
            os.write(output, b"(what came before is left out)\n" + end)
        os.write(output, piece)


if __name__ == "__main__":
    _keep(int(sys.argv[1]), sys.argv[2:])
