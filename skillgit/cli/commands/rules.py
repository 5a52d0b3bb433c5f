"""Commands about the rules of a skill: their origin, their worth, and dropping what is worth nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import (
    complete_revisions,
    document_form,
    measured,
    note_option,
    option,
    skill_option,
    split_option,
    terms_options,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.errors import ExitCode

if TYPE_CHECKING:
    from skillgit.app.setup.model_session import MeasuringTerms


@verb("ablate")
@click.argument("revision", metavar="[REV]", default="head", shell_complete=complete_revisions)
@option("--rule", "Leave out rule N only", type=click.IntRange(min=1), metavar="N")
@split_option(("train", "selection", "test"))
@note_option("the commit")
@terms_options
@skill_option
@document_form
@click.pass_obj
def ablate_command(
    session: CommandSession, *, revision: str, rule: int | None, split: str, note: bool, terms: MeasuringTerms
) -> int:
    """Leave out each rule of a version and measure what it is worth.

    A rule is a list item or a sentence of SKILL.md. The skill is measured without it, on the same items and with the
    same model as its run, and compared item by item; p is the chance of so many broken items if every change were a
    coin flip. Dead rules, without which nothing changes, stand last. The result is noted on the commit, where prune
    finds it.

    REV is the newest version of the default run unless you name one.
    """
    from skillgit.app.interventions.ablate import AblateRequest, ablate  # noqa: PLC0415 - see the package
    from skillgit.view.rules import ablated  # noqa: PLC0415 - see the package

    request = AblateRequest(revision=revision, rule=rule, split=split, note=note, terms=terms)
    result = measured(session, ablate, request, "ablate/1", ablated)
    return int(result.exit_code) if result else ExitCode.OK
