"""``skillgit tasks`` and what it does: ``add``, ``draft`` and ``review``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillgit.cli.measuring_options import show_plan, spending_options
from skillgit.cli.options import complete_configs, document_form, override_option
from skillgit.cli.output import Form
from skillgit.cli.render import tasks as render
from skillgit.cli.render.words import plural
from skillgit.cli.verb import Verb, verbs
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps

_FILE = click.argument("file", type=click.Path(path_type=Path))


@verbs("tasks")
def command() -> None:
    """Add to a file of tasks, or have tasks drafted.

    A file of tasks has one JSON object a line; the README of the environment tasks lists its fields. Train on it with
    skillgit train tasks/default -o env.data_path=FILE.
    """


@command.command(cls=Verb, name="add", short_help="Add a task to FILE after checking it")
@_FILE
@click.option("--prompt", required=True, metavar="TEXT", help="What to do; - reads it from stdin")
@click.option("--answer", "answers", multiple=True, metavar="TEXT", help="An accepted answer; repeat it for more")
@click.option("--check", metavar="CHECK", help='A kind of check, or a check as JSON, like {"type": "regex", …}')
@click.option("--rubric", metavar="TEXT", help="What a judge grades by")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file beside FILE that the task is about")
@click.option("--split", metavar="NAME", help="train, selection or test; otherwise tasks are divided by ratio")
@click.option("--id", "identity", metavar="ID", help="A name; made from the content if there is none")
@document_form
@click.pass_obj
def add_command(session: Session, /, file: Path, form: Form, **fields: Any) -> None:  # noqa: ANN401 - the options of a row
    """Add a task to FILE after checking it.

    FILE is made if it is missing. A task that stands there already is refused.
    """
    from skillgit.app.tasks.add import add  # noqa: PLC0415 - see the package

    result = add(session.context, file, _row(fields))
    if form is Form.JSON:
        session.output.document("tasks-add/1", result)
    else:
        session.output.text([f"added {result.id} to {result.path.name}, {plural(result.count, 'task')}"])


def _row(fields: dict[str, Any]) -> dict[str, object]:
    """Return the row that the options say, without those that were not given."""
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


@command.command(cls=Verb, name="draft", short_help="Have a model draft tasks for SKILL")
@click.argument("skill", type=click.Path(path_type=Path))
@click.option("-n", "count", type=int, default=10, show_default=True, metavar="N", help="How many tasks to ask for")
@click.option(
    "-f",
    "--file",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add the drafts to FILE",
)
@click.option(
    "--config",
    default="tasks/default",
    metavar="CONFIG",
    shell_complete=complete_configs,
    help="Take the model of the optimizer from CONFIG; tasks/default unless you say",
)
@override_option
@spending_options(short=False)
@document_form
@click.pass_obj
def draft_command(
    session: Session,
    skill: Path,
    file: Path,
    *,
    count: int,
    config: str,
    overrides: tuple[str, ...],
    caps: Caps,
    dry_run: bool,
    form: Form,
) -> ExitCode:
    """Have the optimizer's model draft tasks for SKILL.

    Each is marked as a draft, and no run uses a file with drafts until they were reviewed.
    """
    from skillgit.app.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.app.tasks.draft import draft  # noqa: PLC0415 - see the package

    result = draft(
        session.context, skill, file, count=count, config=config, overrides=overrides, caps=caps, dry_run=dry_run
    )
    if isinstance(result, Plan):
        return show_plan(session, result, form)
    for reason in result.refused:
        session.diagnostics.note(f"left out: {reason}")
    if result.removed:
        session.diagnostics.note(f"{result.removed} control or invisible characters were removed from the drafts")
    if form is Form.JSON:
        session.output.document("tasks-draft/1", result)
    else:
        session.output.text(render.drafted(result, session.screen))
    return ExitCode.OK


@command.command(cls=Verb, name="review", short_help="Show the drafts in FILE, or accept them")
@_FILE
@click.option("--accept", multiple=True, metavar="ID", help="Accept the draft ID, or all; repeat it for more")
@document_form
@click.pass_obj
def review_command(session: Session, file: Path, accept: tuple[str, ...], form: Form) -> None:
    """Show the drafts in FILE, or accept them."""
    from skillgit.app.tasks.review import review  # noqa: PLC0415 - see the package

    result = review(session.context, file, accept)
    if form is Form.JSON:
        session.output.document("tasks-review/1", result)
    else:
        session.output.text(render.reviewed(result, session.screen))
