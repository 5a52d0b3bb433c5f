"""``skillgit tasks``: files of tasks, drafts of models, and their review."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skillgit.cli.options import (
    ClickVerb,
    complete_configs,
    document_form,
    flag,
    option,
    override_option,
    show_plan,
    skill_option,
    spending_options,
    verbs,
)
from skillgit.cli.session import CommandSession
from skillgit.domain.cost import Caps
from skillgit.errors import DataError, ExitCode, SkillgitError, UsageError
from skillgit.verbs.verb import Form
from skillgit.view import tasks as render
from skillgit.view.numbers import plural
from skillgit.view.text import inert

if TYPE_CHECKING:
    from skillgit.app.sources.draft_review import DraftFolder, PendingDraft


_R = TypeVar("_R")
_FILE = click.argument("file", type=click.Path(path_type=Path))


def _model_option(role: str) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    text = f"Take the model of the {role} from CONFIG; skillgit's tasks/default unless you say"
    return option("--config", text, default=None, metavar="CONFIG", shell_complete=complete_configs)


@verbs("tasks")
def tasks_command() -> None:
    """Add to a file of tasks, or have tasks drafted.

    A file of tasks has one JSON object a line; the README of the environment tasks lists its fields. Train on it with
    skillgit train tasks/default -o env.data_path=FILE.
    """


@tasks_command.command(cls=ClickVerb, name="add", short_help="Add a task to FILE after checking it")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@option("--prompt", "What to do; - reads it from stdin", required=True, metavar="TEXT")
@option("--answer answers", "An accepted answer; repeat it for more", multiple=True, metavar="TEXT")
@option("--check", 'A kind of check, or a check as JSON, like {"type": "regex", …}', metavar="CHECK")
@option("--rubric", "What a judge grades by", metavar="TEXT")
@option("--file files", "A file beside FILE that the task is about", multiple=True, metavar="PATH")
@option("--split", "train, selection or test; otherwise tasks are divided by ratio", metavar="NAME")
@option("--id identity", "A name; made from the content if there is none", metavar="ID")
@skill_option
@document_form
@click.pass_obj
def add_command(session: CommandSession, /, file: Path | None, **fields: Any) -> None:  # noqa: ANN401 - the options of a row
    """Add a task to FILE after checking it.

    FILE is made if it is missing. Without it, it is tasks/NAME.jsonl for the skill of the repository, or with several
    the one that --skill says. A task that is there already is refused.
    """
    from skillgit.app.sources.tasks import add  # noqa: PLC0415 - see the package

    result = add(session.context, _file_of_skill(session, file), _row(fields))
    session.show("tasks-add/1", result, [f"added {result.id} to {result.path.name}, {plural(result.count, 'task')}"])


def _file_of_skill(session: CommandSession, file: Path | None) -> Path:
    """Return ``file``, or the file of tasks of the skill that is named."""
    from skillgit.app.setup.skill_tasks import tasks_of_skill  # noqa: PLC0415 - see the package

    if file is not None and session.context.skill:
        raise UsageError("FILE and --skill both name a file of tasks", hint="give one of them")
    return file if file is not None else tasks_of_skill(session.context)


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


@tasks_command.command(cls=ClickVerb, name="draft", short_help="Have a model draft tasks for SKILL")
@click.argument("skill", type=click.Path(path_type=Path))
@option("--limit", "How many tasks to ask for", type=int, default=10, show_default=True, metavar="N")
@option("-f --file file", "Add the drafts to FILE", required=True, type=click.Path(path_type=Path), metavar="FILE")
@_model_option("optimizer")
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
    config: str | None,
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


@tasks_command.command(cls=ClickVerb, name="review", short_help="Show drafts of tasks, and accept, edit or drop them")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@option("--skill", "Review what was harvested for the skill NAME; the only one if not given", metavar="NAME")
@option("--accept", "Accept the draft ID, or all; repeat it for more", multiple=True, metavar="ID")
@option("--drop", "Drop the harvested draft ID, or all; repeat it for more", multiple=True, metavar="ID")
@option(
    "--into",
    "The file of tasks that harvested drafts go to; tasks/NAME.jsonl unless you say",
    type=click.Path(path_type=Path),
    metavar="FILE",
)
@document_form
@click.pass_context
def review_command(
    context: click.Context,
    file: Path | None,
    *,
    skill: str | None,
    accept: tuple[str, ...],
    drop: tuple[str, ...],
    into: Path | None,
) -> None:
    """Show drafts of tasks, and accept, edit or drop them.

    With FILE they are those that a model drafted there. Without it they are those that were harvested from your work
    for a skill, which are private until you accept them: on a terminal each is shown as it would be committed and sent
    to a model, and each answer takes effect at once. --accept all leaves out those with a warning. What may hold a
    secret is refused until it is edited. Nothing is committed.
    """
    session: CommandSession = context.obj
    if file is not None and (skill or drop or into):
        raise click.UsageError("--skill, --drop and --into go without FILE", context)
    if file is not None:
        from skillgit.app.sources.tasks import review  # noqa: PLC0415 - see the package

        result = review(session.context, file, accept)
        session.show("tasks-review/1", result, render.reviewed(result, session.screen, brief=bool(accept)))
    else:
        _review_harvest(session, skill or _only_name(session), accept, drop, into)


def _only_name(session: CommandSession) -> str:
    from skillgit.app.setup.skill_tasks import name_of_meant  # noqa: PLC0415 - see the package

    return name_of_meant(session.context)


def _review_harvest(
    session: CommandSession, skill: str, accept: tuple[str, ...], drop: tuple[str, ...], into: Path | None
) -> None:
    from skillgit.app.sources.draft_review import open_drafts, review_harvest  # noqa: PLC0415 - see the package

    is_dialogue = sys.stdin.isatty() and session.screen.terminal and session.form is not Form.JSON
    if is_dialogue and not accept and not drop:
        with open_drafts(session.context, skill, into) as folder:
            _converse(session, folder)
    else:
        review = review_harvest(session.context, skill, into=into, accept=accept, drop=drop)
        lines = render.harvest_review(review, session.screen, brief=bool(accept or drop))
        session.show("tasks-drafts/1", review, lines)


def _converse(session: CommandSession, folder: DraftFolder) -> None:
    """Show each draft and carry out what is answered, until there is none left or the user has had enough."""
    total = len(folder.pending_ids())
    for number, pending in enumerate(folder.drafts(), start=1):
        current, position = pending, f"{number} of {total}"
        session.output.text(render.pending_draft(current, session.screen, position))
        while (answer := _answer(current)) not in {"s", "q"}:
            try:
                match answer:
                    case "a":
                        folder.accept(current)
                        break
                    case "d":
                        folder.drop(current)
                        break
                    case "f":
                        session.output.text(render.contents(current, session.screen))
                    case "l":
                        session.output.text([inert(current.line)])
                    case _:
                        current = _edited(session, folder, current)
                        session.output.text(render.pending_draft(current, session.screen, position))
            except SkillgitError as error:
                session.diagnostics.failed(error)
        if answer == "q":
            break
    session.output.text([f"{plural(folder.count(), 'task')} in {folder.tasks.path.name}"])


def _answer(pending: PendingDraft) -> str:
    question = f"{pending.id}: accept, edit, drop, skip, quit; show files, line"
    return str(click.prompt(question, type=click.Choice(list("aedsqfl")), err=True))


def _edited(session: CommandSession, folder: DraftFolder, pending: PendingDraft) -> PendingDraft:
    """Return the draft as the user's editor leaves it; as it was, if the text comes back empty or unchanged."""
    from skillgit.app.sources.draft_review import editable  # noqa: PLC0415 - see the package

    text = editable(pending)
    while (new_text := _in_editor(session, text)) is not None:
        try:
            return folder.edit(pending, new_text)
        except DataError as error:
            session.diagnostics.failed(error)
        if not click.confirm("edit again?", default=True, err=True):
            break
        text = new_text
    return pending


