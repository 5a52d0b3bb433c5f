"""Commands that put a skill where it is used."""

from __future__ import annotations

from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import (
    ClickVerb,
    complete_revisions,
    document_form,
    flag,
    list_forms,
    option,
    skill_option,
    verb,
    verbs,
)
from skillgit.cli.session import CommandSession, may_replace
from skillgit.errors import ExitCode
from skillgit.verbs.verb import Form
from skillgit.view.items import name
from skillgit.view.numbers import plural, short

if TYPE_CHECKING:
    from skillgit.app.deliver.export.folder import CheckedOut
    from skillgit.app.deliver.install import Scope


@verb("checkout")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@click.argument("paths", nargs=-1, metavar="[-- PATH...]", type=click.Path())
@skill_option
@document_form
@click.pass_obj
def checkout_command(session: CommandSession, revision: str, paths: tuple[str, ...]) -> None:
    """Put a version in the work tree.

    HEAD is detached, as with git; where REV is a branch, like main, it goes to that branch. With PATH only these files
    are written and HEAD stays. Nothing that you changed is overwritten.
    """
    from skillgit.app.deliver.export.folder import checkout  # noqa: PLC0415 - see the package

    result = checkout(session.context, revision, paths)
    session.show("checkout/1", result, [_line(result, whole=not paths)])


def _line(result: CheckedOut, *, whole: bool) -> str:
    version = f"{name(result.row)} of {result.row.run}" if result.row else short(result.commit)
    files = f"{plural(len(result.files), 'file')} written"
    if not whole:
        return f"{files} from {version}; see: git diff"
    state = f"is on branch {result.branch}" if result.branch else f"holds {version}"
    back = f"; back: git switch {quote(result.back)}" if result.back else ""
    return f"work tree {state}, {files}{back}"


SCOPES = ("user", "project")
AGENTS = (
    "claude",
    "codex",
    "copilot",
    "amp",
    "cursor",
    "gemini",
    "goose",
    "kiro",
    "opencode",
    "qwen",
    "roo",
    "windsurf",
)
_TO = option("--to", f"The agent, or its folder of skills; agents are {', '.join(AGENTS)}", metavar="AGENT|DIR")
_SCOPE = option("--scope", "For everything you do, the default, or for this project only", type=click.Choice(SCOPES))
_DRY_RUN = flag("-n --dry-run", "Say what would be done, and do nothing")
_YES = flag("-y --yes", "Replace also what someone changed by hand")


@verb("install")
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_revisions)
@_TO
@_SCOPE
@flag("--list listing", "List what was installed, and what happened to it")
@_DRY_RUN
@_YES
@skill_option
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
) -> None:
    """Put the skill of a version where an agent looks for it.

    What stood there is kept outside of the skill's folder, and skillgit uninstall brings it back as it was. What
    someone changed by hand is replaced only after its differences were shown: a terminal asks, a pipe needs --yes.

    The user's skills are in ~/.claude/skills, ~/.agents/skills (codex) and ~/.copilot/skills; those of a project are
    in .claude/skills, .agents/skills and .github/skills of this repository. docs/deploying.md lists the folders of
    all agents.
    """
    context = click.get_current_context()
    if listing == (revision is not None):
        raise click.UsageError("give either REV or --list", context)
    if revision is not None and to is None:
        raise click.UsageError(f"say where to: --to {', '.join(AGENTS[:3])} or a folder of skills", context)
    session.refuse_rows(listing=listing)
    if listing:
        from skillgit.app.deliver.install import list_installed  # noqa: PLC0415 - see the package
        from skillgit.view.deliveries import INSTALLED  # noqa: PLC0415 - see the package

        return session.listing(INSTALLED, list_installed(session.context))
    from skillgit.app.deliver.install import InstallRequest, install  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import differences, installed  # noqa: PLC0415 - see the package

    request = InstallRequest(revision=revision or "", to=to or "", scope=_scope(scope), dry_run=dry_run)
    result = install(session.context, request, may_replace(session, yes=yes))
    changes = differences(result.changes, session.screen) if dry_run else ()
    return session.show("adopt/1", result, chain(installed(result), changes))


@verb("whence")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path())
@list_forms
@click.pass_obj
def whence_command(session: CommandSession, paths: tuple[str, ...]) -> ExitCode:
    """Name the version that an installed skill is.

    PATH is a skill's folder, or a folder of them; without it all that skillgit install put somewhere. The folder's own
    tree is looked for among versions and releases, also without what gh skill adds to metadata; where someone changed
    it, the record of skillgit, metadata.github-tree-sha and the lock files of installers say what it was. Exits with 1
    if a skill is none of this repository's.
    """
    from skillgit.app.deliver.whence import whence  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import ORIGINS  # noqa: PLC0415 - as above

    rows = whence(session.context, paths)
    session.listing(ORIGINS, rows)
    return ExitCode.OK if all(row.version for row in rows) else ExitCode.NO


@verb("uninstall")
@click.argument("skill", required=False)
@_TO
@_SCOPE
@_DRY_RUN
@_YES
@document_form
@click.pass_obj
def uninstall_command(
    session: CommandSession, *, skill: str | None, to: str | None, scope: str | None, dry_run: bool, yes: bool
) -> None:
    """Bring back what an installed skill took the place of.

    That is what stood there before the last version was installed, or nothing. SKILL and --to say which one is meant
    where several are installed.
    """
    from skillgit.app.deliver.install import UninstallRequest, uninstall  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import differences, uninstalled  # noqa: PLC0415 - see the package

    request = UninstallRequest(to=to, scope=_scope(scope), skill=skill, dry_run=dry_run)
    result = uninstall(session.context, request, may_replace(session, yes=yes))
    changes = differences(result.changes, session.screen) if dry_run else ()
    session.show("adopt-undo/1", result, chain(uninstalled(result), changes))


