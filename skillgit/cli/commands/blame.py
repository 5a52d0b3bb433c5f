"""``skillgit blame``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import as_of_option, complete_revisions, list_forms
from skillgit.cli.output import Form
from skillgit.cli.render.blame import COLUMNS, lines
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session

_RANGE = re.compile(r"(?P<first>[1-9]\d*)(?:(?P<comma>,)(?P<plus>\+)?(?P<last>[1-9]\d*)?)?")


@verb("blame")
@click.argument("revision", metavar="[REV]", required=False, default="", shell_complete=complete_revisions)
@click.argument("path", metavar="[PATH]", required=False, default="")
@click.option(
    "-L",
    "wanted",
    multiple=True,
    metavar="N,M",
    help="Show lines N to M; N,+COUNT and N alone work, too; repeat it for more",
)
@as_of_option
@list_forms
@click.pass_obj
def command(session: Session, revision: str, path: str, wanted: tuple[str, ...], form: Form) -> None:
    """Show where each line of a skill comes from.

    Each line has the version and the step that brought it, what it rests on and how many rollouts, how much the
    version gained, the items that it fixed and broke, and the train items whose rollouts moved the edit.

    REV is the newest version of the default run unless you name one, PATH is SKILL.md. Lines that were moved or that
    a revert brought back keep their origin.
    """
    from skillgit.app.absent_evidence import BRING  # noqa: PLC0415 - see the package
    from skillgit.app.blame import blame  # noqa: PLC0415

    result = blame(session.context, revision, path, [_range(one) for one in wanted])
    if form is not Form.TEXT:
        head = {"run": result.run, "version": result.version, "commit": result.commit, "path": result.path}
        session.output.listing(form, result.lines, schema="blame/1", name="lines", columns=COLUMNS, head=head)
    else:
        with session.output.paged():
            session.output.text(lines(result, session.screen))
    if result.absent:
        session.diagnostics.hint(f"the evidence is not here, so that items and some sources are not known: {BRING}")


def _range(wanted: str) -> tuple[int, int | None]:
    """Return first and last line of ``N,M``, ``N,+COUNT``, ``N,`` or ``N``."""
    found = _RANGE.fullmatch(wanted)
    first = int(found["first"]) if found else 0
    last = _last(found, first) if found else None
    if found is None or (last is not None and last < first):
        raise click.UsageError(f"-L {wanted} names no lines; write -L 3,7", click.get_current_context())
    return first, last


def _last(found: re.Match[str], first: int) -> int | None:
    if not found["comma"]:
        return first
    if not found["last"]:
        return None
    return first + int(found["last"]) - 1 if found["plus"] else int(found["last"])
