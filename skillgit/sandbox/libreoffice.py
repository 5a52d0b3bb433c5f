"""Owns the recalculation of workbooks by LibreOffice, which runs as a job: a workbook may hold what a model wrote."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox.job import Job, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

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
"""Calculate every formula when a workbook is opened, whatever value the file says it has."""
_SHOWN = 300


async def recalculate(books: Mapping[str, bytes], sandbox: Sandbox) -> Mapping[str, bytes]:
    """Return the workbooks with the values of all their formulas, by their names; one that it cannot read is left out.

    All of them are one call of LibreOffice, in a profile of its own; an EnvironmentFaultError if it does not end well.
    """
    if not books:
        return {}
    program = office_program()
    names = {f"{number}.xlsx": name for number, name in enumerate(books)}
    settings = {f"{_PROFILE}/user/registrymodifications.xcu": _SETTINGS.encode()}
    result = await sandbox.run(
        Job(
            command=("/bin/sh", "-c", _script(program, names)),
            files={f"{_BOOKS}/{file}": books[name] for file, name in names.items()} | settings,
            limits=LIMITS,
            read_only=_needed(program),
            collect=(f"{_DONE}/*.xlsx",),
            unix_sockets=True,
        )
    )
    results = {names[Path(path).name]: content for path, content in result.files.items()}
    if result.ok and results:
        return {name: results[name] for name in books if name in results}
    if not result.ok or "source file could not be loaded" not in result.stderr:
        output = " ".join(f"{result.stdout} {result.stderr}".split())[-_SHOWN:]
        message = f"LibreOffice did not recalculate ({result.ended}, exit code {result.exit_code}): {output}"
        raise EnvironmentFaultError(message, hint=f"try by hand: {program} --headless --convert-to xlsx FILE")
    return {}


def office_program() -> str:
    """Return the path of LibreOffice; an EnvironmentFaultError if it is not installed."""
    program = next((path for name in OFFICE_PROGRAMS if (path := shutil.which(name)) is not None), None)
    if program is None:
        message = "LibreOffice is not installed, and workbooks cannot be recalculated without it"
        raise EnvironmentFaultError(message, hint="install it, for example: apt install libreoffice-calc-nogui")
    return str(Path(program).resolve())


def _script(program: str, files: Mapping[str, str]) -> str:
    """Return the shell's part: the folder's path is known only inside."""
    sources = " ".join(f"{_BOOKS}/{file}" for file in files)
    profile = f'-env:UserInstallation="file://$PWD/{_PROFILE}"'
    return f"exec '{program}' {profile} --headless --norestore --convert-to xlsx --outdir {_DONE} {sources}"


def _needed(program: str) -> tuple[Path, ...]:
    """Return what LibreOffice reads besides the system's programs: its own folder, if it lies elsewhere."""
    folder = Path(program).parents[1]
    own = () if folder.is_relative_to("/usr") else (folder,)
    return (*own, *((_STATE,) if _STATE.is_dir() else ()))
