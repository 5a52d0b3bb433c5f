"""``skillgit tasks``: files of tasks, drafts of models, and their review."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillgit.cli.options import (
    Verb,
    complete_configs,
    document_form,
    flag,
    option,
    override_option,
    show_plan,
    spending_options,
    verbs,
)
from skillgit.errors import ExitCode
from skillgit.view import tasks as render
from skillgit.view.numbers import plural

if TYPE_CHECKING:
    from skillgit.cli.session import CommandSession
    from skillgit.domain.cost import Caps


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


@tasks_command.command(cls=Verb, name="harvest", short_help="Draft tasks from sessions with coding agents")
@option("--skill", "Look for requests that skill NAME was used for, or was of no use to", required=True, metavar="NAME")
@option(
    "--from source",
    "Read the sessions of claude, codex, opencode or copilot, or those in a file or folder; all four if not given",
    default="",
    metavar="AGENT|PATH",
)
@option("--since", "Leave out what is older: a date, or an age like 7d", default="", metavar="DATE")
@option(
    "--project projects",
    "Read sessions in folder DIR; the work tree if not given; repeat it for more",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
)
@flag("--all-projects", "Read sessions in whichever folder")
@flag("--rubric", "Have the judge's model write what a draft is graded by, where no command does it")
@option(
    "--config",
    "Take the model of the judge from CONFIG; tasks/default unless you say",
    default="tasks/default",
    metavar="CONFIG",
    shell_complete=complete_configs,
)
@override_option
@spending_options
@document_form
@click.pass_obj
def harvest_command(session: CommandSession, /, **fields: Any) -> ExitCode:  # noqa: ANN401 - the options of a request
    """Draft tasks from the sessions that you had with coding agents.

    Session files are read, never changed, and nothing is sent anywhere without --rubric. Requests of sub-agents, of
    headless runs and of programs are left out. What is drafted stays in the private folder of the repository, without
    credentials, names and addresses as far as they can be told, until you review it.
    """
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.app.sources.harvest import HarvestRequest, harvest  # noqa: PLC0415 - see the package

    result = harvest(session.context, HarvestRequest(**fields))
    if isinstance(result, Plan):
        return show_plan(session, result)
    session.diagnostics.note(*result.remarks)
    session.show("tasks-harvest/1", result, render.harvested(result, session.screen))
    return ExitCode.OK
