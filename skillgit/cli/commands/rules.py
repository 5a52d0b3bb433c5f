"""Commands about the rules of a skill: their origin, their worth, and dropping what is worth nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import (
    as_of_option,
    complete_revisions,
    document_form,
    list_forms,
    measured,
    option,
    skill_option,
    terms_options,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.errors import ExitCode
from skillgit.view.lists import LISTS
from skillgit.view.rules import lines

if TYPE_CHECKING:
    from skillgit.app.setup.model_session import MeasuringTerms


_RANGE = re.compile(r"(?P<first>[1-9]\d*)(?:(?P<comma>,)(?P<plus>\+)?(?P<last>[1-9]\d*)?)?")


@verb("blame")
@click.argument("revision", metavar="[REV]", required=False, default="", shell_complete=complete_revisions)
@click.argument("path", metavar="[PATH]", required=False, default="")
@option(
    "-L ranges", "Show lines N to M; N,+COUNT and N alone work, too; repeat it for more", multiple=True, metavar="N,M"
)
@skill_option
@as_of_option
@list_forms
@click.pass_obj
def blame_command(session: CommandSession, revision: str, path: str, ranges: tuple[str, ...]) -> None:
    """Show where each line of a skill comes from.

    Each line has the version and the step that brought it, what it rests on and how many rollouts, how much the
    version gained, the items that it fixed and broke, and the train items whose rollouts moved the edit.

    REV is the newest version of the default run unless you name one, PATH is SKILL.md. Lines that were moved or
    restored keep their origin.
    """
    from skillgit.app.attribution.provenance import blame  # noqa: PLC0415
    from skillgit.app.workspace.workspace import lacking_evidence  # noqa: PLC0415 - see the package

    result = blame(session.context, revision, path, [_range(text) for text in ranges])
    session.listing(LISTS["blame"], result.lines, lines(result, session.screen), head=result, pager=True)
    if result.absent:
        session.diagnostics.hint(lacking_evidence(session.context, result.run, "items and some sources"))


def _range(text: str) -> tuple[int, int | None]:
    """Return first and last line of ``N,M``, ``N,+COUNT``, ``N,`` or ``N``."""
    match = _RANGE.fullmatch(text)
    first = int(match["first"]) if match else 0
    last = _last(match, first) if match else None
    if match is None or (last is not None and last < first):
        raise click.UsageError(f"-L {text} names no lines; write -L 3,7", click.get_current_context())
    return first, last


def _last(match: re.Match[str], first: int) -> int | None:
    if not match["comma"]:
        return first
    if not match["last"]:
        return None
    return first + int(match["last"]) - 1 if match["plus"] else int(match["last"])


@verb("why")
@click.argument("what", metavar="LINE|TEXT")
@option("--rev revision", "Look at REV", metavar="REV", default="", shell_complete=complete_revisions)
@option("--file path", "Look in this file of the skill only", metavar="PATH", default="")
@skill_option
@as_of_option
@document_form
@click.pass_obj
def why_command(session: CommandSession, what: str, revision: str, path: str) -> None:
    """Explain why a rule is in a skill, from the rollouts that failed to the gate.

    Name the rule by the number of its line in SKILL.md, or by some of its words. Words that no rule has now are
    looked for in history, so that a rule that was removed or never accepted is found, too.

    REV is the newest version of the default run unless you name one, or with --skill that of a run that trains it.
    """
    from skillgit.app.attribution.why import why  # noqa: PLC0415 - see the package
    from skillgit.app.workspace.workspace import lacking_evidence  # noqa: PLC0415 - see the package
    from skillgit.view.why import lines  # noqa: PLC0415 - it reads events, which help does not need

    story = why(session.context, what, revision, path)
    session.show("why/1", story, lines(story, session.screen, session.now), pager=True)
    if story.absent:
        session.diagnostics.hint(lacking_evidence(session.context, story.run, "failures and findings"))


@verb("prune")
@click.argument("revision", metavar="[REV]", default="head", shell_complete=complete_revisions)
@terms_options
@skill_option
@document_form
@click.pass_obj
def prune_command(session: CommandSession, *, revision: str, terms: MeasuringTerms) -> int:
    """Drop the rules that change nothing, if the score does not fall.

    REV is the newest version of a run, that of the default run unless you name one. Which rules can go is taken from
    the notes of ablate, and measured where they do not tell. The gate accepts the shorter text if its score is not
    lower. What is refused stays on a side branch, and the exit code is 1.
    """
    from skillgit.app.interventions.shorten import ShortenRequest, prune  # noqa: PLC0415 - see the package
    from skillgit.view.rules import pruned  # noqa: PLC0415 - see the package

    result = measured(session, prune, ShortenRequest(revision=revision, terms=terms), "prune/1", pruned)
    return ExitCode.OK if result is None or result.decided.accepted else ExitCode.NO


@verb("compress")
@click.argument("revision", metavar="[REV]", default="head", shell_complete=complete_revisions)
@terms_options
@skill_option
@document_form
@click.pass_obj
def compress_command(session: CommandSession, *, revision: str, terms: MeasuringTerms) -> int:
    """Say the same in fewer words, if the score does not fall.

    REV is the newest version of a run, that of the default run unless you name one. The optimizer's model is asked
    once for a shorter text; frontmatter and protected regions stay. The gate accepts it if its score is not lower.
    What is refused stays on a side branch, and the exit code is 1; the same command then asks anew.
    """
    from skillgit.app.interventions.shorten import ShortenRequest, compress  # noqa: PLC0415 - see the package
    from skillgit.view.gate import decided  # noqa: PLC0415 - see the package

    result = measured(session, compress, ShortenRequest(revision=revision, terms=terms), "compress/1", decided)
    return ExitCode.OK if result is None or result.accepted else ExitCode.NO
