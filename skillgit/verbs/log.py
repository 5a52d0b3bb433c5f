"""Events, as a log and as git has them, and the commits that revisions name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Annotated, TypeAlias

from skillgit.app.history.requests import LogRequest
from skillgit.app.workspace.request import Arg, MisuseError, OfPast, Opt, given, option_of, parameters, refuse_together
from skillgit.lazy import loaded_on_use
from skillgit.verbs.notes import no_runs, unreadable_runs
from skillgit.verbs.verb import Answer, Form, Verb, VerbSession
from skillgit.view import log as log_view

with loaded_on_use():
    from skillgit.app.history import log, plumbing

Log: TypeAlias = "log.Log"
_NAMED = 6  # versions that one sentence names
_COUNT = re.compile(r"-\d+")


def _with_limit(words: Sequence[str]) -> list[str]:
    """Return ``words`` with ``-3`` written as ``--limit=3``, as ``git log`` takes it."""
    taking = {name for part in parameters(LogRequest) if part.plain_type is not bool for name in part.options}
    end = words.index("--") if "--" in words else len(words)
    before = ("", *words)
    return [
        f"--limit={word[1:]}" if at < end and _COUNT.fullmatch(word) and before[at] not in taking else word
        for at, word in enumerate(words)
    ]


def _log(session: VerbSession, request: LogRequest) -> Answer[Log]:
    if session.form is Form.JSONL:
        others = [
            option_of(part) for part in given(request) if part.name not in {"words", "all_runs", "as_of", "skill"}
        ]
        if others:
            raise MisuseError(f"--jsonl cannot be combined with {others[0]}: it prints all events")
        return Answer(rows=plumbing.events(session.workspace, request.words, all_runs=request.all_runs))
    refuse_together(request, "graph", "reverse")
    if session.form is not Form.TEXT and (request.patch or request.stat):
        raise MisuseError("-p and --stat are for people; use diff --json")
    if session.form is not Form.TEXT and request.graph:
        raise MisuseError("--graph is for people; --json has the base of each event")
    result = log.log(session.workspace, request)
    notes = [] if request.words else [*unreadable_runs(session.workspace)]
    if result.untold and result.absence is not None:
        names = f"{', '.join(result.untold[:_NAMED])}{', …' if len(result.untold) > _NAMED else ''}"
        reason = result.absence.sentence("what they are compared by")
        run, item = result.untold[0].partition("/")[0], quote(request.items[0])
        finds_out = result.absence.remedy(f"skillgit items {run} --item {item} --measure finds out")
        notes.append((f"whether {names} fixed or broke {' or '.join(request.items)} is not known: {reason}", finds_out))
    if session.form is Form.TEXT and not result.rows:
        nothing = ("there are no such events", "") if result.run or request.all_runs else no_runs(session.workspace)
        return Answer(lines=(), notes=[*notes, nothing])
    lines = _lines(session, request, result) if session.form is Form.TEXT else None
    return Answer(table=log_view.EVENTS, rows=result.rows, result=result, lines=lines, pager=True, notes=notes)


def _lines(session: VerbSession, request: LogRequest, result: log.Log) -> Iterator[str | bytes]:
    several = len(set(request.items)) > 1  # a single item that was asked for need not be named
    flips = {
        commit: ", ".join(f"{flip} {item}" if several else flip for item, flip in per_item.items())
        for commit, per_item in result.flips.items()
    }
    edges = result.parents if request.graph else None
    lines = log_view.log_lines(
        result.rows, session.screen, session.now, graph=edges, runs=request.all_runs, flips=flips
    )
    if not (request.patch or request.stat):
        return (line.text for line in lines)
    changes = log.changes(session.workspace, result.rows, patch=request.patch, stat=request.stat)
    return log_view.with_changes(lines, (text for _, text in changes), session.screen_for_diff)


LOG = Verb("log", LogRequest, _log, forms=(Form.JSON, Form.JSONL, Form.PLAIN), rewrite=_with_limit)


@dataclass(frozen=True, kw_only=True)
class RevParseRequest(OfPast):
    """Of a range A..B it prints the commit of B, then that of A with a ^ in front, as git does."""

    words: Annotated[tuple[str, ...], Arg("REV...", words="revisions")]
    short: Annotated[bool, Opt("Shorten ids as git does, so far as they stay unambiguous")] = False


def _rev_parse(session: VerbSession, request: RevParseRequest) -> Answer[object]:
    commits = plumbing.rev_parse(session.workspace, request.words, short=request.short)
    return Answer(lines=(f"{'^' if commit.excluded else ''}{commit.commit}" for commit in commits))


REV_PARSE = Verb("rev-parse", RevParseRequest, _rev_parse, forms=())
