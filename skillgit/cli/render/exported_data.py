"""What an export of a run wrote, and what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.gated import following

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.export.csv_files import ExportedTables
    from skillgit.app.export.mlflow import ExportedStore
    from skillgit.app.export.skillopt import ExportedLayout
    from skillgit.cli.screen import Screen


def layout_written(result: ExportedLayout, screen: Screen) -> Iterator[str]:
    """Yield what was written as a SkillOpt output directory."""
    steps, files = words.plural(result.steps, "step"), words.plural(result.files, "file")
    yield f" {screen.glyphs.dot} ".join((f"wrote {result.run} to {result.place}", steps, files))


def tables_written(result: ExportedTables, screen: Screen) -> Iterator[str]:
    """Yield which tables were written, with their rows."""
    rows = [words.plural(count, name.removesuffix("s")) for name, count in result.rows.items()]
    yield f" {screen.glyphs.dot} ".join((f"wrote {result.run} to {result.place}", *rows))


def store_written(result: ExportedStore, screen: Screen) -> Iterator[str]:
    """Yield where in an MLflow store the run stands."""
    parts = (f"experiment {result.experiment}", f"run {result.run_id}", words.plural(result.metrics, "metric"))
    yield f" {screen.glyphs.dot} ".join((f"wrote {result.run} to {result.place}", *parts))
    yield following((f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {result.place}",), screen)
