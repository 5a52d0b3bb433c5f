"""What an operator can do with an event, each as a command that is shown, with its cost, before it runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from skillgit.app.deliver.requests import Agent, Scope
from skillgit.app.interventions.cherry_pick import retry
from skillgit.app.interventions.requests import CherryPickRequest
from skillgit.app.measure.eval import evaluate
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import Role
from skillgit.app.workspace.revision import resolve
from skillgit.domain.address import parse
from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import RevisionNotFoundError, SkillgitError, UsageError
from skillgit.index.rows import LogRow
from skillgit.view.commands import asks
from skillgit.view.progress import SilentWatcher
from skillgit.web.rendering import Answer, Page, Visit, address, page

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
_NOTE_LENGTH: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FormEntry:
    """A field of a form: a line, a text, or one of ``choices``."""

    name: str
    label: str
    choices: tuple[str, ...] = ()
    is_long: bool = False
    is_optional: bool = False
    hint: str = ""

    def read(self, visit: Visit) -> str:
        value = visit.value(self.name).strip()
        if self.choices and value not in self.choices:
            raise UsageError(f"{self.label} is one of {', '.join(self.choices)}", hint="choose one in the form")
        if not value and not self.is_optional:
            raise UsageError(f"{self.label} is missing", hint="go back and fill it in")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A command for an event: which events it fits, what it asks for, and its words."""

    name: str
    title: str
    effect: str
    fits: Callable[[LogRow], bool]
    words: Callable[..., tuple[str, ...]]  # of the event and of the values of the entries
    entries: tuple[FormEntry, ...] = ()
    plan: Callable[[Context, LogRow], object] | None = None  # a dry run of a command that asks models

    def placeholder(self, row: LogRow) -> tuple[str, ...]:
        return self.words(row, *(entry.name.upper() for entry in self.entries))


def _is_version(row: LogRow) -> bool:
    return row.version is not None


def _fork(row: LogRow, name: str) -> tuple[str, ...]:
    if name and name != "NAME" and not _NAME.fullmatch(name):
        raise UsageError("a run's name has lower-case letters, digits and hyphens", hint="try another name")
    return ("fork", str(row.address), *([name] if name else []))


def _note(row: LogRow, text: str) -> tuple[str, ...]:
    if text == "-" or len(text) > _NOTE_LENGTH:
        raise UsageError(f"a note is a text of at most {_NOTE_LENGTH:,} characters", hint="write it shorter")
    return ("note", *(["--"] if text.startswith("-") else []), str(row.address), text)


def _eval_plan(context: Context, row: LogRow) -> object:
    request = EvalRequest(revisions=(str(row.address),), split=Split.TEST.value, dry_run=True)
    return evaluate(context, request, SilentWatcher())


def _retry_plan(context: Context, row: LogRow) -> object:
    request = CherryPickRequest(run=row.run, rejected=True, keep=True, dry_run=True)
    return retry(context, request, SilentWatcher())


def _install(row: LogRow, agent: str, scope: str) -> tuple[str, ...]:
    return ("install", str(row.address), "--to", agent, "--scope", scope)


ACTIONS: Final = (
    Action(
        name="eval",
        title="Measure on the test split",
        effect="The scores become a note on the commit. Each look at the test split is counted.",
        fits=_is_version,
        words=lambda row: ("eval", str(row.address), "--split", "test"),
        plan=_eval_plan,
    ),
    Action(
        name="promote",
        title="Promote to the trunk",
        effect="A merge commit brings the skill's folder to the trunk; nothing else there changes.",
        fits=_is_version,
        words=lambda row: ("promote", str(row.address)),
    ),
    Action(
        name="install",
        title="Install for an agent",
        effect="The skill is put where the agent looks for it; what was there is kept, and uninstall brings it back.",
        fits=lambda row: row.version is not None or row.kind in {EventKind.REJECTED, EventKind.SLOW_PROPOSED},
        words=_install,
        entries=(
            FormEntry(name="agent", label="Agent", choices=tuple(agent.value for agent in Agent)),
            FormEntry(
                name="scope",
                label="Scope",
                choices=tuple(scope.value for scope in Scope),
                hint="user: for everything you do; project: for this repository only",
            ),
        ),
    ),
    Action(
        name="fork",
        title="Fork a new run",
        effect="A run of its own begins with this text, its score and the configuration of its run.",
        fits=_is_version,
        words=_fork,
        entries=(FormEntry(name="name", label="Name of the new run", is_optional=True, hint="made up if empty"),),
    ),
    Action(
        name="restore",
        title="Restore this text",
        effect="It becomes the newest version of its run; the versions in between stay.",
        fits=lambda row: row.version is not None and not row.is_head,
        words=lambda row: ("revert", "--to", str(row.address)),
    ),
    Action(
        name="retry",
        title="Try rejected candidates again",
        effect="The edits of the run's rejected candidates are applied to its newest version and measured.",
        fits=lambda row: row.kind == EventKind.REJECTED,
        words=lambda row: ("cherry-pick", "--run", row.run, "--rejected", "--keep"),
        plan=_retry_plan,
    ),
    Action(
        name="note",
        title="Leave a note",
        effect="The steps that come read it as advice; it moves no score and no gate.",
        fits=lambda _: True,
        words=_note,
        entries=(FormEntry(name="text", label="Note", is_long=True),),
    ),
)


def _fitting(visit: Visit, action: Action) -> LogRow:
    """Return the event of an address that ``action`` fits."""
    text = f"{visit.parameters['run']}/{visit.parameters['event']}"
    row = resolve(visit.context, text).row if parse(text) else None
    if row is None or not action.fits(row):
        raise RevisionNotFoundError(f"'{action.title}' does not go with {text}", hint=f"skillgit show {text}")
    return row


def action_page(action: Action, visit: Visit) -> Answer:
    """Show the command, what it changes, and what it would cost."""
    row = _fitting(visit, action)
    words = action.placeholder(row)
    plan: object = None
    error: SkillgitError | None = None
    if action.plan is not None:
        try:
            plan = action.plan(visit.context, row)
        except SkillgitError as refusal:
            error = refusal
    return Page(
        "action.html",
        f"{action.title}: {row.address}",
        action=action,
        row=row,
        run=row.run,
        words=words,
        warning=asks(words),
        plan=plan if isinstance(plan, Plan) else None,
        error=error,
    )


def run_action(action: Action, visit: Visit) -> Answer:
    row = _fitting(visit, action)
    words = action.words(row, *(entry.read(visit) for entry in action.entries))
    return visit.start(words, back=address("run", row.run, row.label))


for _action in ACTIONS:
    _path = f"/run/{{run}}/{{event}}/{_action.name}"
    page(_path, Role.OPERATOR)(partial(action_page, _action))
    page(_path, Role.OPERATOR, "POST")(partial(run_action, _action))
