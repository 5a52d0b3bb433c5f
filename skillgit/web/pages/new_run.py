"""A new run: choose, plan, launch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from skillgit.app.history.live import Standing, live
from skillgit.app.history.status import runs
from skillgit.app.setup.config.form import FormField, FormSection, chosen_config, configurations, form_of, of_owner_only
from skillgit.app.setup.plan import Plan
from skillgit.app.train.doctor import Checkup, doctor
from skillgit.app.train.requests import TrainRequest
from skillgit.app.train.train import plan_train
from skillgit.app.workspace.command_journal import commands
from skillgit.app.workspace.context import Context
from skillgit.domain.ids import check_run_name
from skillgit.errors import SkillgitError, UsageError
from skillgit.web.commands import start
from skillgit.web.rendering import Page, PageRoute, Redirect, Role, Visit, address

DEMO: Final = "demo"
_FIELD: Final = "o."  # what the names of fields for keys begin with
_CHECKING: Final = threading.Lock()
_LAUNCHING: Final = threading.Lock()
_newest: dict[str, int] = {}  # by operator, the number of the check that was asked for last


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """What a form says: a configuration or a run, the run's name, and the keys that differ."""

    config: str
    source: str  # the run whose settings are taken; empty for a configuration
    run: str
    sections: tuple[FormSection, ...]
    overrides: tuple[str, ...]
    changed: frozenset[str]

    @property
    def start(self) -> str | None:
        return f"{self.source}/v0" if self.source else None

    @property
    def words(self) -> tuple[str, ...]:
        """The command behind ``skillgit``."""
        begin = ("--from", f"{self.source}/v0") if self.source else (self.config,)
        return ("train", *begin, *(word for option in self.overrides for word in ("-o", option)), "--run", self.run)

    @property
    def request(self) -> TrainRequest:
        config = None if self.source else self.config
        return TrainRequest(config=config, overrides=self.overrides, run=self.run, start=self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    plan: Plan | None = None
    checkup: Checkup | None = None
    error: SkillgitError | None = None
    key: str = ""  # the key that the error is about; empty if it is about none

    @property
    def message(self) -> str:
        """What is wrong; a form says it beside the field, and not as an option of a command."""
        text = str(self.error or "")
        _, mark, rest = text.partition(f": {self.key}")
        return f"{self.key}{rest}" if text.startswith("-o ") and mark else text


def new_page(visit: Visit) -> Page:
    choice = _choice(visit)
    # with the script the check comes at once; a page without it has a button
    return _page(visit, choice, findings=None)


def check_page(visit: Visit) -> Page:
    choice, name = _choice(visit), visit.access.name
    number = _newest[name] = _newest.get(name, 0) + 1
    with _CHECKING:
        if visit.value("part") and _newest[name] != number:
            return Page(template="new_check.html", title="", values={"findings": None, "choice": choice})
        findings = _findings(visit, choice)
    if visit.value("part"):
        return Page(template="new_check.html", title="", values={"findings": findings, "choice": choice})
    return _page(visit, choice, findings=findings)


def launch_page(visit: Visit) -> Page | Redirect:
    choice = _choice(visit)
    run = check_run_name(choice.run)
    back, context = address("run", run, "live"), visit.context
    with _LAUNCHING:
        if any(record.runs and record.back == back for record in commands(context)):
            return Redirect(address=back)  # the second click
        is_taken = any(row.name == run for row in runs(context)) or live(context, run).standing is not Standing.IDLE
        if is_taken:
            error = UsageError(f"there is a run {run} already", hint="give the new one another name")
            return _page(visit, choice, findings=Findings(error=error, key="run"))
        findings = _findings(visit, choice)
        if findings.error is not None:
            return _page(visit, choice, findings=findings)
        start(visit, choice.words, back=back)
    return Redirect(address=back)


def _page(visit: Visit, choice: RunChoice, *, findings: Findings | None) -> Page:
    return Page(
        template="new.html",
        title="New run",
        command=(*choice.words, "--dry-run"),
        status=200 if findings is None or findings.error is None else 400,
        values={
            "choice": choice,
            "findings": findings,
            "configurations": configurations(visit.context),
            "sources": [row.name for row in runs(visit.context)],
        },
    )


def _choice(visit: Visit) -> RunChoice:
    source, config = visit.value("from"), visit.value("config") or DEMO
    if config not in configurations(visit.context):
        raise UsageError(f"there is no configuration '{config}' here", hint="choose one of the list")
    sections = form_of(chosen_config(visit.context, config, source))
    changes = dict(_changes(visit, sections))
    filled_sections = tuple(
        replace(
            section, fields=tuple(replace(field, text=changes.get(field.key, field.text)) for field in section.fields)
        )
        for section in sections
    )
    return RunChoice(
        config=config,
        source=source,
        run=visit.value("run").strip() or _free_name(visit.context, source or config),
        sections=filled_sections,
        overrides=tuple(f"{key}={text}" for key, text in changes.items()),
        changed=frozenset(changes),
    )


def _changes(visit: Visit, sections: Sequence[FormSection]) -> Iterator[tuple[str, str]]:
    for section in sections:
        for field in section.fields:
            texts = visit.form.get(f"{_FIELD}{field.key}")
            # of a switch there is a hidden "false" before the box, so that the last one counts
            if texts and (text := texts[-1].strip()) != field.text.strip():
                yield field.key, text


def _free_name(context: Context, base: str) -> str:
    names = {row.name for row in runs(context)}
    stem = base.rpartition("/")[2].removesuffix(".yaml").removesuffix(".yml")
    stem = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in stem).strip("-").lower() or "run"
    return next(
        name
        for number in range(1, len(names) + 3)
        if (name := stem if number == 1 else f"{stem}-{number}") not in names
    )


def _findings(visit: Visit, choice: RunChoice) -> Findings:
    """Return what a dry run and a check-up say; no model is called and nothing is written."""
    context = visit.context
    try:
        check_run_name(choice.run)
        # before anything is loaded: a value may name a file with code
        _check_permission(visit, choice)
        plan = plan_train(context, choice.request)
    except SkillgitError as error:
        return Findings(error=error, key=_about(error, choice))
    checkup = None
    if not choice.source:
        look = doctor(context, choice.config, choice.overrides, call=False)
        checkup = look if isinstance(look, Checkup) else None
    return Findings(plan=plan, checkup=checkup)


def _check_permission(visit: Visit, choice: RunChoice) -> None:
    for option in () if visit.access.owns else choice.overrides:
        key, _, text = option.partition("=")
        if of_owner_only(key, text):
            raise UsageError(
                f"your link does not allow this value for {key}",
                hint="it may name a file, a program or an address; ask whoever started the server",
            )


def _about(error: SkillgitError, choice: RunChoice) -> str:
    text = str(error)
    fields: list[FormField] = [field for section in choice.sections for field in section.fields]
    keys = sorted((field.key for field in fields if field.key in text), key=len, reverse=True)
    changes = [key for key in keys if key in choice.changed]
    return next(iter(changes or keys), "run" if "run" in text and "name" in text else "")


ROUTES = (
    PageRoute(path="/new", page=new_page, role=Role.OPERATOR),
    PageRoute(path="/new/check", page=check_page, role=Role.OPERATOR, method="POST"),
    PageRoute(path="/new", page=launch_page, role=Role.OPERATOR, method="POST"),
)
