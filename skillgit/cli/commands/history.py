"""Commands that show events, commits and files of history."""

from __future__ import annotations

import re
from shlex import quote
from typing import TYPE_CHECKING

import click

from skillgit.cli.diagnostics import no_runs, tell_unreadable
from skillgit.cli.options import (
    ClickVerb,
    as_of_option,
    complete_items,
    complete_revisions,
    flag,
    forms,
    list_forms,
    option,
    skill_option,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.domain.event_kinds import EventKind
from skillgit.verbs.verb import Form
from skillgit.view.lists import LISTS
from skillgit.view.log import log_lines, with_changes

if TYPE_CHECKING:
    from skillgit.app.history.log import Log, LogRequest


_NAMED = 6  # versions that one sentence names
_COUNT = re.compile(r"-\d+")


class LogVerb(ClickVerb):
    """``log``, which takes ``-3`` for ``-n 3`` as ``git log`` does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = (param for param in self.params if isinstance(param, click.Option) and not param.is_flag)
        names = {name for option in options for name in option.opts}
        end = args.index("--") if "--" in args else len(args)
        counts = [index for index in range(end) if _COUNT.fullmatch(args[index]) and not {*args[:index][-1:]} & names]
        words = [f"--limit={arg[1:]}" if index in counts else arg for index, arg in enumerate(args)]
        return super().parse_args(ctx, words)


def _check_forms(form: Form, *, graph: bool, reverse: bool, with_text: bool) -> None:
    context = click.get_current_context()
    if graph and reverse:
        raise click.UsageError("--graph and --reverse do not go together", context)
    if form is not Form.TEXT and with_text:
        raise click.UsageError("-p and --stat are for people; use diff --json", context)
    if form is not Form.TEXT and graph:
        raise click.UsageError("--graph is for people; --json tells the base of each event", context)


@click.command("log", cls=LogVerb)
@click.argument("revisions", nargs=-1, metavar="[RUN | REV | REV..REV]", shell_complete=complete_revisions)
@flag("--graph", "Draw how the events hang together; those of a run stay together")
@flag("-p --patch", "Show under each event what it changed")
@flag("--stat", "Show under each event how much it changed in which file")
@option("--rejected/--no-rejected", "Show rejected candidates", default=True, show_default=True)
@option(
    "-n --limit --max-count limit",
    "Show N events at most; -3 is short for -n 3",
    type=click.IntRange(min=0),
    metavar="N",
)
@option("--since --after", "Show events of TIME or later, like '2 days ago'", metavar="TIME", default="")
@option("--until --before", "Show events of TIME or earlier", metavar="TIME", default="")
@option(
    "--grep",
    "Show events whose title, reasons or changed lines hold words that begin like those of TEXT",
    metavar="TEXT",
    default="",
)
@option(
    "--event events",
    f"Show events of KIND: {' '.join(EventKind)}; repeat it for more",
    multiple=True,
    type=click.Choice([str(kind) for kind in EventKind]),
    metavar="KIND",
)
@option(
    "--item items",
    "Show events that fixed or broke item ID; repeat it for more",
    multiple=True,
    metavar="ID",
    shell_complete=complete_items,
)
@flag("--reverse", "Show the oldest event first")
@flag("--all all_runs", "Show the events of all runs")
@skill_option
@as_of_option
@list_forms
@click.pass_obj
def log_command(
    session: CommandSession,
    revisions: tuple[str, ...],
    *,
    limit: int | None,
    since: str,
    until: str,
    grep: str,
    events: tuple[str, ...],
    items: tuple[str, ...],
    graph: bool,
    patch: bool,
    stat: bool,
    rejected: bool,
    reverse: bool,
    all_runs: bool,
) -> None:
    """Show the events of a run, newest first.

    RUN is all of a run, REV everything up to a version, and v3..v7 everything after v3 up to v7; v3.. goes on to the
    end, ..best begins with the run, and ^v3 v7 is another way to write v3..v7.

    A score in brackets was inherited, not measured. In a graph, the line of a fork leads to the version that it began
    at, that of a merge to what it took in; … stands for lines that find no room.

    \b
    ●  new best   ○  accepted   ×  rejected   ◆  slow update   ·  skipped   ↩  reverted   ✎  edited by hand
    """  # noqa: D301, RUF002 - click reads the mark; the sign of the screens
    from skillgit.app.history.log import LogRequest, log  # noqa: PLC0415 - see the package

    _check_forms(session.form, graph=graph, reverse=reverse, with_text=patch or stat)
    request = LogRequest(
        words=revisions,
        all_runs=all_runs,
        with_rejected=rejected,
        limit=limit,
        events=frozenset(events),
        grep=grep,
        since=since,
        until=until,
        items=items,
        reverse=reverse,
        graph=graph,
    )
    result = log(session.context, request)
    _tell_gaps(session, result, request)
    if session.form is Form.TEXT:
        _show(session, result, graph=graph, patch=patch, stat=stat, runs=all_runs, several=len(set(items)) > 1)
    else:
        session.listing(LISTS["log"], result.rows, head=result)


def _show(
    session: CommandSession, result: Log, *, graph: bool, patch: bool, stat: bool, runs: bool, several: bool
) -> None:
    if not (result.rows or result.run or runs):
        return no_runs(session)
    if not result.rows:
        return session.diagnostics.note("there are no such events")
    edges = result.parents if graph else None
    # a single item that was asked for need not be named
    flips = {
        commit: ", ".join(f"{flip} {item}" if several else flip for item, flip in per_item.items())
        for commit, per_item in result.flips.items()
    }
    lines = log_lines(result.rows, session.screen, session.now, graph=edges, runs=runs, flips=flips)
    if not (patch or stat):
        return session.page(line.text for line in lines)
    from skillgit.app.history.log import changes  # noqa: PLC0415 - see the package

    texts = (text for _, text in changes(session.context, result.rows, patch=patch, stat=stat))
    with session.output.paged():
        for text in with_changes(lines, texts, session.screen_for_diff):
            if isinstance(text, bytes):
                session.output.raw(text)
            else:
                session.output.text([text])
    return None


def _tell_gaps(session: CommandSession, result: Log, request: LogRequest) -> None:
    """Say what is missing from the list: runs that cannot be read, and what nobody knows of items any more."""
    if not request.words:
        tell_unreadable(session)
    if result.untold and result.absence is not None:
        names = f"{', '.join(result.untold[:_NAMED])}{', …' if len(result.untold) > _NAMED else ''}"
        reason = result.absence.sentence("what they are compared by")
        session.diagnostics.note(f"whether {names} fixed or broke {' or '.join(request.items)} is not known: {reason}")
        run, item = result.untold[0].partition("/")[0], quote(request.items[0])
        search = f"skillgit bisect --run {run} --item {item} --measure finds out"
        session.diagnostics.hint(result.absence.remedy(search))


@verb("events")
@click.argument("revisions", nargs=-1, metavar="[RUN | REV | REV..REV]", shell_complete=complete_revisions)
@flag("--all all_runs", "Print the events of all runs, run by run")
@as_of_option
@forms(Form.JSONL)
@click.pass_obj
def events_command(session: CommandSession, revisions: tuple[str, ...], *, all_runs: bool) -> None:
    """Print the events of a run as they are in git, oldest first.

    Each is one JSON object a line, with or without --jsonl: the commit, and every field of its trailers and its text.
    """
    from skillgit.app.history.plumbing import events  # noqa: PLC0415 - see the package

    session.output.records(events(session.context, revisions, all_runs=all_runs))


@verb("rev-parse")
@click.argument("revisions", nargs=-1, required=True, metavar="REV...", shell_complete=complete_revisions)
@flag("--short", "Shorten ids as git does, so far as they stay unambiguous")
@as_of_option
@click.pass_obj
def rev_parse_command(session: CommandSession, revisions: tuple[str, ...], *, short: bool) -> None:
    """Print the commit that REV names.

    Of a range A..B it prints the commit of B, then that of A with a ^ in front, as git does.
    """
    from skillgit.app.history.plumbing import rev_parse  # noqa: PLC0415 - see the package

    revs = rev_parse(session.context, revisions, short=short)
    session.output.text(f"{'^' if rev.excluded else ''}{rev.commit}" for rev in revs)
