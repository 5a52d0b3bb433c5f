"""Skills and runs where they are used: in the work tree, with an agent, and elsewhere without git."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

from skillgit.app.deliver.requests import ExportKind, ExportRequest, InstallRequest, RunTable, UninstallRequest
from skillgit.app.workspace.request import Arg, MisuseError, OfSkill, given, option_of, refuse_together
from skillgit.domain import skill as skills
from skillgit.errors import ExitCode, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import DOCUMENT, LIST, Answer, Effect, Form, TerminalSession, Verb, VerbSession
from skillgit.view.gate import following
from skillgit.view.numbers import plural, short
from skillgit.view.text import one_line

with loaded_on_use():
    from skillgit.app.deliver import install as installing
    from skillgit.app.deliver import installed, plugin, served
    from skillgit.app.deliver.export import atif, folder, inspect_log, mlflow, skillopt, tables
    from skillgit.app.skill_format import folder_contents
    from skillgit.view import deliveries

if TYPE_CHECKING:
    from skillgit.app.skill_format.folder_contents import FileChange
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, kw_only=True)
class CheckoutRequest(OfSkill):
    """HEAD is detached, as with git; where REV is a branch, like main, it goes to that branch. With PATH only these
    files are written and HEAD stays. Nothing that you changed is overwritten.
    """

    revision: Annotated[str, Arg("REV", words="revisions")]
    paths: Annotated[tuple[str, ...], Arg("[-- PATH...]")] = ()


def _checkout(session: VerbSession, request: CheckoutRequest) -> Answer[object]:
    result = folder.checkout(session.context, request.revision, request.paths)
    version, files = _version(result.row, result.commit), f"{plural(len(result.files), 'file')} written"
    state = f"is on branch {result.branch}" if result.branch else f"holds {version}"
    back = f"; back: git switch {quote(result.back)}" if result.back else ""
    whole = f"work tree {state}, {files}{back}"
    return Answer("checkout/1", result, [f"{files} from {version}; see: git diff" if request.paths else whole])


def _version(row: LogRow | None, commit: str) -> str:
    return f"{row.label} of {row.run}" if row is not None else short(commit)


CHECKOUT = Verb("checkout", CheckoutRequest, _checkout, Effect.FILES, warning="It changes files in the work tree.")

_WARNING: Final = "It writes files where an agent looks for skills."


def _install(session: TerminalSession, request: InstallRequest) -> Answer[object]:
    if request.listing:
        refuse_together(request, "listing", "to")
        rows = installed.list_installed(session.workspace, request.words)
        is_ours = all(row.name for row in rows) or not request.words
        return Answer(table=deliveries.INSTALLED, rows=rows, exit_code=ExitCode.OK if is_ours else ExitCode.NO)
    if session.form not in {Form.TEXT, Form.JSON}:
        raise MisuseError("--plain needs --list")
    if len(request.words) != 1:
        raise MisuseError("give either one REV or --list")
    if request.to is None:
        raise MisuseError("--to is missing: claude, codex, copilot or a folder of skills")
    result = installing.install(session.context, request, _may_replace(session, yes=request.yes))
    changes = deliveries.differences(result.changes, session.screen) if request.dry_run else ()
    return Answer("adopt/1", result, chain(deliveries.installed(result), changes))


INSTALL = Verb(
    "install",
    InstallRequest,
    _install,
    lambda request: Effect.READS if request.listing else Effect.FILES,
    LIST,
    warning=_WARNING,
)


def _uninstall(session: TerminalSession, request: UninstallRequest) -> Answer[object]:
    result = installing.uninstall(session.context, request, _may_replace(session, yes=request.yes))
    changes = deliveries.differences(result.changes, session.screen) if request.dry_run else ()
    return Answer("adopt-undo/1", result, chain(deliveries.uninstalled(result), changes))


UNINSTALL = Verb("uninstall", UninstallRequest, _uninstall, Effect.FILES, warning=_WARNING)


def _may_replace(session: TerminalSession, *, yes: bool) -> Callable[[Path, tuple[FileChange, ...]], bool]:
    """Return who shows manual changes and decides whether they may be replaced."""

    def agrees(path: Path, changes: tuple[FileChange, ...]) -> bool:
        session.note(*deliveries.differences(changes, session.notes_screen))
        if yes or not session.answers:
            return yes
        return session.confirm(f"{one_line(str(path))} was changed by hand. Replace it?")

    return agrees


_OF_KIND = {
    ExportKind.SKILL: {"strip_markers", "force"},
    ExportKind.PLUGIN: {"name", "evals", "check"},
    ExportKind.CSV: {"table"},
}
"""What is an option of one kind only."""


def _export(session: VerbSession, request: ExportRequest) -> Answer[object]:
    for parameter in given(request):
        owner = next((kind for kind, names in _OF_KIND.items() if parameter.name in names), request.kind)
        if owner is not request.kind:
            raise MisuseError(f"{option_of(parameter)} needs --as {owner}")
    *revisions, path = request.words if len(request.words) > 1 else (*request.words, "")
    if not revisions or (len(revisions) > 1 and request.kind is not ExportKind.PLUGIN):
        raise MisuseError("give one REV, and where to write: skillgit export REV DIR")
    revision = revisions[0]
    if not path and request.kind is ExportKind.SKILL and session.form is Form.JSON and not request.force:
        return Answer("run-export/1", tables.run_data(session.workspace, revision))
    if not path and request.kind is ExportKind.CSV and request.table and session.form is Form.TEXT:
        data = tables.run_data(session.workspace, revision)
        return Answer(lines=[tables.table_text(data, request.table).encode("utf-8", "replace")])
    if not path:
        one_table = f", or --table {'|'.join(RunTable)}" if request.kind is ExportKind.CSV else ""
        raise MisuseError(f"say where to write: skillgit export {revision} DIR{one_table}")
    match request.kind:
        case ExportKind.SKILL:
            return _skill(session, request, path)
        case ExportKind.PLUGIN:
            return _plugin(session, request, revisions, path)
        case ExportKind.WELL_KNOWN:
            skills_index = folder.export_well_known(session.workspace, revision, path)
            names, files = ", ".join(skills_index.skills), plural(skills_index.files, "file")
            return Answer(
                "export-well-known/1", skills_index, [f"{one_line(skills_index.folder)} holds {names}, {files}"]
            )
        case ExportKind.ATIF:
            recorded = atif.export_atif(session.workspace, revision, path)
            numbers = plural(recorded.trajectories, "trajectory", "trajectories")
            return Answer("export-atif/1", recorded, _written(session, recorded.event, recorded.place, numbers))
        case ExportKind.INSPECT:
            logs = inspect_log.export_inspect(session.workspace, revision, path)
            sizes = (plural(logs.logs, "log"), plural(logs.samples, "sample"))
            lines = [*_written(session, logs.event, logs.place, *sizes)]
            command = f"inspect view --log-dir {quote(logs.place)}"
            return Answer("export-inspect/1", logs, [*lines, following((command,), session.screen)])
        case ExportKind.SKILLOPT:
            layout = skillopt.export_layout(session.workspace, revision, path)
            notes = () if session.form is Form.JSON else [(remark, "") for remark in layout.remarks]
            counts = (plural(layout.steps, "step"), plural(layout.files, "file"))
            return Answer("export-layout/1", layout, _written(session, layout.run, layout.place, *counts), notes=notes)
        case ExportKind.CSV:
            data = tables.run_data(session.workspace, revision)
            table_counts = tables.export_tables(session.context, data, path, request.table)
            rows = (plural(count, name.removesuffix("s")) for name, count in table_counts.rows.items())
            return Answer("export-csv/1", table_counts, _written(session, data.run, table_counts.place, *rows))
        case ExportKind.MLFLOW:
            store = mlflow.export_mlflow(session.workspace, revision, path)
            parts = (f"experiment {store.experiment}", f"run {store.run_id}", plural(store.metrics, "metric"))
            command = f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {store.place}"
            lines = [*_written(session, store.run, store.place, *parts), following((command,), session.screen)]
            return Answer("export-mlflow/1", store, lines)


def _skill_at(session: VerbSession, request: ExportRequest) -> Answer[skills.Skill]:
    return Answer(result=folder.skill_of(session.workspace, request.words[0]))


def _archive(session: VerbSession, request: ExportRequest) -> Answer[bytes]:
    revision, name = request.words
    if not name.endswith(folder.ENDINGS):
        raise UsageError(f"archives end in {' or '.join(folder.ENDINGS)}", hint="as=skill")
    return Answer(result=folder.archive(folder.skill_of(session.workspace, revision)))


def _served_skills(session: VerbSession, _: ExportRequest) -> Answer[tuple[served.ServedSkill, ...]]:
    return Answer(result=served.served_skills(session.workspace))


def _served_file(session: VerbSession, request: ExportRequest) -> Answer[served.ServedSkill]:
    return Answer(result=served.served_file(session.workspace, request.words[0]))


def _written(session: VerbSession, run: str, path: str, *parts: str) -> list[str]:
    return [session.screen.dotted((f"wrote {run} to {path}", *parts))]


def _skill(session: VerbSession, request: ExportRequest, path: str) -> Answer[object]:
    try:
        result = folder.export_skill(
            session.workspace, request.words[0], path, strip_markers=request.strip_markers, force=request.force
        )
    except folder_contents.DiffersError as error:
        session.note(*deliveries.would_change(error.changes))
        raise
    name = f"agents look for this skill in a folder called {result.skill}"
    notes = [(name, "")] if result.misnamed and session.form is not Form.JSON else ()
    files = " already" if result.held else f", {plural(len(result.files), 'file')}"
    line = f"{one_line(result.place)} holds {_version(result.row, result.commit)}{files}"
    return Answer("export/1", result, [line], notes=notes)


def _plugin(session: VerbSession, request: ExportRequest, revisions: Sequence[str], path: str) -> Answer[object]:
    result = plugin.build_plugin(
        session.workspace, revisions, path, name=request.name, evals=request.evals, check=request.check
    )
    unaccepted = (skill for skill in result.skills if skill.version is None)
    return Answer(
        "plugin-build/1",
        result,
        deliveries.plugin_built(result, session.screen),
        exit_code=ExitCode.NO if result.state == "differs" else ExitCode.OK,
        notes=[
            *((f"{skill.commit[:7]} is not a version that a training accepted", "") for skill in unaccepted),
            *((f"left out {task.id}: {task.reason}", "") for task in result.left_out),
        ],
    )


EXPORT = Verb(
    "export",
    ExportRequest,
    _export,
    lambda request: Effect.READS if request.check or len(request.words) < 2 else Effect.FILES,  # noqa: PLR2004
    DOCUMENT,
)
EXPORTED_SKILL = Verb("export", ExportRequest, _skill_at)
"""The skill of a version, with all its files."""
ARCHIVE = Verb("export", ExportRequest, _archive)
"""The archive that a version is exported as under a name, which ends as archives do."""
SERVED_SKILLS = Verb("export", ExportRequest, _served_skills)
"""The skills that a server serves by default."""
SERVED_FILE = Verb("export", ExportRequest, _served_file)
"""A file of a skill, by its address below ``skill://``."""