def _scope(text: str | None) -> Scope | None:
    from skillgit.app.deliver.install import Scope  # noqa: PLC0415 - see the package

    return None if text is None else Scope(text)


_TABLES = ("events", "versions", "items", "edits")


@verb("export")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@option("--to place", "Where to write: a folder, or FILE.zip or FILE.skill", metavar="DIR|FILE")
@option(
    "--layout",
    "Write the run as an output directory of SkillOpt, or the skills of REV for a web space, below .well-known",
    type=click.Choice(["skillopt", "well-known"]),
)
@flag("--csv as_csv", "Write the run's tables as CSV: to the folder DIR, or one to stdout")
@option("--table", "Which table of --csv; without --to it goes to stdout", type=click.Choice(_TABLES))
@option("--mlflow store", "Add the run to the MLflow file store DIR, such as mlruns", metavar="DIR")
@flag("--strip-markers", "Leave out the markers of the regions, not what is in them")
@flag("--force", "Replace a skill or an archive that is there already")
@skill_option
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
    if layout == "well-known" and place is not None:
        from skillgit.app.deliver.export.folder import export_well_known  # noqa: PLC0415 - see the package
        from skillgit.view.deliveries import published  # noqa: PLC0415 - as above

        result = export_well_known(session.context, revision, place)
        return session.show("export-well-known/1", result, published(result))
    if layout is not None and place is not None:
        return _layout(session, revision, place)
    if as_csv:
        return _csv(session, revision, place, table)
    if store is not None:
        return _mlflow(session, revision, store)
    if place is None and session.form is Form.JSON and not of_skill:
        from skillgit.app.deliver.export.tables import run_data  # noqa: PLC0415 - see the package

        return session.output.document("run-export/1", run_data(session.context, revision))
    if place is None:
        raise click.UsageError("say where to write: --to DIR, FILE.zip or FILE.skill", click.get_current_context())
    return _skill(session, revision, place, strip_markers=strip_markers, force=force)


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


def _layout(session: CommandSession, revision: str, path: str) -> None:
    from skillgit.app.deliver.export.skillopt import export_layout  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import layout_written  # noqa: PLC0415 - see the package

    result = export_layout(session.context, revision, path)
    session.show("export-layout/1", result, layout_written(result, session.screen))
    if session.form is not Form.JSON:
        session.diagnostics.note(*result.remarks)


def _csv(session: CommandSession, revision: str, path: str | None, table: str | None) -> None:
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
    session.show("export-csv/1", result, tables_written(result, session.screen))


def _mlflow(session: CommandSession, revision: str, store: str) -> None:
    from skillgit.app.deliver.export.mlflow import export_mlflow  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import store_written  # noqa: PLC0415 - see the package

    result = export_mlflow(session.context, revision, store)
    session.show("export-mlflow/1", result, store_written(result, session.screen))


def _skill(session: CommandSession, revision: str, path: str, *, strip_markers: bool, force: bool) -> None:
    from skillgit.app.deliver.export.folder import FolderRequest, export_skill  # noqa: PLC0415 - see the package
    from skillgit.app.skill_format.folder_contents import DiffersError  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import exported, would_change  # noqa: PLC0415 - see the package

    request = FolderRequest(revision=revision, place=path, strip_markers=strip_markers, force=force)
    try:
        result = export_skill(session.context, request)
    except DiffersError as error:
        session.diagnostics.note(*would_change(error.changes))
        raise
    session.show("export/1", result, exported(result))
    if result.misnamed and session.form is not Form.JSON:
        session.diagnostics.note(f"agents look for this skill in a folder called {result.skill}")


@verbs("plugin")
def plugin_command() -> None:
    """Build a plug-in of skills, which Claude Code and Codex take."""


@plugin_command.command(
    cls=ClickVerb, name="build", short_help="Write versions of skills and their history's tools to DIR"
)
@click.argument("directory", metavar="[DIR]", default="plugin", type=click.Path())
@option(
    "--skill skills",
    "Take the best version of skill NAME, or a REV; repeat it for more",
    multiple=True,
    metavar="NAME|REV",
    shell_complete=complete_revisions,
)
@option("--name", "The name of the plug-in; that of the skill unless you say", metavar="NAME", default="")
@option("--evals", "Write the tasks in FILE as cases of claude plugin eval", metavar="FILE", default="")
@flag("--check", "Write nothing; exit with 1 if DIR is not what would be built")
@document_form
@click.pass_obj
def build_command(
    session: CommandSession, *, directory: str, skills: tuple[str, ...], name: str, evals: str, check: bool
) -> ExitCode:
    """Write versions of skills as a plug-in for Claude Code and Codex to DIR, with commands that ask their history.

    DIR becomes a catalogue with the plug-in in a folder below. Without --skill it holds the best version of the default
    run. The same content gives the same bytes and another content another version. Nothing is installed, and a
    folder that was made or changed by someone else is left alone.
    """
    from skillgit.app.deliver.plugin import PluginRequest, build_plugin  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import plugin_built  # noqa: PLC0415 - see the package

    request = PluginRequest(folder=directory, skills=skills, name=name, evals=evals, check=check)
    result = build_plugin(session.context, request)
    session.show("plugin-build/1", result, plugin_built(result, session.screen))
    session.diagnostics.note(*(f"left out {task.id}: {task.reason}" for task in result.left_out))
    return ExitCode.NO if result.state == "differs" else ExitCode.OK
