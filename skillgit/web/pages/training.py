"""A new run: chosen, planned, launched; and a run that is being trained, part by part, to be stopped and continued."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.responses import HTMLResponse

from skillgit.app.history.requests import LogRequest
from skillgit.app.train.requests import TrainRequest
from skillgit.app.workspace.command_journal import CommandRecord, commands
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import Role
from skillgit.app.workspace.live import (
    LiveLook,
    LiveProgress,
    Standing,
    live,
    live_history,
    stage_progress,
    stop_after_step,
    stop_now,
)
from skillgit.app.workspace.shipped_configurations import USUAL
from skillgit.app.workspace.skills_here import has_tasks
from skillgit.app.workspace.workspace import Workspace, change_stamp
from skillgit.domain.cost import Cost
from skillgit.domain.event import RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.ids import check_run_name
from skillgit.domain.text_diff import DiffAllowance
from skillgit.errors import NotFoundError, SkillgitError, UsageError
from skillgit.verbs.config_form import FormSection, chosen_config, configurations, form_of, of_owner_only
from skillgit.verbs.diff import TEXT_DIFF, DiffRequest
from skillgit.verbs.log import LOG
from skillgit.verbs.runs import RUNS, RunsRequest
from skillgit.verbs.setup import CHECKUP, Checkup, DoctorRequest
from skillgit.verbs.train import TRAIN
from skillgit.verbs.verb import Plan
from skillgit.view.curve import course, run_curve
from skillgit.view.progress import state, steps_at, window_title
from skillgit.web.rendering import Answer, Page, Stream, Visit, address, fragment, page, redirect

DEMO: Final = "demo"
_FIELD: Final = "o."  # what the names of fields for keys begin with
_CHECKING: Final = threading.Lock()
_LAUNCHING: Final = threading.Lock()
_newest: dict[str, int] = {}  # by operator, the number of the check that was asked for last


class RunChoice(NamedTuple):
    """What a form says: a configuration or a run, what is asked of ``train``, and the keys that differ."""

    config: str
    source: str  # the run whose settings are taken; empty for a configuration
    request: TrainRequest
    sections: tuple[FormSection, ...]
    changes: Mapping[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        return TRAIN.words(self.request)


class Findings(NamedTuple):
    """What a dry run and a check-up say of a choice."""

    plan: Plan | None = None
    checkup: Checkup | None = None
    error: SkillgitError | None = None
    key: str = ""  # the key that the error is about; empty if it is about none

    @property
    def message(self) -> str:
        """What is wrong; a form says it at the field, and not as an option of a command."""
        text = str(self.error or "")
        _, mark, rest = text.partition(f": {self.key}")
        return f"{self.key}{rest}" if text.startswith("-o ") and mark else text


@page("/new", Role.OPERATOR)
def new_page(visit: Visit) -> Answer:
    # with the script the check comes at once; a page without it has a button
    return _new_page(visit, _choice(visit), None)


@page("/new/check", Role.OPERATOR, "POST")
def check_page(visit: Visit) -> Answer:
    choice, name = _choice(visit), visit.access.name
    number = _newest[name] = _newest.get(name, 0) + 1
    with _CHECKING:
        is_outrun = visit.value("part") and _newest[name] != number
        findings = None if is_outrun else _findings(visit, choice)
    if visit.value("part"):
        check, verdict = (fragment("new.html", part, findings=findings, choice=choice) for part in ("check", "verdict"))
        return HTMLResponse(f'{check}<div hidden data-for="verdict">{verdict}</div>')
    return _new_page(visit, choice, findings)


@page("/new", Role.OPERATOR, "POST")
def launch_page(visit: Visit) -> Answer:
    choice = _choice(visit)
    run = check_run_name(choice.request.run or "")
    back, context = address("run", run, "live"), visit.context
    with _LAUNCHING:
        if any(record.runs and record.back == back for record in commands(context)):
            return redirect(back)  # the second click
        with Workspace(context) as workspace:
            names = _run_names(workspace)
        if run in names or live(context, run).standing is not Standing.IDLE:
            error = UsageError(f"there is a run {run} already", hint="give the new one another name")
            return _new_page(visit, choice, Findings(error=error, key="run"))
        findings = _findings(visit, choice)
        if findings.error is not None:
            return _new_page(visit, choice, findings)
        visit.start(choice.words, back=back)
    return redirect(back)


def _new_page(visit: Visit, choice: RunChoice, findings: Findings | None) -> Page:
    return Page(
        "new.html",
        "New run",
        (*choice.words, "--dry-run"),
        status=200 if findings is None or findings.error is None else 400,
        choice=choice,
        findings=findings,
        configurations=configurations(visit.context),
        sources=_run_names(visit.workspace),
    )


def _run_names(workspace: Workspace) -> list[str]:
    return [row.name for row in RUNS.ask(workspace, RunsRequest()).rows]


def _choice(visit: Visit) -> RunChoice:
    usual = USUAL if has_tasks(visit.workspace) else DEMO
    source, config = visit.value("from"), visit.value("config") or usual
    if config not in configurations(visit.context):
        raise UsageError(f"there is no configuration '{config}' here", hint="choose one of the list")
    sections = form_of(chosen_config(visit.workspace, config, source))
    changes = {}
    for field in (field for section in sections for field in section.fields):
        texts = visit.form.get(f"{_FIELD}{field.key}")
        # of a switch there is a hidden "false" before the box, so that the last one counts
        if texts and (text := texts[-1].strip()) != field.text.strip():
            changes[field.key] = text
    filled_sections = (
        replace(section, fields=tuple(replace(one, text=changes.get(one.key, one.text)) for one in section.fields))
        for section in sections
    )
    stem = (source or config).removesuffix(".yaml").removesuffix(".yml").removesuffix("/default").rpartition("/")[2]
    stem = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in stem).strip("-").lower() or "run"
    names = _run_names(visit.workspace)
    free_names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(names) + 3))
    request = TrainRequest(
        config=None if source else config,
        run=visit.value("run").strip() or next(name for name in free_names if name not in names),
        start=f"{source}/v0" if source else None,
        overrides=tuple(f"{key}={text}" for key, text in changes.items()),
    )
    return RunChoice(config, source, request, tuple(filled_sections), changes)


def _findings(visit: Visit, choice: RunChoice) -> Findings:
    """Return what a dry run and a check-up say; no model is called and nothing is written."""
    try:
        check_run_name(choice.request.run or "")
        # before anything is loaded: a value may name a file with code
        for key, text in () if visit.access.owns else choice.changes.items():
            if of_owner_only(key, text):
                raise UsageError(
                    f"your link does not allow this value for {key}",
                    hint="it may name a file, a program or an address; ask the person who started the server",
                )
        plan = TRAIN.plan(visit.workspace, choice.request)
    except SkillgitError as error:
        text = str(error)
        keys = [field.key for section in choice.sections for field in section.fields if field.key in text]
        keys.sort(key=lambda key: (key in choice.changes, len(key)), reverse=True)
        return Findings(error=error, key=next(iter(keys), "run" if "run" in text and "name" in text else ""))
    if choice.source:
        return Findings(plan)
    request = DoctorRequest(config=choice.config, overrides=choice.request.overrides, call=False)
    return Findings(plan, CHECKUP.ask(visit.workspace, request))


LINES: Final = 40  # of the log
_CHANGES: Final = frozenset({EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SLOW_MERGED})
_DRAWN_EVERY_S: Final = 2.0  # what the history says, at most: a fast run writes several events a second
CAPS: Final = {"max_calls": int, "max_tokens": int, "max_usd": float}


@page("/run/{run}/live")
def live_page(visit: Visit) -> Answer:
    run, look, command = _look(visit)
    values = {**_current(look, command), **_recorded(visit.workspace, run)}
    return Page(
        "live.html",
        f"{run}, live",
        LOG.words(LogRequest(words=(run,))),
        run=run,
        continues=_continuing(look, run),
        **values,
    )


@page("/run/{run}/live/stream")
def live_stream(visit: Visit) -> Answer:
    run, *_ = _look(visit)
    recorded: dict[str, str] = {}
    drawn_of, drawn_s = "", 0.0

    def look(workspace: Workspace) -> dict[str, str]:
        """Look again; what the history says is drawn only where it changed, and not at every event."""
        nonlocal recorded, drawn_of, drawn_s
        version, now_s = change_stamp(workspace.context), time.monotonic()
        if version != drawn_of and (not recorded or now_s - drawn_s >= _DRAWN_EVERY_S):
            values = {"run": run, **_recorded(workspace, run)}
            recorded = {part: fragment("live.html", part, **values) for part in ("curve", "log", "change")}
            drawn_of, drawn_s = version, now_s
        values = {"run": run, **_current(*_started(workspace.context, run))}
        return {
            "notice": "",
            **{part: fragment("live.html", part, **values) for part in ("now", "failing")},
            **recorded,
        }

    return Stream(look)


def _look(visit: Visit) -> tuple[str, LiveLook, CommandRecord | None]:
    """Return a run, how it is going, and its newest command; refuse a run of which nothing is known here."""
    run = check_run_name(visit.parameters["run"])
    look, command = _started(visit.context, run)
    if look.standing is Standing.IDLE and command is None and live_history(visit.workspace, run, 1) is None:
        raise NotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    return run, look, command


def _started(context: Context, run: str) -> tuple[LiveLook, CommandRecord | None]:
    """Return how a run is going, and where no process works on it the newest command of a page that trained it."""
    look, back = live(context, run), address("run", run, "live")
    return look, None if look.is_alive else next((record for record in commands(context) if record.back == back), None)


def _current(look: LiveLook, command: CommandRecord | None) -> dict[str, Any]:
    """Return what the snapshot says."""
    snapshot = look.snapshot
    end = snapshot.end if look.standing is Standing.ENDED and snapshot is not None else None
    tone = _TONES.get(look.standing, "faint")
    if end is not None:
        tone = "best" if end.outcome in {"improved", "ceiling"} else "rejected"
    return {
        "look": look,
        "snapshot": snapshot,
        "steps": steps_at(snapshot) if snapshot is not None else "",
        "stages": [*stage_progress(snapshot, is_alive=look.is_alive)],
        "caps": [*_caps(snapshot)] if snapshot is not None else [],
        "outcome": {"words": state(look), "tone": tone},
        "phase": _phase(look),
        "window_title": window_title(look),
        "failure": command if look.standing is Standing.IDLE and command is not None and command.code else None,
    }


_TONES: Final = {
    Standing.STARTING: "slow",
    Standing.RUNNING: "best",
    Standing.STOPPING: "slow",
    Standing.KILLED: "rejected",
}


def _caps(snapshot: LiveProgress) -> Iterator[tuple[str, float, float, float | None]]:
    """Yield for each cap its name, what is spent of it, the cap, and what will be spent at the end."""
    limits = snapshot.limits
    amounts: dict[str, tuple[float | None, Callable[[Cost], float]]] = {
        "calls": (limits.calls, lambda cost: cost.calls),
        "tokens": (limits.tokens, lambda cost: cost.tokens_in + cost.tokens_out),
        "dollars": (limits.usd, lambda cost: cost.usd),
    }
    for name, (cap, amount) in amounts.items():
        if cap is not None:
            yield name, amount(snapshot.spent), cap, None if snapshot.projected is None else amount(snapshot.projected)


def _recorded(workspace: Workspace, run: str) -> dict[str, Any]:
    """Return what the history says."""
    history = live_history(workspace, run, LINES)
    rows = history.rows if history is not None else ()
    drawings = {} if history is None else course(run_curve(history.run, history.course, history.events))
    newest = next((row for row in reversed(rows) if row.kind in _CHANGES), None)
    change = newest and TEXT_DIFF.ask(workspace, DiffRequest(a=newest.commit))
    return {
        "row": history.run if history is not None else None,
        "rows": rows[::-1],
        "drawings": drawings,
        "newest": newest,
        "difference": DiffAllowance().take(change.files) if change else None,
        "event_address": partial(address, "run", run),
    }


def _phase(look: LiveLook) -> str:
    """Return ``alive`` for what can be stopped, ``over`` for what can go on, else ``starting`` or ``finished``."""
    if look.standing is Standing.STARTING:
        return "starting"
    if look.is_alive:
        return "alive"
    end = look.snapshot.end if look.standing is Standing.ENDED and look.snapshot is not None else None
    is_finished = end is not None and end.outcome in set(RunOutcome) and RunOutcome(end.outcome).ends_run
    return "finished" if is_finished else "over"


def _continuing(look: LiveLook, run: str) -> tuple[str, ...]:
    """Return the words that go on with the run; none where nothing is left of it or a process works on it."""
    if look.is_alive:
        return ()
    words = shlex.split(look.snapshot.command) if look.snapshot is not None else []
    # the file is one that a process of ours wrote; anything else in it starts nothing
    return (
        tuple(words[1:]) if words[:2] == ["skillgit", "train"] and run in words else TRAIN.words(TrainRequest(run=run))
    )


@page("/run/{run}/stop", Role.OPERATOR, "POST")
def stop_page(visit: Visit) -> Answer:
    run, stops = check_run_name(visit.parameters["run"]), {"step": stop_after_step, "now": stop_now}
    if visit.value("how") not in stops:
        raise UsageError("this form does not say how to stop", hint="reload the page and press one of its buttons")
    stops[visit.value("how")](visit.context, run)
    return redirect(address("run", run, "live"))


@page("/run/{run}/continue", Role.OPERATOR, "POST")
def continue_page(visit: Visit) -> Answer:
    run = check_run_name(visit.parameters["run"])
    look, back, caps = live(visit.context, run), address("run", run, "live"), list[str]()
    for name, kind in CAPS.items():
        if not (text := visit.value(name).strip()):
            continue
        try:
            number = kind(text)
        except ValueError as error:
            raise UsageError(f"'{text}' is not a number for {name}", hint="write it in digits") from error
        if not number > 0:
            raise UsageError(f"{name} has to be more than 0", hint="leave it empty for no cap")
        caps += (f"--{name.replace('_', '-')}", str(number))
    if not look.is_alive:
        visit.start([*_continuing(look, run), *caps], back=back)
    return redirect(back)
