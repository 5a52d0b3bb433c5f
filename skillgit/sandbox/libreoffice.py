"""Owns the recalculation of workbooks, which may hold what a model wrote, by LibreOffice: as a job, shared and cached.

To start it takes as long as to calculate twenty workbooks.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from asyncio import AbstractEventLoop, Semaphore, Task
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from weakref import WeakKeyDictionary

from skillgit.errors import EnvironmentFaultError
from skillgit.files import read_plain
from skillgit.sandbox.job import Job, Limits
from skillgit.sandbox.mechanisms import Mode
from skillgit.sandbox.sandbox import Sandbox

LIMITS = Limits(wall_s=180.0, cpu_s=170, memory_mb=6144, processes=128, disk_mb=512)
OFFICE_PROGRAMS = ("soffice", "libreoffice")
_STATE = Path("/var/spool/libreoffice")
"""Where some systems keep the extensions of all users; LibreOffice wants to look at it."""
_PROFILE, _BOOKS, _DONE = "profile", "books", "done"
_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop>
<prop oor:name="ODFRecalcMode" oor:op="fuse"><value>0</value></prop>
</item>
</oor:items>
"""
"""Calculate every formula when a workbook is opened, and not only show the value that the file holds."""
_UNREADABLE = "source file could not be loaded"
_SHOWN = 300
_MOST_AT_ONCE = 32  # workbooks of one call, which its limits are made for


async def recalculate(books: Mapping[str, bytes], sandbox: Sandbox, *, reference: bool = False) -> Mapping[str, bytes]:
    """Return the workbooks with the values of all their formulas, by their names; one that it cannot read is left out.

    Each content is calculated once a day on this machine (formulas may ask for the date). What is new goes into one
    call of LibreOffice with what others ask for meanwhile; an EnvironmentFaultError if it does not end well. Right
    answers (``reference``) are never in one call with what a model made, whose links could read them.
    """
    if not books:
        return {}
    program = office_program()
    keys = {name: _key(program, content) for name, content in books.items()}
    results = await asyncio.to_thread(_cached, set(keys.values()))
    missing = {keys[name]: content for name, content in books.items() if keys[name] not in results}
    if missing:
        fresh = await _calculated(missing, program, sandbox, reference=reference)
        await asyncio.to_thread(_cache, fresh)
        results |= fresh
    return {name: results[key] for name, key in keys.items() if key in results}


def _key(program: str, content: bytes) -> str:
    """Return the digest of what decides the values: the workbook, the settings, the day, and the LibreOffice."""
    state = Path(program).stat()
    conditions = f"{_SETTINGS} {date.today()} {program} {state.st_size} {state.st_mtime_ns}"  # noqa: DTZ011 - as TODAY()
    return hashlib.sha256(hashlib.sha256(conditions.encode()).digest() + content).hexdigest()


@dataclass(slots=True, kw_only=True)
class _Batch:
    task: Task[dict[str, bytes]]
    books: dict[str, bytes]


@dataclass(slots=True, kw_only=True)
class _Calls:
    places: Semaphore = field(default_factory=lambda: Semaphore(os.cpu_count() or 1))
    waiting: dict[tuple[Mode, bool], _Batch] = field(default_factory=dict)  # for a place; what may be in one call
    tasks: set[Task[dict[str, bytes]]] = field(default_factory=set)  # the loop holds them weakly


_calls: WeakKeyDictionary[AbstractEventLoop, _Calls] = WeakKeyDictionary()


async def _calculated(
    books: Mapping[str, bytes], program: str, sandbox: Sandbox, *, reference: bool
) -> dict[str, bytes]:
    """Return what LibreOffice makes of ``books``, in one call with others that wait; alone if that call fails."""
    calls = _calls.setdefault(asyncio.get_running_loop(), _Calls())
    kind = (sandbox.kind, reference)
    batch = calls.waiting.get(kind)
    if batch is None or len(batch.books) + len(books) > _MOST_AT_ONCE:
        contents: dict[str, bytes] = {}
        batch = _Batch(task=asyncio.create_task(_in_turn(calls, kind, contents, program, sandbox)), books=contents)
        calls.waiting[kind] = batch
        calls.tasks.add(batch.task)
        batch.task.add_done_callback(calls.tasks.discard)
    batch.books.update(books)
    try:
        results = await asyncio.shield(batch.task)
    except EnvironmentFaultError:
        if batch.books.keys() == books.keys():
            raise
        async with calls.places:
            results = await _converted(books, program, sandbox)
    return {key: results[key] for key in books if key in results}


