"""``skillgit items``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from skillgit.cli.options import as_of_option, complete_items, complete_revisions, list_forms, run_argument
from skillgit.cli.output import Form
from skillgit.cli.render import item as one
from skillgit.cli.render.documents import named_values
from skillgit.cli.render.item_table import COLUMNS, lines, records
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.items import ItemTable
    from skillgit.cli.session import Session

NEWEST = 60
"""Attempts at one item that a person is shown without asking for all."""
_CHOICES = frozenset({"flaky", "never_solved", "solved", "task_type", "rejected", "sort"})
ORDERS = ("item", "first", "flips", "share")


@verb("items")
@run_argument
@click.option("--item", metavar="ID", shell_complete=complete_items, help="Show the history of one item")
@click.option(
    "--trajectory", metavar="REV", shell_complete=complete_revisions, help="With --item: what happened under REV"
)
@click.option("--flaky", is_flag=True, help="Show items whose outcome is noisy, and why they are taken for such")
@click.option("--never-solved", is_flag=True, help="Show items that no version solves")
@click.option("--solved", is_flag=True, help="Show items that the newest version solves")
@click.option("--type", "task_type", metavar="T", help="Show items of the task type T")
@click.option("--rejected", is_flag=True, help="Show rejected candidates, too")
@click.option("--all-versions", is_flag=True, help="Show every version, however wide the table becomes")
@click.option("--sort", type=click.Choice(ORDERS), default="item", show_default=True, help="What to sort the items by")
@as_of_option
@list_forms
@click.pass_obj
def command(
    session: Session,
    *,
    run: str | None,
    item: str | None,
    trajectory: str | None,
    flaky: bool,
    never_solved: bool,
    solved: bool,
    task_type: str | None,
    rejected: bool,
    all_versions: bool,
    sort: str,
    form: Form,
) -> None:
    """Show which items are solved by which version.

    The items are those of the selection split. An item is noisy if repeated rollouts of one text differ, if a
    placebo or a later measurement moved it, or if it flipped three times or more.
    """
    if trajectory is not None and item is None:
        raise click.UsageError("--trajectory goes with --item", click.get_current_context())
    if item is not None:
        _refuse_choice(click.get_current_context())
        _one(session, run, item, trajectory, form, every=all_versions)
        return
    from skillgit.app.items import Order, Wanted, items  # noqa: PLC0415 - see the package

    wanted = Wanted(
        rejected=rejected,
        flaky=flaky,
        never_solved=never_solved,
        solved=solved,
        task_type=task_type,
        order=Order(sort),
    )
    table = items(session.context, run, wanted)
    if form is not Form.TEXT:
        _listing(session, table, form)
        return
    if not table.rows:
        session.diagnostics.note(f"none of the {table.items} items of run {table.run} is like that")
        return
    with session.output.paged():
        session.output.text(lines(table, session.screen, every=all_versions))


def _refuse_choice(ctx: click.Context) -> None:
    """Refuse what chooses or sorts items where one is named."""
    for param in ctx.command.params:
        if param.name in _CHOICES and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} goes without --item: that shows the whole history of one", ctx)


def _listing(session: Session, table: ItemTable, form: Form) -> None:
    rows = records(table, cells=form in {Form.PLAIN, Form.NUL})
    head = {"run": table.run, "metric": table.metric, "versions": table.columns}
    session.output.listing(form, rows, schema="items/1", name="items", columns=COLUMNS, head=head)


def _one(session: Session, run: str | None, item: str, trajectory: str | None, form: Form, *, every: bool) -> None:
    from skillgit.app.item import item_story, item_trajectory  # noqa: PLC0415 - see the package

    if trajectory is not None:
        happened = item_trajectory(session.context, item, trajectory)
        if form is Form.JSON:
            session.output.document("trajectory/1", happened)
        elif form is Form.JSONL:
            session.output.records(happened.turns)
        elif form is Form.TEXT:
            with session.output.paged():
                session.output.text(one.trajectory(happened, session.screen))
        else:
            raise click.UsageError("--plain and -z do not go with --trajectory", click.get_current_context())
        return
    story = item_story(session.context, run, item, limit=None if every or form is not Form.TEXT else NEWEST)
    if form is Form.TEXT:
        with session.output.paged():
            session.output.text(one.lines(story, session.screen))
        return
    head = {name: value for name, value in named_values(story).items() if name != "attempts"}
    rows = one.records(story)
    session.output.listing(form, rows, schema="item/1", name="attempts", columns=one.COLUMNS, head=head)
