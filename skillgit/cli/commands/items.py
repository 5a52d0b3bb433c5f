"""Commands that look at versions item by item."""

from __future__ import annotations

import click
from click.core import ParameterSource

from skillgit.cli.options import (
    as_of_option,
    carried_out,
    complete_configs,
    complete_items,
    complete_revisions,
    complete_runs,
    document_form,
    flag,
    list_forms,
    option,
    override_option,
    quiet_option,
    run_argument,
    skill_option,
    spending_options,
    split_option,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.domain.cost import Caps
from skillgit.errors import ExitCode
from skillgit.verbs.verb import Form
from skillgit.view import item as story_view
from skillgit.view.items import check_lines, check_records
from skillgit.view.json_values import named_values
from skillgit.view.lists import LISTS
from skillgit.view.score_tables import lines, matrix_lines, matrix_records, records

_NEWEST = 60  # attempts at one item that a person is shown without asking for all
_CHOICES = frozenset({"flaky", "never_solved", "solved", "task_type", "rejected", "sort"})
ORDERS = ("item", "first", "flips", "share")


@verb("items")
@run_argument
@option("--item", "Show the history of one item", metavar="ID", shell_complete=complete_items)
@option("--trajectory", "With --item: what happened under REV", metavar="REV", shell_complete=complete_revisions)
@flag("--flaky", "Show items whose outcome is noisy, and why they are taken for such")
@flag("--never-solved", "Show items that no version solves")
@flag("--solved", "Show items that the newest version solves")
@option("--type task_type", "Show items of the task type T", metavar="T")
@flag("--checks by_check", "Show the mean score of each single check, not of items")
@flag("--rejected", "Show rejected candidates, too")
@flag("--all-versions", "Show every version, however wide the table becomes")
@option("--sort", "What to sort the items by", type=click.Choice(ORDERS), default="item", show_default=True)
@skill_option
@as_of_option
@list_forms
@click.pass_obj
def items_command(
    session: CommandSession,
    *,
    run: str | None,
    item: str | None,
    trajectory: str | None,
    flaky: bool,
    never_solved: bool,
    solved: bool,
    task_type: str | None,
    by_check: bool,
    rejected: bool,
    all_versions: bool,
    sort: str,
) -> None:
    """Show which items are solved by which version.

    The items are those of the selection split. An item is noisy if repeated rollouts of one text differ, if a
    placebo or a later measurement moved it, or if it flipped three times or more.
    """
    if trajectory is not None and item is None:
        raise click.UsageError("--trajectory goes with --item", click.get_current_context())
    if item is not None:
        _refuse_choice(click.get_current_context())
        _one(session, run, item, trajectory, every=all_versions)
        return
    if by_check:
        _by_check(session, run)
        return
    from skillgit.app.history.items import ItemOrder, ItemsRequest, items  # noqa: PLC0415 - see the package

    choice = {"rejected": rejected, "flaky": flaky, "never_solved": never_solved, "solved": solved}
    table = items(session.context, run, ItemsRequest(**choice, task_type=task_type, order=ItemOrder(sort)))
    if not table.rows and session.form is Form.TEXT:
        session.diagnostics.note(f"none of the {table.items} items of run {table.run} is like that")
        return
    rows = records(table, cells=session.tabular)
    head = {"run": table.run, "metric": table.metric, "versions": table.columns}
    session.listing(LISTS["items"], rows, lines(table, session.screen, every=all_versions), head=head, pager=True)


def _by_check(session: CommandSession, run: str | None) -> None:
    _refuse_choice(click.get_current_context(), "--checks")
    from skillgit.app.history.items import checks  # noqa: PLC0415 - see the package

    table = checks(session.context, run)
    rows = check_records(table)
    session.listing(LISTS["items --checks"], rows, check_lines(table, session.screen), head=table, pager=True)


def _refuse_choice(ctx: click.Context, option: str = "--item") -> None:
    """Refuse what chooses or sorts items where ``option`` asks for something else than a list of them."""
    for param in ctx.command.params:
        if param.name in _CHOICES and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            shows = "the whole history of one" if option == "--item" else "checks over all items"
            raise click.UsageError(f"{param.opts[0]} goes without {option}: that shows {shows}", ctx)


def _one(session: CommandSession, run: str | None, item: str, trajectory: str | None, *, every: bool) -> None:
    from skillgit.app.history.item import item_story, item_trajectory  # noqa: PLC0415 - see the package

    if trajectory is not None:
        result = item_trajectory(session.context, item, trajectory)
        if session.tabular:
            raise click.UsageError("--plain and -z do not go with --trajectory", click.get_current_context())
        if session.form is Form.JSONL:
            return session.output.records(result.turns)
        return session.show("trajectory/1", result, story_view.trajectory(result, session.screen), pager=True)
    story = item_story(session.context, run, item, limit=None if every or session.form is not Form.TEXT else _NEWEST)
    head = {name: value for name, value in named_values(story).items() if name != "attempts"}
    lines = story_view.lines(story, session.screen)
    return session.listing(LISTS["items --item"], story_view.records(story), lines, head=head, pager=True)


@verb("bisect")
@option("--item", "The item", metavar="ID", required=True, shell_complete=complete_items)
@click.argument("good", required=False, shell_complete=complete_revisions)
@click.argument("bad", required=False, shell_complete=complete_revisions)
@option("--run", "Look at RUN, not at the default run", metavar="RUN", shell_complete=complete_runs)
@flag("--measure", "Roll the item out where an outcome is missing, and note it")
@option("--config", "With --measure: as CONFIG says", metavar="CONFIG", shell_complete=complete_configs)
@override_option
@spending_options
@quiet_option
@skill_option
@as_of_option
@document_form
@click.pass_obj
def bisect_command(
    session: CommandSession,
    *,
    item: str,
    good: str | None,
    bad: str | None,
    run: str | None,
    measure: bool,
    config: str | None,
    overrides: tuple[str, ...],
    caps: Caps,
    dry_run: bool,
) -> ExitCode:
    """Find the version that fixed or broke an item.

    It looks between two versions that differ on the item, in either order; without them at the newest flip of the run.
    What the run recorded answers, so that nothing is spent; --measure asks for what is missing, one item at a time.
    Exits with 1 if the outcome is the same at both ends.
    """
    from skillgit.app.history.bisect import BisectRequest, bisect  # noqa: PLC0415 - see the package

    if dry_run and not measure:
        raise click.UsageError("--dry-run goes with --measure: nothing else spends", click.get_current_context())
    if (good is None) != (bad is None):
        raise click.UsageError("name two versions, or none", click.get_current_context())
    request = BisectRequest(
        item=item,
        run=run,
        ends=(good, bad) if good is not None and bad is not None else None,
        measure=measure,
        config=config,
        overrides=overrides,
        caps=caps,
        dry_run=dry_run,
    )
    result = carried_out(session, bisect, request)
    if result is None:
        return ExitCode.OK
    session.show("bisect/1", result, story_view.bisect_lines(result, session.screen, session.now))
    return ExitCode.OK if result.flip is not None else ExitCode.NO


@verb("matrix")
@run_argument
@split_option(("train", "selection", "test"), "Which items the scores are of")
@skill_option
@as_of_option
@list_forms
@click.pass_obj
def matrix_command(session: CommandSession, run: str | None, split: str) -> None:
    """Show what each version scored under each target model.

    Scores are those of the run and of the notes that eval and verify left; of several the newest. What was
    measured on other items, in another environment or by another judge is marked.
    """
    from skillgit.app.history.matrix import matrix  # noqa: PLC0415 - see the package

    table = matrix(session.context, run, split)
    if table.rows or session.form is not Form.TEXT:
        session.listing(LISTS["matrix"], matrix_records(table), matrix_lines(table, session.screen), head=table)
    else:
        session.diagnostics.note(
            f"no version of run {table.run} has a score on the {table.split} split",
            hint=f"skillgit eval {table.run} --split {table.split}",
        )
