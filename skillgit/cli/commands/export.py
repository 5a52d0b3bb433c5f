"""``skillgit export``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session

_TABLES = ("events", "versions", "items", "edits")


@verb("export")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.option("--to", "place", metavar="DIR|FILE", help="Where to write: a folder, or FILE.zip or FILE.skill")
@click.option("--layout", type=click.Choice(["skillopt"]), help="Write the run as an output directory of SkillOpt")
@click.option(
    "--csv", "as_csv", is_flag=True, help="Write the run's tables as CSV: to the folder DIR, or one to stdout"
)
@click.option("--table", type=click.Choice(_TABLES), help="Which table of --csv; without --to it goes to stdout")
@click.option("--mlflow", "store", metavar="DIR", help="Add the run to the MLflow file store DIR, such as mlruns")
@click.option("--strip-markers", is_flag=True, help="Leave out the markers of the regions, not what is in them")
@click.option("--force", is_flag=True, help="Replace a skill or an archive that is there already")
@document_form
@click.pass_obj
def command(
    session: Session,
    *,
    revision: str,
    place: str | None,
    layout: str | None,
    as_csv: bool,
    table: str | None,
    store: str | None,
    strip_markers: bool,
    force: bool,
    form: Form,
) -> None:
    """Write the skill of a version, or the data of a run, elsewhere, without git.

    DIR becomes the skill's folder; agents want it to bear the skill's name. An archive holds one folder of that name,
    and equal skills give archives of equal bytes. Whatever happens, the place holds the old content or the new one.

    With --layout, --csv or --mlflow it is the run of REV that is written; --json without --to prints its data as one
    document.
    """
    kinds = [name for name, given in (("--layout", layout), ("--csv", as_csv), ("--mlflow", store)) if given]
    of_skill = [name for name, given in (("--strip-markers", strip_markers), ("--force", force)) if given]
    _check_kinds(kinds, of_skill, place, table)
    if layout is not None and place is not None:
        return _layout(session, revision, place, form)
    if as_csv:
        return _csv(session, revision, place, table, form)
    if store is not None:
        return _mlflow(session, revision, store, form)
    if place is None and form is Form.JSON and not of_skill:
        return _document(session, revision)
    if place is None:
        raise click.UsageError("say where to write: --to DIR, FILE.zip or FILE.skill", click.get_current_context())
    return _skill(session, revision, place, form, strip_markers=strip_markers, force=force)


def _check_kinds(kinds: list[str], of_skill: list[str], place: str | None, table: str | None) -> None:
    """Refuse options that do not belong together."""
    told = ""
    if len(kinds) > 1:
        told = f"{' and '.join(kinds)} write different things; give one of them"
    elif kinds and of_skill:
        told = f"{of_skill[0]} is for skills, and {kinds[0]} writes a run"
    elif table is not None and kinds != ["--csv"]:
        told = "--table chooses a table of --csv"
    elif kinds == ["--layout"] and place is None:
        told = "say where to write: --to DIR"
    elif kinds == ["--mlflow"] and place is not None:
        told = "--mlflow names the store itself, without --to"
    elif kinds == ["--csv"] and place is None and table is None:
        told = f"stdout takes one table: --table {'|'.join(_TABLES)}, or --to DIR for all"
    if told:
        raise click.UsageError(told, click.get_current_context())


def _layout(session: Session, revision: str, place: str, form: Form) -> None:
    from skillgit.app.export.skillopt import export_layout  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exported_data import layout_written  # noqa: PLC0415 - see the package

    result = export_layout(session.context, revision, place)
    if form is Form.JSON:
        session.output.document("export-layout/1", result)
        return
    session.output.text(layout_written(result, session.screen))
    for sentence in result.remarks:
        session.diagnostics.note(sentence)


def _csv(session: Session, revision: str, place: str | None, table: str | None, form: Form) -> None:
    from skillgit.app.export.csv_files import export_tables, table_text  # noqa: PLC0415 - see the package
    from skillgit.app.export.tables import run_data  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exported_data import tables_written  # noqa: PLC0415 - see the package

    data = run_data(session.context, revision)
    if place is None and table is not None:
        session.output.raw(table_text(data, table).encode("utf-8", "replace"))
        return
    result = export_tables(session.context, data, place or "", table)
    if form is Form.JSON:
        session.output.document("export-csv/1", result)
    else:
        session.output.text(tables_written(result, session.screen))


def _mlflow(session: Session, revision: str, store: str, form: Form) -> None:
    from skillgit.app.export.mlflow import export_mlflow  # noqa: PLC0415 - see the package
    from skillgit.cli.render.exported_data import store_written  # noqa: PLC0415 - see the package

    result = export_mlflow(session.context, revision, store)
    if form is Form.JSON:
        session.output.document("export-mlflow/1", result)
    else:
        session.output.text(store_written(result, session.screen))


def _document(session: Session, revision: str) -> None:
    from skillgit.app.export.tables import run_data  # noqa: PLC0415 - see the package

    session.output.document("run-export/1", run_data(session.context, revision))


def _skill(session: Session, revision: str, place: str, form: Form, *, strip_markers: bool, force: bool) -> None:
    from skillgit.app.export.folder import FolderRequest, export_skill  # noqa: PLC0415 - see the package
    from skillgit.app.folders.changes import DiffersError  # noqa: PLC0415 - see the package
    from skillgit.cli.render.deployed import exported, would_change  # noqa: PLC0415 - see the package

    request = FolderRequest(revision=revision, place=place, strip_markers=strip_markers, force=force)
    try:
        result = export_skill(session.context, request)
    except DiffersError as error:
        for line in would_change(error.changes):
            session.diagnostics.note(line)
        raise
    if form is Form.JSON:
        session.output.document("export/1", result)
        return
    session.output.text(exported(result))
    if result.misnamed:
        session.diagnostics.note(f"agents look for this skill in a folder called {result.skill}")
