"""What an operator can do with an event, each as a command that is shown, with its cost, before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from skillgit.app.deliver.requests import Agent, Scope
from skillgit.app.workspace.invitations import Role
from skillgit.app.workspace.request import parameters
from skillgit.app.workspace.revision import resolve
from skillgit.domain.address import parse
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.ids import check_run_name
from skillgit.errors import RevisionNotFoundError, SkillgitError, UsageError
from skillgit.index.rows import LogRow
from skillgit.verbs.command_line import verb_of
from skillgit.verbs.verb import Effect
from skillgit.web.rendering import Answer, Page, Visit, address, page

_LONGEST: Final = 4_000


class FormEntry(NamedTuple):
    """A field of the request that the form asks for: a line, a text, or one of ``choices``."""

    name: str
    label: str
    choices: tuple[str, ...] = ()
    is_long: bool = False
    is_optional: bool = False
    hint: str = ""
    check: Callable[[str], object] = str

    @property
    def example(self) -> str:
        """What stands for its value in the command that is shown."""
        return next(iter(self.choices), self.label.split()[0].upper())

    def read(self, visit: Visit) -> str | None:
        value = visit.value(self.name).strip()
        if self.choices and value not in self.choices:
            raise UsageError(f"{self.label} is one of {', '.join(self.choices)}", hint="choose one in the form")
        if not value and not self.is_optional:
            raise UsageError(f"{self.label} is missing", hint="go back and fill it in")
        if len(value) > _LONGEST:
            raise UsageError(f"{self.label} has more than {_LONGEST:,} characters", hint="write it shorter")
        if value:
            self.check(value)
        return value or None


class Action(NamedTuple):
    """A command for an event: which events it fits, what the event says of its request, and what the form asks for."""

    name: str
    title: str
    effect: str
    verb: str
    fits: Callable[[LogRow], bool]
    request: Callable[[LogRow], Mapping[str, object]]
    entries: tuple[FormEntry, ...] = ()


def _is_version(row: LogRow) -> bool:
    return row.version is not None


ACTIONS: Final = (
    Action(
        *("eval", "Measure on the test split"),
        *("The scores become a note on the commit. Each look at the test split is counted.", "eval"),
        fits=_is_version,
        request=lambda row: {"revisions": (str(row.address),), "split": "test"},
    ),
    Action(
        *("promote", "Promote to the trunk"),
        *("A merge commit brings the skill's folder to the trunk; nothing else there changes.", "promote"),
        fits=_is_version,
        request=lambda row: {"revision": str(row.address)},
    ),
    Action(
        *("install", "Install for an agent"),
        "The skill is put where the agent looks for it; what was there is kept, and uninstall brings it back.",
        "install",
        fits=lambda row: row.version is not None or row.kind in {EventKind.REJECTED, EventKind.SLOW_PROPOSED},
        request=lambda row: {"words": (str(row.address),)},
        entries=(
            FormEntry("to", "Agent", tuple(agent.value for agent in Agent)),
            FormEntry(
                *("scope", "Scope", tuple(scope.value for scope in Scope)),
                hint="user: for everything you do; project: for this repository only",
            ),
        ),
    ),
    Action(
        *("fork", "Fork a new run"),
        *("A run of its own begins with this text, its score and the configuration of its run.", "fork"),
        fits=_is_version,
        request=lambda row: {"revision": str(row.address)},
        entries=(
            FormEntry(
                *("name", "Name of the new run"), is_optional=True, hint="made up if empty", check=check_run_name
            ),
        ),
    ),
    Action(
        *("restore", "Restore this text"),
        *("It becomes the newest version of its run; the versions in between stay.", "revert"),
        fits=lambda row: row.version is not None and not row.is_head,
        request=lambda row: {"to": str(row.address)},
    ),
    Action(
        *("retry", "Try rejected candidates again"),
        *("The edits of the run's rejected candidates are applied to its newest version and measured.", "cherry-pick"),
        fits=lambda row: row.kind == EventKind.REJECTED,
        request=lambda row: {"run": row.run, "rejected": True, "keep": True},
    ),
    Action(
        *("note", "Leave a note"),
        *("The steps that come read it as advice; it moves no score and no gate.", "note"),
        fits=lambda _: True,
        request=lambda row: {"revision": str(row.address)},
        entries=(FormEntry("message", "Note", is_long=True),),
    ),
)


def _fitting(visit: Visit, action: Action) -> LogRow:
    """Return the event of an address that ``action`` fits."""
    text = f"{visit.parameters['run']}/{visit.parameters['event']}"
    row = resolve(visit.workspace, text).row if parse(text) else None
    if row is None or not action.fits(row):
        raise RevisionNotFoundError(f"'{action.title}' does not fit {text}", hint=f"skillgit show {text}")
    return row


def action_page(action: Action, visit: Visit) -> Answer:
    """Show the command, what it changes, and what it would cost."""
    row = _fitting(visit, action)
    verb = verb_of(action.verb)
    request = verb.request(**action.request(row), **{entry.name: entry.example for entry in action.entries})
    plan, error = None, None
    if verb.effect_of(request) is Effect.PAYS:
        try:
            plan = verb.plan(visit.workspace, request)
        except SkillgitError as refusal:
            error = refusal
    return Page(
        *("action.html", f"{action.title}: {row.address}"),
        action=action,
        row=row,
        run=row.run,
        words=verb.words(request),
        warning=verb.question(request),
        plan=plan,
        error=error,
    )


def run_action(action: Action, visit: Visit) -> Answer:
    row = _fitting(visit, action)
    verb = verb_of(action.verb)
    kinds = {part.name: part.plain_type for part in parameters(verb.request)}
    values = {entry.name: entry.read(visit) for entry in action.entries}
    typed = {
        name: kinds[name](text) if text and issubclass(kinds[name], Enum) else text for name, text in values.items()
    }
    return visit.start(
        verb.words(verb.request(**action.request(row), **typed)), back=address("run", row.run, row.label)
    )


for _action in ACTIONS:
    _path = f"/run/{{run}}/{{event}}/{_action.name}"
    page(_path, Role.OPERATOR)(partial(action_page, _action))
    page(_path, Role.OPERATOR, "POST")(partial(run_action, _action))
