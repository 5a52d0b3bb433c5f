"""``skillgit gate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.cli.measuring_options import (
    note_option,
    quiet_option,
    show_plan,
    spending_options,
    split_option,
)
from skillgit.cli.options import complete_configs, complete_revisions, document_form
from skillgit.cli.output import Form
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.app.gate_report import GateReport
    from skillgit.cli.output import Output
    from skillgit.cli.session import Session

_RULES = ("strict", "paired", "margin", "not-worse")


@verb("gate")
@click.option(
    "--base", metavar="REV", required=True, shell_complete=complete_revisions, help="What the head would replace"
)
@click.option(
    "--head", metavar="REV", default="HEAD", show_default=True, shell_complete=complete_revisions, help="What to judge"
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="[SKILL=]CONFIG",
    shell_complete=complete_configs,
    help="Measure SKILL as CONFIG says, not as its run did",
)
@click.option(
    "--cfg-options", "overrides", multiple=True, metavar="KEY=VALUE", help="Set KEY of the configuration; repeatable"
)
@split_option(("selection", "test"))
@click.option("--rule", type=click.Choice(_RULES), help="How to compare; without it as the configuration says")
@click.option("--recorded-only", is_flag=True, help="Measure nothing; say which outcomes are not recorded")
@note_option()
@spending_options()
@quiet_option
@click.option("--markdown", is_flag=True, help="Print Markdown, for a comment on a pull request")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write Markdown, or with --json the document, to FILE",
)
@document_form
@click.pass_obj
def command(
    session: Session,
    /,
    *,
    rule: str | None,
    dry_run: bool,
    quiet: bool,
    markdown: bool,
    output: Path | None,
    form: Form,
    **asked: object,
) -> int:
    """Judge the skills that a pull request changes by their scores.

    Every skill under skills/ that the head changed since it left the base is compared with what stands at the base.
    Outcomes that runs and notes tell of the same text are taken from there; only the others are measured, and noted.

    Exits with 0 if every changed skill passes or none is changed, with 1 if one does not pass, with 5 if too few items
    could be evaluated, and with 21 if it cannot be told: outcomes are not recorded, no configuration is known, or the
    items are too few for the rule.
    """
    from skillgit.app.gate import GateRequest, gate  # noqa: PLC0415 - see the package
    from skillgit.app.plan import Plan  # noqa: PLC0415 - see the package
    from skillgit.cli.eval_watchers import watching  # noqa: PLC0415 - see the package

    if dry_run and (markdown or output is not None):
        raise click.UsageError("a dry run has no verdict to write", click.get_current_context())
    if markdown and form is Form.JSON:
        raise click.UsageError("choose one output format", click.get_current_context())
    # The other options bear the names of what is asked for.
    request = GateRequest(rule=rule, dry_run=dry_run, **asked)  # type: ignore[arg-type]

    with watching(session, quiet=quiet or dry_run) as watcher:
        report = gate(session.context, request, watcher)
    if isinstance(report, Plan):
        return show_plan(session, report, form)
    _show(session, report, form, markdown=markdown, output=output)
    return int(report.exit_code)


def _show(session: Session, report: GateReport, form: Form, *, markdown: bool, output: Path | None) -> None:
    from skillgit.cli.output_file import output_to  # noqa: PLC0415 - see the package
    from skillgit.cli.render.gate import lines  # noqa: PLC0415 - as above
    from skillgit.cli.render.gate_markdown import markdown as as_markdown  # noqa: PLC0415 - as above

    def write(to: Output) -> None:
        if form is Form.JSON:
            to.document("gate/2", report)
        else:
            to.text(as_markdown(report))

    if output is not None:
        with output_to(session.context.directory / output) as file:
            write(file)
        session.output.text(lines(report, session.screen))
    elif markdown or form is Form.JSON:
        write(session.output)
    else:
        session.output.text(lines(report, session.screen))