def _in_editor(session: CommandSession, text: str) -> str | None:
    """Return what the user's editor makes of ``text``; None if nothing, or nothing else."""
    try:
        new_text = click.edit(text, env=session.context.environ, extension=".yaml")
    except (click.ClickException, ValueError) as error:
        # A ValueError is an open quote in $EDITOR, or a text that is no UTF-8.
        problem = error.format_message() if isinstance(error, click.ClickException) else f"$EDITOR: {error}"
        raise UsageError(problem, hint="set EDITOR to a program that ends well, or answer without editing") from error
    return None if new_text is None or not new_text.strip() or new_text.rstrip() == text.rstrip() else new_text


@tasks_command.command(cls=ClickVerb, name="harvest", short_help="Draft tasks from sessions with coding agents")
@option(
    "--skill",
    "Look for requests that skill NAME was used for, or was of no use to; the only one if not given",
    metavar="NAME",
)
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
@_model_option("judge")
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

    fields["skill"] = fields["skill"] or _only_name(session)
    result = harvest(session.context, HarvestRequest(**fields))
    if isinstance(result, Plan):
        return show_plan(session, result)
    session.diagnostics.note(*result.remarks)
    session.show("tasks-harvest/1", result, render.harvested(result, session.screen))
    return ExitCode.OK


@tasks_command.command(cls=ClickVerb, name="import", short_help="Add the eval cases of the plug-in DIR to FILE")
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