async def _in_turn(
    calls: _Calls, kind: tuple[Mode, bool], books: Mapping[str, bytes], program: str, sandbox: Sandbox
) -> dict[str, bytes]:
    async with calls.places:
        if (waiting := calls.waiting.get(kind)) is not None and waiting.books is books:
            del calls.waiting[kind]
        return await _converted(books, program, sandbox)


async def _converted(books: Mapping[str, bytes], program: str, sandbox: Sandbox) -> dict[str, bytes]:
    names = {f"{number}.xlsx": name for number, name in enumerate(books)}
    files = {f"{_BOOKS}/{file}": books[name] for file, name in names.items()}
    # The shell's part: the folder's path is known only inside.
    profile = f'-env:UserInstallation="file://$PWD/{_PROFILE}"'
    script = f"exec '{program}' {profile} --headless --norestore --convert-to xlsx --outdir {_DONE} {' '.join(files)}"
    result = await sandbox.run(
        Job(
            command=("/bin/sh", "-c", script),
            files=files | {f"{_PROFILE}/user/registrymodifications.xcu": _SETTINGS.encode()},
            limits=LIMITS,
            read_only=_needed(program),
            collect=(f"{_DONE}/*.xlsx",),
            unix_sockets=True,
        )
    )
    results = {names[Path(path).name]: content for path, content in result.files.items()}
    if result.ok and result.stderr.count(_UNREADABLE) == len(books) - len(results):
        return results
    output = " ".join(f"{result.stdout} {result.stderr}".split())[-_SHOWN:]
    message = f"LibreOffice did not recalculate ({result.ended}, exit code {result.exit_code}): {output}"
    raise EnvironmentFaultError(message, hint=f"try by hand: {program} --headless --convert-to xlsx FILE")


def office_program() -> str:
    """Return the path of LibreOffice; an EnvironmentFaultError if it is not installed."""
    program = next((path for name in OFFICE_PROGRAMS if (path := shutil.which(name)) is not None), None)
    if program is None:
        message = "LibreOffice is not installed, and workbooks cannot be recalculated without it"
        raise EnvironmentFaultError(message, hint="install it, for example: apt install libreoffice-calc-nogui")
    return str(Path(program).resolve())


def _needed(program: str) -> tuple[Path, ...]:
    """Return what LibreOffice reads besides the system's programs: its own folder, if that is elsewhere."""
    folder = Path(program).parents[1]
    own = () if folder.is_relative_to("/usr") else (folder,)
    return (*own, *((_STATE,) if _STATE.is_dir() else ()))


MOST_CACHED = 512 << 20  # bytes of results that are kept; those unused for longest go first
_DIGEST = hashlib.sha256().digest_size


def _cache_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expandvars("$HOME/.cache"))
    if not home.is_absolute():
        raise OSError("the user has no folder for caches")
    return home / "skillgit" / "recalculated"


def _cached(keys: Iterable[str]) -> dict[str, bytes]:
    """Return the results that are in the cache; one that was damaged is not."""
    results = {}
    for key in keys:
        with suppress(OSError):
            data = read_plain(_cache_folder() / key)
            if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
                results[key] = data[_DIGEST:]
                os.utime(_cache_folder() / key)
    return results


def _cache(results: Mapping[str, bytes]) -> None:
    """Put results into the cache; where the disk is full or read-only, they are calculated again next time."""
    with suppress(OSError):
        folder = _cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for key, content in results.items():
            handle, young = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "wb") as stream:
                stream.write(hashlib.sha256(content).digest() + content)
            Path(young).replace(folder / key)
        states = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in folder.iterdir())
        total = sum(size for _, size, _ in states)
        for _, size, path in states:
            if total > MOST_CACHED:
                path.unlink(missing_ok=True)
                total -= size
