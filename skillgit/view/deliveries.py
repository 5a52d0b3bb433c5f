"""What an install, an export or an import wrote, and what to type next."""

from __future__ import annotations

import re
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.view import diff, numbers
from skillgit.view.gate import following
from skillgit.view.items import name
from skillgit.view.text import inert, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.deliver.export.folder import ExportedSkill
    from skillgit.app.deliver.export.mlflow import ExportedStore
    from skillgit.app.deliver.export.skillopt import ExportedLayout
    from skillgit.app.deliver.export.tables import ExportedTables
    from skillgit.app.deliver.install import Installed, InstallResult, InstallState, UninstallResult
    from skillgit.app.skill_format.folder_contents import FileChange
    from skillgit.app.sources.skillopt.outputs import Imported
    from skillgit.view.surface import Screen


_COMMIT = re.compile(r"[0-9a-f]{40}")
_SIGNS = {"added": "A", "removed": "D", "changed": "M"}


def exported(result: ExportedSkill) -> Iterator[str]:
    version = f"{name(result.row)} of {result.row.run}" if result.row else numbers.short(result.commit)
    path = one_line(result.place)
    if result.held:
        yield f"{path} holds {version} already"
    else:
        yield f"{path} holds {version}, {numbers.plural(len(result.files), 'file')}"


def would_change(changes: Sequence[FileChange]) -> Iterator[str]:
    """Yield a line for each file that is not what it would be."""
    for change in changes:
        yield f"{_SIGNS[change.status]}  {one_line(change.path or '.')}"


def differences(changes: Sequence[FileChange], screen: Screen) -> Iterator[str]:
    """Yield the differences of the texts, with nothing in them that a terminal obeys."""
    for change in changes:
        text = inert(change.diff)
        yield from diff.coloured(text, screen) if screen.colour else diff.plain(text)


def installed(result: InstallResult) -> Iterator[str]:
    path = one_line(result.place)
    if result.held:
        yield f"{path} holds {_called(result.name)} already"
    elif not result.written:
        instead = f" instead of {_standing(result.before)}" if result.before is not None else ""
        yield f"would put {_called(result.name)} at {path}{instead}"
    else:
        instead = f" instead of {_standing(result.before)}" if result.before is not None else ""
        yield f"{path} holds {_called(result.name)}{instead}; back: skillgit uninstall --to {quote(result.place)}"


def uninstalled(result: UninstallResult) -> Iterator[str]:
    """Yield what is there again."""
    again = "nothing" if result.restored is None else _standing(result.restored)
    path = one_line(result.place)
    if result.written:
        yield f"{path} holds {again} again"
    else:
        yield f"would leave nothing at {path}" if result.restored is None else f"would bring back {again} to {path}"


def listed(rows: Sequence[Installed]) -> Iterator[str]:
    if not rows:
        yield "nothing was installed from here"
        return
    names = [_called(row.name) for row in rows]
    widths = [max(map(len, column)) for column in (names, [row.state for row in rows])]
    for name_, row in zip(names, rows, strict=True):
        newer = f"   newer: {row.newer}" if row.newer else ""
        yield f"{name_.ljust(widths[0])}  {row.state.ljust(widths[1])}  {one_line(row.place)}{newer}"


def _standing(standing: InstallState) -> str:
    if not standing.name:
        return "what did not come from here"
    return f"an edited {_called(standing.name)}" if standing.by_hand else _called(standing.name)


def _called(name: str) -> str:
    """Return the name of a version; a commit's shortened, as people read it."""
    return numbers.short(name) if _COMMIT.fullmatch(name) else name


def layout_written(result: ExportedLayout, screen: Screen) -> Iterator[str]:
    """Yield what was written as a SkillOpt output directory."""
    steps, files = numbers.plural(result.steps, "step"), numbers.plural(result.files, "file")
    yield f" {screen.glyphs.dot} ".join((f"wrote {result.run} to {result.place}", steps, files))


def tables_written(result: ExportedTables, screen: Screen) -> Iterator[str]:
    """Yield which tables were written, with their rows."""
    rows = [numbers.plural(count, name.removesuffix("s")) for name, count in result.rows.items()]
    yield f" {screen.glyphs.dot} ".join((f"wrote {result.run} to {result.place}", *rows))


def store_written(result: ExportedStore, screen: Screen) -> Iterator[str]:
    """Yield where in an MLflow store the run stands."""
    parts = (f"experiment {result.experiment}", f"run {result.run_id}", numbers.plural(result.metrics, "metric"))
    yield f" {screen.glyphs.dot} ".join((f"wrote {result.run} to {result.place}", *parts))
    yield following((f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {result.place}",), screen)


def lines(result: Imported, screen: Screen) -> Iterator[str]:
    dot = f" {screen.glyphs.dot} "
    parts = [
        _done(result),
        numbers.plural(result.versions, "version"),
        f"{result.rejected} rejected",
        f"{result.skipped} skipped",
    ]
    yield dot.join(parts)
    gain = numbers.delta(result.best_score - result.first_score)
    yield f"{version_label(result.best)} scores {numbers.score(result.best_score)}, {gain} over the seed"
    if not result.dry_run:
        yield following((f"skillgit log {result.run}", f"skillgit diff {result.run}/v0 {result.run}/best"), screen)


def _done(result: Imported) -> str:
    if result.already:
        return f"already imported as {result.run}"
    more = "" if result.written == result.events else f", of which {result.written} are new"
    verb = "would import" if result.dry_run else "imported"
    return f"{verb} {numbers.plural(result.events, 'event')} as {result.run}{more}"
