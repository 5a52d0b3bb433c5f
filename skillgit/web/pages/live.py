"""A run that is being trained, part by part, and how operators stop it and let it go on."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from skillgit.app.deliver.report import DiffAllowance, tell
from skillgit.app.history.browse import standing
from skillgit.app.history.live import (
    LiveLook,
    Snapshot,
    Standing,
    live,
    live_history,
    stage_progress,
    stop_after_step,
    stop_now,
)
from skillgit.app.workspace.command_journal import commands
from skillgit.app.workspace.context import Context
from skillgit.domain.event import RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.ids import check_run_name
from skillgit.errors import NotFoundError, UsageError
from skillgit.report.page import plotted
from skillgit.view.progress import steps_at
from skillgit.web.commands import start
from skillgit.web.rendering import Page, PageRoute, Redirect, Role, Stream, Visit, address, fragment

EVENTS: Final = 400  # on the curve at most, the newest ones
LINES: Final = 40  # of the log
_CHANGES: Final = frozenset({EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SLOW_MERGED})
_DRAWN_EVERY_S: Final = 2.0  # what the history says, at most: a fast run writes several events a second
CAPS: Final = {"max_calls": int, "max_tokens": int, "max_usd": float}


class CapBar(NamedTuple):
    name: str
    spent: float
    cap: float
    projected: float | None


def live_page(visit: Visit) -> Page:
    run = _run(visit)
    look = _look(visit, run)
    return Page(
        template="live.html",
        title=f"{run}, live",
        command=("log", run),
        values={
            "run": run,
            "look": look,
            "phase": _phase(look),
            "shown": {**_current(look), **_recorded(visit.context, run)},
            "continues": _continuing(look, run),
        },
    )


def live_stream(visit: Visit) -> Stream:
    run = _run(visit)
    _look(visit, run)
    return Stream(look=_Watch(visit.context, run))


def _look(visit: Visit, run: str) -> LiveLook:
    """Return how ``run`` is going, also just after its launch; a NotFoundError if nothing is known of it here."""
    look, page = live(visit.context, run), address("run", run, "live")
    if (
        look.standing is Standing.IDLE
        and live_history(visit.context, run, 1) is None
        and not any(record.runs and record.back == page for record in commands(visit.context))
    ):
        hint = "if it was launched just now, Activity has what its command said"
        raise NotFoundError(f"there is no run '{run}'", hint=hint)
    return look


class _Watch:
    """Looks at a run again and again; what the history says is drawn only where it changed, and not at every event."""

    def __init__(self, context: Context, run: str) -> None:
        self._context, self._run = context, run
        self._drawing: dict[str, str] = {}
        self._drawn_of, self._drawn_s = "", 0.0

    def __call__(self) -> dict[str, str]:
        version, now_s = standing(self._context), time.monotonic()
        if version != self._drawn_of and (not self._drawing or now_s - self._drawn_s >= _DRAWN_EVERY_S):
            self._drawing = _recorded(self._context, self._run)
            self._drawn_of, self._drawn_s = version, now_s
        return {**_current(live(self._context, self._run)), **self._drawing}


def _current(look: LiveLook) -> dict[str, str]:
    """Return the parts that the snapshot says, by name."""
    snapshot = look.snapshot
    return {
        "now": fragment(
            "live_now.html",
            look=look,
            snapshot=snapshot,
            steps=steps_at(snapshot) if snapshot is not None else "",
            stages=stage_progress(snapshot, is_alive=look.is_alive),
            caps=_caps(snapshot),
            state=_state(look),
            phase=_phase(look),
        ),
        "failing": fragment("live_failing.html", snapshot=snapshot),
        "notice": "",
    }


def _recorded(context: Context, run: str) -> dict[str, str]:
    """Return the parts that the history says, by name."""
    history = live_history(context, run, EVENTS)
    rows = history.rows if history is not None else ()
    drawings = {} if history is None else plotted(history.run, rows, history.score_counts)
    newest = next((row for row in reversed(rows) if row.kind in _CHANGES), None)
    story = None
    if newest is not None:
        with suppress(NotFoundError):  # evidence may not be here
            story = tell(context, [newest], DiffAllowance()).stories[0]
    return {
        "curve": fragment(
            "live_curve.html",
            run=None if history is None else history.run,
            event_address=partial(address, "run", run),
            drawings=drawings,
        ),
        "log": fragment("live_log.html", rows=rows[::-1][:LINES], run=run),
        "change": fragment("live_change.html", story=story, run=run),
    }


def _caps(snapshot: Snapshot | None) -> Iterator[CapBar]:
    if snapshot is None:
        return
    costs, ahead, limits = snapshot.spent, snapshot.projected, snapshot.limits
    if limits.calls is not None:
        yield CapBar("calls", costs.calls, limits.calls, None if ahead is None else ahead.calls)
    if limits.tokens is not None:
        tokens = None if ahead is None else ahead.tokens_in + ahead.tokens_out
        yield CapBar("tokens", costs.tokens_in + costs.tokens_out, limits.tokens, tokens)
    if limits.usd is not None:
        yield CapBar("dollars", costs.usd, limits.usd, None if ahead is None else ahead.usd)


_STATES: Final = {
    Standing.IDLE: ("not running", "faint"),
    Standing.STARTING: ("starting", "slow"),
    Standing.RUNNING: ("running", "best"),
    Standing.STOPPING: ("stops after this step", "slow"),
    Standing.KILLED: ("killed", "rejected"),
}


def _state(look: LiveLook) -> dict[str, str]:
    if look.standing is Standing.ENDED and look.snapshot is not None and look.snapshot.end is not None:
        outcome = look.snapshot.end.outcome
        words, tone = outcome, "best" if outcome in {"improved", "ceiling"} else "rejected"
    else:
        words, tone = _STATES.get(look.standing, ("ended", "faint"))
    return {"words": words, "tone": tone}


def _phase(look: LiveLook) -> str:
    """Return ``alive`` for what can be stopped, ``over`` for what can go on, ``finished`` for what cannot do either."""
    if look.is_alive:
        return "alive"
    end = look.snapshot.end if look.standing is Standing.ENDED and look.snapshot is not None else None
    is_finished = end is not None and end.outcome in set(RunOutcome) and RunOutcome(end.outcome).ends_run
    return "finished" if is_finished else "over"


def _continuing(look: LiveLook, run: str) -> tuple[str, ...]:
    """Return the words that go on with the run; none where nothing is left of it or a process works on it."""
    snapshot = look.snapshot
    if look.is_alive:
        return ()
    words = shlex.split(snapshot.command) if snapshot is not None else []
    # the file is one that a process of ours wrote; anything else in it starts nothing
    if words[:2] == ["skillgit", "train"] and run in words:
        return tuple(words[1:])
    return ("train", "--run", run)


def stop_page(visit: Visit) -> Redirect:
    run = _run(visit)
    match visit.value("how"):
        case "step":
            stop_after_step(visit.context, run)
        case "now":
            stop_now(visit.context, run)
        case _:
            raise UsageError("this form does not say how to stop", hint="reload the page and press one of its buttons")
    return Redirect(address=address("run", run, "live"))


def continue_page(visit: Visit) -> Redirect:
    run = _run(visit)
    look, back = live(visit.context, run), address("run", run, "live")
    if not look.is_alive:
        start(visit, [*_continuing(look, run), *_new_caps(visit)], back=back)
    return Redirect(address=back)


def _new_caps(visit: Visit) -> Iterator[str]:
    for name, kind in CAPS.items():
        text = visit.value(name).strip()
        if not text:
            continue
        try:
            number = kind(text)
        except ValueError as error:
            raise UsageError(f"'{text}' is not a number for {name}", hint="write it in digits") from error
        if not number > 0:
            raise UsageError(f"{name} has to be more than 0", hint="leave it empty for no cap")
        yield from (f"--{name.replace('_', '-')}", str(number))


def _run(visit: Visit) -> str:
    return check_run_name(visit.parameters["run"])


ROUTES = (
    PageRoute(path="/run/{run}/live", page=live_page),
    PageRoute(path="/run/{run}/live/stream", page=live_stream),
    PageRoute(path="/run/{run}/stop", page=stop_page, role=Role.OPERATOR, method="POST"),
    PageRoute(path="/run/{run}/continue", page=continue_page, role=Role.OPERATOR, method="POST"),
)
