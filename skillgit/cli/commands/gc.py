"""``skillgit gc``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_runs, list_forms
from skillgit.cli.output import Form
from skillgit.cli.render.words import plural
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.gc import Tidied
    from skillgit.cli.session import Session

COLUMNS = ("run", "folded", "unfolded", "attic", "dropped", "freed", "left")
_KILO = 1000
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@verb("gc")
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs)
@click.option("--fold", is_flag=True, help="Fold branches of rejected candidates into an attic")
@click.option("--unfold", is_flag=True, help="Give candidates in the attic their branches back")
@click.option("--evidence-older", metavar="AGE", default="", help="Drop evidence older than AGE: 30 (days) or a date")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing")
@list_forms
@click.pass_obj
def command(
    session: Session,
    runs: tuple[str, ...],
    *,
    fold: bool,
    unfold: bool,
    evidence_older: str,
    dry_run: bool,
    form: Form,
) -> None:
    """Fold the branches of finished runs, or drop old evidence.

    Takes all finished runs unless you name some. Folded candidates stay in history and keep their names: log, show and
    diff find r17 as before. Evidence that is dropped is gone; that of the first, the best and the last version stays.
    """
    from skillgit.app.gc import Request, gc  # noqa: PLC0415 - see the package

    request = Request(runs=runs, fold=fold, unfold=unfold, evidence_older=evidence_older, dry_run=dry_run)
    done = gc(session.context, request)
    if form is not Form.TEXT:
        session.output.listing(form, done, schema="gc/1", name="runs", columns=COLUMNS, head={"dry_run": dry_run})
        return
    session.output.text(_lines(done, dry_run=dry_run))
    if any(one.dropped for one in done) and not dry_run:
        session.diagnostics.hint("git gc --prune=now frees the space")


def _lines(done: Sequence[Tidied], *, dry_run: bool) -> Iterator[str]:
    width = max((len(one.run) for one in done), default=0)
    for one in done:
        for told in _told(one, dry_run=dry_run):
            yield f"{one.run.ljust(width)}  {told}"
    if not done:
        yield "there are no runs yet"


def _told(one: Tidied, *, dry_run: bool) -> Iterator[str]:
    would = "would " if dry_run else ""
    if one.left:
        yield f"left as it is: {one.left}"
        return
    if one.folded:
        verb_of = "fold" if dry_run else "folded"
        yield f"{would}{verb_of} {plural(one.folded, 'candidate')}; undo: skillgit gc --unfold {one.run}"
    if one.unfolded:
        verb_of = "give back" if dry_run else "gave back"
        yield f"{would}{verb_of} {plural(one.unfolded, 'branch', 'branches')}"
    if one.dropped:
        verb_of = "drop" if dry_run else "dropped"
        yield f"{would}{verb_of} the evidence of {plural(one.dropped, 'event')}, {_size(one.freed)} uncompressed"
    if not (one.folded or one.unfolded or one.dropped):
        yield "nothing to do" + (f", {plural(one.attic, 'candidate')} in the attic" if one.attic else "")


def _size(count: int) -> str:
    """Return a number of bytes as people read it."""
    value, place = float(count), 0
    while value >= _KILO and place + 1 < len(_UNITS):
        value, place = value / _KILO, place + 1
    return f"{value:.1f} {_UNITS[place]}" if place else f"{count} {_UNITS[0]}"
