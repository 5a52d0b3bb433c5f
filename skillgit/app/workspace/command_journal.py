"""Commands that were started for someone who is elsewhere: who asked, what they print, and how they end.

Each has a process of its own, the keeper, which runs as this module. It outlives whoever started it, keeps the output
within :data:`MOST`, and writes the exit code into the journal. As long as it lives it holds a lock on the output, which
the kernel gives back however it dies: so a command that runs is never confused with another process of the same number.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillgit.errors import ConflictError, NotFoundError
from skillgit.files import open_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.app.workspace.context import Context

MOST: Final = 1 << 20
"""Bytes of output that are kept of a command, the last ones."""
_SHOWN: Final = 1 << 17  # bytes of output that are returned at most, the last ones
_READ: Final = 2 << 20  # bytes of the journal that are read, the last ones
_JOURNAL: Final = "activity.jsonl"
_MODULE: Final = (sys.executable, "-P", "-m")  # a file in the folder that it is run in is no module of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord:
    """A command that was started; ``exit_code`` is unknown while it runs, and of one that was killed."""

    id: str
    time: datetime
    by: str  # the name of the token that asked for it
    words: tuple[str, ...]  # behind ``skillgit``
    back: str = ""  # the page that asked for it
    pid: int = 0
    exit_code: int | None = None
    runs: bool = False


def serve_folder(context: Context) -> Path:
    """Return the folder of what ``skillgit serve`` remembers; nobody else may read it."""
    from skillgit.store.repo import Repo  # noqa: PLC0415 - the keeper does without

    repo = Repo.discover(context.directory)
    try:
        folder = repo.private_dir / "serve"
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        # nothing is remembered where nobody can write
        return repo.common_dir / "skillgit" / "serve"
    return folder


def start_command(context: Context, words: Sequence[str], *, by: str, back: str = "") -> CommandRecord:
    """Start ``skillgit`` with ``words`` so that it survives this process, and note who asked for it."""
    from skillgit.plugin.redaction import redact  # noqa: PLC0415 - the keeper does without

    folder = serve_folder(context)
    now = context.clock()
    record = CommandRecord(
        id=f"{now:%Y%m%d-%H%M%S}-{context.entropy(4).hex()}", time=now, by=by, words=tuple(words), back=back
    )
    try:
        output = os.open(_output(folder, record.id), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConflictError(
            f"no command can be started from here: {error.strerror}", hint=f"ls -ld {folder}"
        ) from error
    try:
        # taken here and inherited by the keeper, so that there is no moment at which nobody holds it
        fcntl.flock(output, fcntl.LOCK_EX)
        note = {"id": record.id, "time": now.isoformat(), "by": by, "words": [*map(redact, record.words)], "back": back}
        _append(folder, note)
        keeper = (*_MODULE, __name__, str(folder), record.id, *_command(context, record))
        process = subprocess.Popen(  # noqa: S603 - words of ours, and no shell
            keeper,
            env={**context.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    _reap(process)
    return record


def _command(context: Context, record: CommandRecord) -> tuple[str, ...]:
    return (*_MODULE, "skillgit", "-C", str(context.directory), "--no-pager", *record.words)


_STARTED: Final[list[subprocess.Popen[bytes]]] = []


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Remember a child until it is over, and forget those that are: their ends are in the journal."""
    _STARTED[:] = [child for child in (*_STARTED, process) if child.poll() is None]


def commands(context: Context) -> tuple[CommandRecord, ...]:
    """Return the commands of the journal, the newest first."""
    folder = serve_folder(context)
    _STARTED[:] = [child for child in _STARTED if child.poll() is None]
    notes: dict[str, dict[str, object]] = {}
    for line in _tail(folder / _JOURNAL, _READ).splitlines():
        with suppress(ValueError, TypeError, KeyError):
            note = json.loads(line)
            notes.setdefault(note["id"], {}).update(note)
    return tuple(filter(None, (_record(folder, note) for note in reversed(notes.values()))))


def command(context: Context, name: str) -> CommandRecord:
    record = next((record for record in commands(context) if record.id == name), None)
    if record is None:
        raise NotFoundError("there is no such command in the journal", hint="see what was run under Activity")
    return record


def output(context: Context, record: CommandRecord) -> str:
    """Return the last of what ``record`` printed, without what looks like a credential."""
    from skillgit.plugin.redaction import redact  # noqa: PLC0415 - the keeper does without

    return redact(_tail(_output(serve_folder(context), record.id), _SHOWN).decode(errors="replace"))


def interrupt(context: Context, record: CommandRecord) -> None:
    """Do to a command that runs what Ctrl-C does."""
    running = command(context, record.id)
    if running.runs and running.pid:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGINT)


def _record(folder: Path, note: dict[str, object]) -> CommandRecord | None:
    match note:
        case {"id": str() as name, "time": str() as time, "by": str() as by, "words": list() as words}:
            code, pid, back = note.get("exit"), note.get("pid"), note.get("back")
            ended = isinstance(code, int)
            try:
                moment = datetime.fromisoformat(time)
            except ValueError:
                return None
            return CommandRecord(
                id=name,
                time=moment,
                by=by,
                words=tuple(map(str, words)),
                back=back if isinstance(back, str) else "",
                pid=pid if isinstance(pid, int) else 0,
                exit_code=code if isinstance(code, int) else None,
                runs=not ended and is_held(_output(folder, name)),
            )
    return None


def _output(folder: Path, name: str) -> Path:
    return folder / f"command-{name.replace('/', '')}.txt"


def is_held(path: Path) -> bool:
    try:
        handle = open_plain(path)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


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


def _append(folder: Path, note: Mapping[str, object]) -> None:
    """Add a line in one write; what a full disk cut off before it stays a line of its own."""
    handle = os.open(folder / _JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, f"\n{json.dumps(note)}\n".encode())
    finally:
        os.close(handle)


def _keep(folder: Path, name: str, words: Sequence[str]) -> int:
    """Run ``words``, with their output behind that of this process, and write down how they end."""
    # Ctrl-C is for the command, which may have something to tidy up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _append(folder, {"id": name, "pid": os.getpid()})
    process = subprocess.Popen(  # noqa: S603 - what start_command gave
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - one thread
    )
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    assert process.stdout is not None  # noqa: S101 - for the type checker
    while piece := os.read(process.stdout.fileno(), 1 << 16):
        _write_within(piece)
    code = process.wait()
    _append(folder, {"id": name, "exit": code if code >= 0 else 128 - code})
    return 0


def _write_within(piece: bytes) -> None:
    """Add to the output, which is file 1; what is too much goes from its beginning."""
    with suppress(OSError):  # a command goes on though the disk is full
        if (size := os.lseek(1, 0, os.SEEK_END)) + len(piece) > MOST:
            kept = os.pread(1, MOST // 2, max(0, size - MOST // 2))
            os.ftruncate(1, 0)
            os.pwrite(1, b"(what came before is left out)\n" + kept, 0)
            os.lseek(1, 0, os.SEEK_END)
        os.write(1, piece)


if __name__ == "__main__":
    sys.exit(_keep(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
