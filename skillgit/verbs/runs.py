"""Whole runs: which there are, which is the default, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfPast, OfSkill, Opt
from skillgit.domain.address import version_label
from skillgit.index.rows import RunRow
from skillgit.lazy import loaded_on_use
from skillgit.verbs.notes import no_runs, unreadable_runs
from skillgit.verbs.verb import LIST, Answer, Effect, Form, Verb, VerbSession
from skillgit.view.numbers import score
from skillgit.view.plan import unfinished
from skillgit.view.runs import RUNS as COLUMNS
from skillgit.view.runs import standing

with loaded_on_use():
    from skillgit.app.history import run_list, status
    from skillgit.app.workspace import workspace


@dataclass(frozen=True, kw_only=True)
class RunsRequest(OfSkill, OfPast):
    """Runs that are being trained come before the others. Tags are git tags on versions of a run, and its releases:
    best-yet@v5 is best-yet on v5. `skillgit note --list RUN` prints notes.

    KEY is name, skill, state, environment, model, optimizer,
    score, gain, test, test-gain, steps, cost, calls, tokens, tag, note, started or updated; runs without such a value
    come last.

    A CONDITION is a key, a sign (= > < >= <=) and a value: model=qwen, state=running, test>=.5, cost<2. Texts need to
    contain the value only; a state is running, stopped, not begun, or how the run ended. Text without a sign is
    looked for in names, skills, states, environments, models, tags and notes. Runs match every CONDITION.
    """

    sort: Annotated[str, Opt("Sort by KEY; -KEY for highest first", metavar="KEY")] = ""
    filters: Annotated[
        tuple[str, ...],
        Opt(
            "Only matching runs, e.g. score>.6 or part of a name (repeatable)",
            "--filter",
            metavar="CONDITION",
            tool="name",
        ),
    ] = ()


def _runs(session: VerbSession, request: RunsRequest) -> Answer[run_list.RunListing]:
    listing = run_list.run_list(session.workspace, partial(COLUMNS.chosen, filters=request.filters, sort=request.sort))
    rows = listing.rows
    making = status.spent_on_unfinished(session.workspace) if rows and session.form in {Form.TEXT, Form.JSON} else None
    notes = unreadable_runs(session.workspace)
    if not rows and session.form is Form.TEXT:
        why = COLUMNS.why_empty(run_list.run_list(session.workspace).rows, request.filters)
        none_matches = (f"no run matches ({listing.total:,} in total){f': {why}' if why else ''}", "skillgit runs")
        notes = (*notes, none_matches if listing.total else no_runs(session.workspace))

    def lines() -> Iterable[str]:
        return chain(
            COLUMNS.lines(rows, session.screen, now=session.now),
            ["notes: skillgit note --list RUN"] if any(row.notes for row in rows) else (),
            unfinished(making, session.screen, with_run=True),
        )

    document = {"unfinished": making}
    return Answer(table=COLUMNS, rows=rows, result=listing, lines=lines(), pager=True, notes=notes, document=document)


RUNS = Verb("runs", RunsRequest, _runs, forms=LIST)


@dataclass(frozen=True, kw_only=True)
class StatusRequest(OfSkill, OfPast):
    """See `skillgit cost` for what it has cost, and `skillgit log` for its events."""


def _status(session: VerbSession, request: StatusRequest) -> Answer[status.Status]:
    del request
    result = status.status(session.workspace)
    notes = [*unreadable_runs(session.workspace)]
    if session.form is not Form.JSON:
        if result.run is None:
            notes.append(no_runs(session.workspace))
        if not result.index_fresh:
            notes.append(("the index on disk cannot be used; this was read from git", "skillgit fsck --repair"))
    return Answer("status/1", result, standing(result, session.screen, session.now), notes=notes)


STATUS = Verb("status", StatusRequest, _status)


@dataclass(frozen=True, kw_only=True)
class UseRequest:
    """Names like v7, best and head refer to it. Any beginning of a name that fits one run only will do."""

    run: Annotated[str, Arg("RUN", words="runs")]


def _use(session: VerbSession, request: UseRequest) -> Answer[RunRow]:
    row = workspace.use(session.context, request.run)
    best = f"best {version_label(row.best_version)} {score(row.best_score)}"
    lines = [f"default run is now {row.name}, {best}; next: skillgit log"]
    return Answer("use/1", row, lines, document={"run": row})


USE = Verb("use", UseRequest, _use, Effect.HISTORY)
