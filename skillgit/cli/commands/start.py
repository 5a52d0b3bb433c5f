"""Commands that begin: a repository, imported runs, tasks and data."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillgit.cli.options import (
    Verb,
    complete_configs,
    complete_environments,
    document_form,
    flag,
    option,
    override_option,
    quiet_option,
    show_plan,
    spending_options,
    verb,
    verbs,
)
from skillgit.cli.output import Form
from skillgit.errors import ExitCode
from skillgit.view import setup as render
from skillgit.view.numbers import plural, short

if TYPE_CHECKING:
    from skillgit.cli.session import CommandSession
    from skillgit.domain.cost import Caps


@verb("init")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@option(
    "--skill",
    "Take the seed from a skill folder, a SKILL.md or a Markdown file",
    type=click.Path(path_type=Path),
    metavar="PATH",
)
@option(
    "--env environment",
    "Take the seed that environment NAME brings",
    metavar="NAME",
    shell_complete=complete_environments,
)
@document_form
@click.pass_obj
def init_command(session: CommandSession, directory: Path | None, skill: Path | None, environment: str | None) -> None:
    """Create a repository for skills, or prepare an existing one.

    The seed skill stands on branch main. Files of your own are left alone.
    """
    from skillgit.app.train.starting_point import init  # noqa: PLC0415 - see the package

    result = init(session.context, directory, skill, environment=environment)
    seed = f"{'seed' if result.added else 'skill there before'} {result.skill_path} on main"
    summary = session.screen.dotted(
        (f"{'created' if result.created else 'prepared'} {result.path}, {seed}", short(result.commit))
    )
    session.show("init/1", result, [summary, "next: skillgit train CONFIG"])


@verb("import")
@click.argument("outputs", metavar="OUTPUTS", type=click.Path(path_type=Path))
@option("--run", "What to call the run; by default, environment and date", metavar="NAME")
@flag("-n --dry-run", "Say what would be done, and do nothing")
@document_form
@click.pass_obj
def import_command(session: CommandSession, *, outputs: Path, run: str | None, dry_run: bool) -> None:
    """Turn the output directory of a SkillOpt run into a run.

    OUTPUTS holds config.json, history.json and skills/. Its steps become versions and rejected candidates, its slow
    updates merges, and its results evidence; times are those of its files. What it does not say stays absent, and what
    it says in two ways is told. A directory that was imported before only brings what is new in it.
    """
    from skillgit.app.sources.skillopt.outputs import import_outputs  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import lines  # noqa: PLC0415 - see the package

    result = import_outputs(session.context, outputs, run, dry_run=dry_run)
    session.show("import/1", result, lines(result, session.screen))
    if session.form is not Form.JSON:
        session.diagnostics.note(*result.remarks)


_FILE = click.argument("file", type=click.Path(path_type=Path))


@verbs("tasks")
def tasks_command() -> None:
    """Add to a file of tasks, or have tasks drafted.

    A file of tasks has one JSON object a line; the README of the environment tasks lists its fields. Train on it with
    skillgit train tasks/default -o env.data_path=FILE.
    """


@tasks_command.command(cls=Verb, name="add", short_help="Add a task to FILE after checking it")
@_FILE
@option("--prompt", "What to do; - reads it from stdin", required=True, metavar="TEXT")
@option("--answer answers", "An accepted answer; repeat it for more", multiple=True, metavar="TEXT")
@option("--check", 'A kind of check, or a check as JSON, like {"type": "regex", …}', metavar="CHECK")
@option("--rubric", "What a judge grades by", metavar="TEXT")
@option("--file files", "A file beside FILE that the task is about", multiple=True, metavar="PATH")
@option("--split", "train, selection or test; otherwise tasks are divided by ratio", metavar="NAME")
@option("--id identity", "A name; made from the content if there is none", metavar="ID")
@document_form
@click.pass_obj
def add_command(session: CommandSession, /, file: Path, **fields: Any) -> None:  # noqa: ANN401 - the options of a row
    """Add a task to FILE after checking it.

    FILE is made if it is missing. A task that is there already is refused.
    """
    from skillgit.app.sources.tasks import add  # noqa: PLC0415 - see the package

    result = add(session.context, file, _row(fields))
    session.show("tasks-add/1", result, [f"added {result.id} to {result.path.name}, {plural(result.count, 'task')}"])


def _row(fields: dict[str, Any]) -> dict[str, object]:
    prompt: str = fields["prompt"]
    row = {
        "id": fields["identity"],
        "prompt": sys.stdin.read() if prompt == "-" else prompt,
        "answers": [*fields["answers"]],
        "check": _check(fields["check"]),
        "rubric": fields["rubric"],
        "files": [*fields["files"]],
        "split": fields["split"],
    }
    return {name: value for name, value in row.items() if value}


def _check(text: str | None) -> object:
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--check is no JSON: {error}", click.get_current_context()) from error


@tasks_command.command(cls=Verb, name="draft", short_help="Have a model draft tasks for SKILL")
@click.argument("skill", type=click.Path(path_type=Path))
@option("--limit", "How many tasks to ask for", type=int, default=10, show_default=True, metavar="N")
@option("-f --file file", "Add the drafts to FILE", required=True, type=click.Path(path_type=Path), metavar="FILE")
@option(
    "--config",
    "Take the model of the optimizer from CONFIG; tasks/default unless you say",
    default="tasks/default",
    metavar="CONFIG",
    shell_complete=complete_configs,
)
@override_option
@spending_options
@document_form
@click.pass_obj
def draft_command(
    session: CommandSession,
    skill: Path,
    file: Path,
    *,
    limit: int,
    config: str,
    overrides: tuple[str, ...],
    caps: Caps,
    dry_run: bool,
) -> ExitCode:
    """Have the optimizer's model draft tasks for SKILL.

    Each is marked as a draft, and no run uses a file with drafts until they were reviewed.
    """
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.app.sources.tasks_draft import draft  # noqa: PLC0415 - see the package

    result = draft(
        session.context, skill, file, count=limit, config=config, overrides=overrides, caps=caps, dry_run=dry_run
    )
    if isinstance(result, Plan):
        return show_plan(session, result)
    session.diagnostics.note(*(f"left out: {reason}" for reason in result.refused))
    if result.removed:
        session.diagnostics.note(f"{result.removed} control or invisible characters were removed from the drafts")
    session.show("tasks-draft/1", result, render.drafted(result, session.screen))
    return ExitCode.OK


@tasks_command.command(cls=Verb, name="import", short_help="Add the eval cases of the plug-in DIR to FILE")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@option("-f --file file", "Add the tasks to FILE", required=True, type=click.Path(path_type=Path), metavar="FILE")
@document_form
@click.pass_obj
def import_tasks_command(session: CommandSession, directory: Path, file: Path) -> None:
    """Add the eval cases of the plug-in DIR, or of its folder of evals, to FILE.

    They are those that claude plugin eval runs. A case with a grader that no check equals becomes a draft. What asks
    whether a skill is loaded goes to a file beside FILE, whose name ends in -triggers.
    """
    from skillgit.app.sources.plugin_evals import import_evals  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import evals_imported  # noqa: PLC0415 - see the package

    result = import_evals(session.context, directory, file)
    session.show("tasks-import/1", result, evals_imported(result))


@tasks_command.command(cls=Verb, name="review", short_help="Show the drafts in FILE, or accept them")
@_FILE
@option("--accept", "Accept the draft ID, or all; repeat it for more", multiple=True, metavar="ID")
@document_form
@click.pass_obj
def review_command(session: CommandSession, file: Path, accept: tuple[str, ...]) -> None:
    """Show the drafts in FILE, or accept them."""
    from skillgit.app.sources.tasks import review  # noqa: PLC0415 - see the package

    result = review(session.context, file, accept)
    session.show("tasks-review/1", result, render.reviewed(result, session.screen))


@verbs("data")
def data_command() -> None:
    """Check the items of CONFIG, or fetch public ones."""


@data_command.command(
    cls=Verb, name="check", short_help="Load every item of CONFIG and look for what spoils a measurement"
)
@click.argument("config", shell_complete=complete_configs)
@override_option
@document_form
@click.pass_obj
def check_command(session: CommandSession, config: str, overrides: tuple[str, ...]) -> int:
    """Load every item of CONFIG and look for what spoils a measurement.

    It tells all faults of the files and not the first one only, ids and contents that repeat, items that are almost the
    same, answers of selection and test items in the seed skill or beside train items, and the gain that a split of such
    a size can show. No model is asked. Exits with 1 if there is a fault; warnings leave it at 0.
    """
    from skillgit.app.sources.data_check import check_data  # noqa: PLC0415 - see the package

    check = check_data(session.context, config, overrides)
    session.show("data-check/1", check, render.checked(check, session.screen))
    return int(check.exit_code)


@data_command.command(cls=Verb, name="fetch", short_help="Write the public data of environment NAME to a folder")
@click.argument("name", shell_complete=complete_environments)
@option("--to", "The new folder; data/NAME if not given", metavar="DIR", type=click.Path(path_type=Path))
@option(
    "--subset", "Fetch other data of NAME than its main ones; docs/data.md lists them", metavar="SUBSET", default=""
)
@option("--revision", "Take another commit of the public data than the pinned one", metavar="REV", default="")
@option(
    "--ids",
    "Take only the items of this manifest, divided as it says: a folder, or reference for the reference's own split",
    metavar="MANIFEST",
    default="",
)
@quiet_option
@document_form
@click.pass_obj
def fetch_command(
    session: CommandSession,
    /,
    *,
    name: str,
    to: Path | None,
    **selection: Any,  # noqa: ANN401 - options as click gives them
) -> None:
    """Write the public data of environment NAME to a folder.

    They are those of a pinned commit where one is known, so that everybody gets the same ones; SOURCE.md in the folder
    names it. Revision, size and licence are said before anything is fetched, and an interrupted fetch goes on where it
    stopped when you type the same command again. It needs a network and, for data on the Hugging Face hub, the extra
    'data' of skillgit. Where data cannot be fetched, it says what to place where. Exits with 2 without the extra, with
    3 if there is no such data or no access to them, and with 5 if the host cannot be reached.
    """
    from skillgit.app.sources.data_fetch import DataSelection, fetch  # noqa: PLC0415 - see the package
    from skillgit.cli.watchers import LiveFetchWatcher, watching  # noqa: PLC0415 - see the package

    listener = replace(session, quiet=session.quiet or session.form is Form.JSON)
    with watching(listener, LiveFetchWatcher) as watcher:
        dataset = fetch(
            session.context, name, DataSelection(**selection), to=to, remark=watcher.remark, watch=watcher.progress
        )
    session.show("data-fetch/1", dataset, render.fetched(dataset, session.screen))
