"""Commands that put a skill where it is used."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_revisions, document_form, list_forms, verb
from skillgit.cli.output import Form
from skillgit.cli.session import may_replace
from skillgit.view.items import name
from skillgit.view.numbers import plural, short

if TYPE_CHECKING:
    from skillgit.app.deliver.checkout import CheckedOut
    from skillgit.app.deliver.install import Scope
    from skillgit.cli.session import CommandSession


@verb("checkout")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.argument("paths", nargs=-1, metavar="[-- PATH...]", type=click.Path())
@document_form
@click.pass_obj
def checkout_command(session: CommandSession, revision: str, paths: tuple[str, ...], form: Form) -> None:
    """Put a version in the work tree.

    HEAD is detached, as with git; where REV is a branch, like main, it goes to that branch. With PATH only these files
    are written and HEAD stays. Nothing that you changed is overwritten.
    """
    from skillgit.app.deliver.checkout import checkout  # noqa: PLC0415 - see the package

    result = checkout(session.context, revision, paths)
    if form is Form.JSON:
        session.output.document("checkout/1", result)
    else:
        session.output.text([_line(result, whole=not paths)])


def _line(result: CheckedOut, *, whole: bool) -> str:
    version = f"{name(result.row)} of {result.row.run}" if result.row else short(result.commit)
    files = f"{plural(len(result.files), 'file')} written"
    if not whole:
        return f"{files} from {version}; see: git diff"
    state = f"is on branch {result.branch}" if result.branch else f"holds {version}"
    back = f"; back: git switch {quote(result.back)}" if result.back else ""
    return f"work tree {state}, {files}{back}"


AGENTS, SCOPES = ("claude", "codex", "copilot"), ("user", "project")
COLUMNS = ("place", "skill", "name", "state", "newer", "time", "commit")


_TO = click.option("--to", metavar=f"{'|'.join(AGENTS)}|DIR", help="The agent, or its folder of skills")
_SCOPE = click.option(
    "--scope", type=click.Choice(SCOPES), help="For everything you do, the default, or for this project only"
)
_DRY_RUN = click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and do nothing")
_YES = click.option("-y", "--yes", is_flag=True, help="Replace also what someone changed by hand")


@verb("install")
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_revisions)
@_TO
@_SCOPE
@click.option("--list", "listing", is_flag=True, help="List what was installed, and what happened to it")
@_DRY_RUN
@_YES
@list_forms
@click.pass_obj
def install_command(
    session: CommandSession,
    *,
    revision: str | None,
    to: str | None,
    scope: str | None,
    listing: bool,
    dry_run: bool,
    yes: bool,
    form: Form,
) -> None:
    """Put the skill of a version where an agent looks for it.

    What stood there is kept outside of the skill's folder, and skillgit uninstall brings it back as it was. What
    someone changed by hand is replaced only after its differences were shown: a terminal asks, a pipe needs --yes.

    The user's skills lie in ~/.claude/skills, ~/.agents/skills (codex) and ~/.copilot/skills; those of a project in
    .claude/skills, .agents/skills and .github/skills of this repository.
    """
    _check(revision, to, listing=listing, form=form)
    if listing:
        return _list(session, form)
    from skillgit.app.deliver.install import InstallRequest, install  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import differences, installed  # noqa: PLC0415 - see the package

    request = InstallRequest(revision=revision or "", to=to or "", scope=_scope(scope), dry_run=dry_run)
    result = install(session.context, request, may_replace(session, yes=yes))
    if form is Form.JSON:
        return session.output.document("adopt/1", result)
    session.output.text(installed(result))
    if dry_run:
        session.output.text(differences(result.changes, session.screen))
    return None


def _check(revision: str | None, to: str | None, *, listing: bool, form: Form) -> None:
    context = click.get_current_context()
    if listing == (revision is not None):
        raise click.UsageError("give either REV or --list", context)
    if revision is not None and to is None:
        raise click.UsageError(f"say where to: --to {', '.join(AGENTS)} or a folder of skills", context)
    if form not in {Form.TEXT, Form.JSON} and not listing:
        raise click.UsageError(f"--{form.value} goes with --list", context)


@verb("uninstall")
@click.argument("skill", required=False)
@_TO
@_SCOPE
@_DRY_RUN
@_YES
@document_form
@click.pass_obj
def uninstall_command(
    session: CommandSession,
    *,
    skill: str | None,
    to: str | None,
    scope: str | None,
    dry_run: bool,
    yes: bool,
    form: Form,
) -> None:
    """Bring back what an installed skill took the place of.

    That is what stood there before the last version was installed, or nothing. SKILL and --to say which one is meant
    where several are installed.
    """
    from skillgit.app.deliver.install import UninstallRequest, uninstall  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import differences, uninstalled  # noqa: PLC0415 - see the package

    request = UninstallRequest(to=to, scope=_scope(scope), skill=skill, dry_run=dry_run)
    result = uninstall(session.context, request, may_replace(session, yes=yes))
    if form is Form.JSON:
        session.output.document("adopt-undo/1", result)
        return
    session.output.text(uninstalled(result))
    if dry_run:
        session.output.text(differences(result.changes, session.screen))


def _list(session: CommandSession, form: Form) -> None:
    from skillgit.app.deliver.install import list_installed  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import listed  # noqa: PLC0415 - see the package

    rows = list_installed(session.context)
    if form is Form.TEXT:
        session.output.text(listed(rows))
    else:
        session.output.listing(form, rows, schema="adopted/1", name="places", columns=COLUMNS)


def _scope(text: str | None) -> Scope | None:
    from skillgit.app.deliver.install import Scope  # noqa: PLC0415 - see the package

    return None if text is None else Scope(text)


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
def export_command(
    session: CommandSession,
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
    kinds = [name for name, value in (("--layout", layout), ("--csv", as_csv), ("--mlflow", store)) if value]
    of_skill = [name for name, value in (("--strip-markers", strip_markers), ("--force", force)) if value]
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


def _check_kinds(kinds: list[str], of_skill: list[str], path: str | None, table: str | None) -> None:
    problem = ""
    if len(kinds) > 1:
        problem = f"{' and '.join(kinds)} write different things; give one of them"
    elif kinds and of_skill:
        problem = f"{of_skill[0]} is for skills, and {kinds[0]} writes a run"
    elif table is not None and kinds != ["--csv"]:
        problem = "--table chooses a table of --csv"
    elif kinds == ["--layout"] and path is None:
        problem = "say where to write: --to DIR"
    elif kinds == ["--mlflow"] and path is not None:
        problem = "--mlflow names the store itself, without --to"
    elif kinds == ["--csv"] and path is None and table is None:
        problem = f"stdout takes one table: --table {'|'.join(_TABLES)}, or --to DIR for all"
    if problem:
        raise click.UsageError(problem, click.get_current_context())


def _layout(session: CommandSession, revision: str, path: str, form: Form) -> None:
    from skillgit.app.deliver.export.skillopt import export_layout  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import layout_written  # noqa: PLC0415 - see the package

    result = export_layout(session.context, revision, path)
    if form is Form.JSON:
        session.output.document("export-layout/1", result)
        return
    session.output.text(layout_written(result, session.screen))
    for sentence in result.remarks:
        session.diagnostics.note(sentence)


def _csv(session: CommandSession, revision: str, path: str | None, table: str | None, form: Form) -> None:
    from skillgit.app.deliver.export.tables import (  # noqa: PLC0415 - see the package
        export_tables,
        run_data,
        table_text,
    )
    from skillgit.view.deliveries import tables_written  # noqa: PLC0415 - see the package

    data = run_data(session.context, revision)
    if path is None and table is not None:
        session.output.raw(table_text(data, table).encode("utf-8", "replace"))
        return
    result = export_tables(session.context, data, path or "", table)
    if form is Form.JSON:
        session.output.document("export-csv/1", result)
    else:
        session.output.text(tables_written(result, session.screen))


def _mlflow(session: CommandSession, revision: str, store: str, form: Form) -> None:
    from skillgit.app.deliver.export.mlflow import export_mlflow  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import store_written  # noqa: PLC0415 - see the package

    result = export_mlflow(session.context, revision, store)
    if form is Form.JSON:
        session.output.document("export-mlflow/1", result)
    else:
        session.output.text(store_written(result, session.screen))


def _document(session: CommandSession, revision: str) -> None:
    from skillgit.app.deliver.export.tables import run_data  # noqa: PLC0415 - see the package

    session.output.document("run-export/1", run_data(session.context, revision))


def _skill(session: CommandSession, revision: str, path: str, form: Form, *, strip_markers: bool, force: bool) -> None:
    from skillgit.app.deliver.export.folder import FolderRequest, export_skill  # noqa: PLC0415 - see the package
    from skillgit.app.skill_format.folder_contents import DiffersError  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import exported, would_change  # noqa: PLC0415 - see the package

    request = FolderRequest(revision=revision, place=path, strip_markers=strip_markers, force=force)
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
