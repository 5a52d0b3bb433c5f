"""A verb: what may be asked, what that changes, and the answer. Command line, forms, tools and manuals are made of it.

    @dataclass(frozen=True, kw_only=True)
    class UseRequest:
        \"\"\"Names like v7, best and head refer to it.\"\"\"

        run: Annotated[str, Arg("RUN", words="runs")]


    def _use(session: VerbSession, request: UseRequest) -> Answer[RunRow]:
        row = use(session.context, request.run)
        return Answer("use/1", row, [f"default run is now {row.name}"], document={"run": row})


    USE = Verb("use", UseRequest, _use, Effect.HISTORY)

The catalogue names its section and its module, and says in one line what it does. A page asks
``USE.ask(workspace, UseRequest(run="demo"))`` and gets the row. Where a command answers in several ways, each is a verb
of the same name and request, with the type of its own value; the one that the catalogue names chooses among them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

from skillgit.app.workspace.request import command_words
from skillgit.errors import ExitCode, SkillgitError
from skillgit.lazy import loaded_on_use
from skillgit.view.surface import Screen
from skillgit.view.table import Table

with loaded_on_use():
    from skillgit.app.setup import plan as plans
    from skillgit.view import progress

if TYPE_CHECKING:
    from skillgit.app.exchange.connection import Listener
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.view.progress import SilentWatcher

Plan: TypeAlias = "plans.Plan"
Q = TypeVar("Q")
R_co = TypeVar("R_co", covariant=True)


class Effect(StrEnum):
    """What carrying out a request may change, besides answering it."""

    READS = "reads"  # nothing
    FILES = "files"
    HISTORY = "history"  # refs, notes or settings of this repository
    SENDS = "sends"  # another repository
    PAYS = "pays"  # it may ask models


EFFECTS: Final = {
    Effect.READS: "",
    Effect.FILES: "It writes files.",
    Effect.HISTORY: "It changes refs of this repository.",
    Effect.SENDS: "It sends runs to another repository.",
    Effect.PAYS: "It may call models, which may cost money.",
}
"""What a person reads before such a request is carried out."""


class Form(StrEnum):
    """In which form an answer is wanted."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    PLAIN = "plain"
    VALUE = "value"  # not printed: a page, a screen or a tool shows the value


DOCUMENT: Final = (Form.JSON,)
"""The machine formats of an answer that is one thing."""
LIST: Final = (Form.JSON, Form.PLAIN)
"""Those of a list."""


@dataclass(slots=True)
class Answer(Generic[R_co]):
    """What a verb answers, for every form.

    Attributes:
        schema: The shape of the JSON document; of a list, its table says it.
        result: The value that answers, and the document's body; of a list, what that has before the rows.
        lines: What people read; bytes are shown as they are. They are made when they are read.
        table: The list that the rows belong to.
        rows: The rows of a list; without ``lines`` the table draws them.
        exit_code: What the command ends with.
        pager: Whether a terminal pages it.
        notes: Sentences in addition to the answer, each with a hint or none; or a hint alone.
        error: What the command ends with after its answer: a part of the work failed.
        document: The document's body where it is not the value.
    """

    schema: str = ""
    result: R_co = None  # type: ignore[assignment]
    lines: Iterable[str | bytes] | None = None
    table: Table[Any] | None = None
    rows: Iterable[object] = ()
    exit_code: int = ExitCode.OK
    pager: bool = False
    notes: Sequence[tuple[str, str]] = ()
    error: SkillgitError | None = None
    document: object = None

    @property
    def body(self) -> object:
        """What the JSON document has, but for the rows of a list."""
        return self.result if self.document is None else self.document

    def for_people(self, screen: Screen, now: datetime) -> Iterable[str | bytes]:
        """Return the lines that people read."""
        if self.lines is not None:
            return self.lines
        return () if self.table is None else self.table.lines(tuple(self.rows), screen, now=now)


class VerbSession(ABC):
    """Who asks: what a verb works with, and how it speaks while it works.

    What only reads reads in the session's workspace; what writes opens one for itself, in the session's context.
    """

    workspace: Workspace
    form: Form
    quiet: bool

    @property
    def context(self) -> Context:
        return self.workspace.context

    @property
    @abstractmethod
    def screen(self) -> Screen:
        """Where people read the answer."""

    @property
    def screen_for_diff(self) -> Screen:
        """Where people read a diff: without colour if a pager colours diffs itself."""
        return self.screen

    @property
    def now(self) -> datetime:
        return self.context.clock()

    @property
    def tabular(self) -> bool:
        return self.form is Form.PLAIN

    @abstractmethod
    def note(self, *sentences: str, hint: str = "") -> None:
        """Say what is neither data nor an error, and what to do about it."""


@dataclass(slots=True)
class ReadingSession(VerbSession):
    """A session of something that shows an answer, as a pane of the screens does; it keeps what is noted."""

    workspace: Workspace
    where: Screen = field(default_factory=Screen)
    form: Form = Form.TEXT
    quiet: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def screen(self) -> Screen:
        return self.where

    def note(self, *sentences: str, hint: str = "") -> None:
        self.notes += [*sentences, *([f"hint: {hint}"] if hint else [])]

    def watching(self, work: str) -> AbstractContextManager[SilentWatcher[Any]]:
        """Show no progress: what takes long runs as a command, and here it is only planned."""
        del work
        return nullcontext(progress.SilentWatcher())


class TerminalSession(VerbSession):
    """A session with the person who typed the command: it asks back, shows progress and writes while it works.

    Verbs that run in this process only; pages and screens start them as commands of their own.
    """

    @property
    @abstractmethod
    def answers(self) -> bool:
        """Whether there is a person to answer a question."""

    @property
    @abstractmethod
    def notes_screen(self) -> Screen:
        """Where notes, questions and progress are read."""

    @property
    @abstractmethod
    def listener(self) -> Listener:
        """Who hears what another repository says, and answers its questions."""

    @property
    @abstractmethod
    def form_words(self) -> tuple[str, ...]:
        """The options that ask for the form of this session."""

    @abstractmethod
    def watch_run(self, words: Sequence[str], *, instead: str) -> int:
        """Train by a command line in a process of its own, show the run, and return how that process ended.

        ``instead`` is what to type where there is no terminal.
        """

    @abstractmethod
    def present(self, answer: Answer[object]) -> None:
        """Print an answer before the command ends, as that of one that fails."""

    @abstractmethod
    def write(self, lines: Iterable[str | bytes]) -> None:
        """Write data before the answer."""

    @abstractmethod
    def confirm(self, question: str, *, default: bool = False) -> bool: ...

    @abstractmethod
    def edit(self, text: str, extension: str = ".txt") -> str | None:
        """Return what the user's editor makes of ``text``; None if nothing."""

    @abstractmethod
    def stdin(self) -> str: ...

    @abstractmethod
    def heartbeat(self) -> AbstractContextManager[Callable[[str], None]]:
        """Say what takes long while the block runs; it hears in a few words what is being done."""

    @abstractmethod
    def surface(self, name: Literal["mcp", "tui", "web"]) -> ModuleType:
        """Return the module that serves another surface, which verbs do not know."""

    @abstractmethod
    def watching(
        self, work: Literal["training", "measuring", "fetching"]
    ) -> AbstractContextManager[SilentWatcher[Any]]:
        """Show the progress of some work while the block runs."""


@dataclass(frozen=True, slots=True)
class Verb(Generic[Q, R_co]):
    """A command.

    Attributes:
        name: What it is called, ``tasks add`` for a command of a group.
        request: What it may be asked. The docstring is its help, behind the line of the catalogue.
        run: Carries it out.
        effect: What that changes, or a function that says it of a request.
        forms: The machine formats of its answer.
        warning: What a person reads before it runs, where the effect does not say it.
        rewrite: Gives the words of a command line in the form that options are declared in.
    """

    name: str
    request: type[Q]
    run: Callable[[Any, Q], Answer[R_co]]
    effect: Effect | Callable[[Q], Effect] = Effect.READS
    forms: Sequence[Form] = DOCUMENT
    warning: str = ""
    rewrite: Callable[[Sequence[str]], list[str]] | None = None

    def words(self, request: Q) -> tuple[str, ...]:
        """Return the command line, behind ``skillgit``, that asks for ``request``."""
        return (*self.name.split(), *command_words(request))

    def effect_of(self, request: Q) -> Effect:
        """Return what carrying out ``request`` may change; a dry run changes nothing."""
        if getattr(request, "dry_run", False):
            return Effect.READS
        return self.effect(request) if callable(self.effect) else self.effect

    def question(self, request: Q) -> str:
        """Return what a person reads before ``request`` is carried out; empty where it changes nothing."""
        effect = self.effect_of(request)
        return "" if effect is Effect.READS else self.warning or EFFECTS[effect]

    def answer(self, workspace: Workspace, request: Q) -> Answer[R_co]:
        """Return what answers ``request`` for a surface that shows the value and the rows, and prints no lines."""
        return self.run(ReadingSession(workspace.asked(request), form=Form.VALUE), request)

    def ask(self, workspace: Workspace, request: Q) -> R_co:
        """Return the value that answers ``request``."""
        return self.answer(workspace, request).result

    def plan(self, workspace: Workspace, request: Q) -> Plan:
        """Return what carrying out ``request``, which may ask models, would do and cost."""
        dry: Any = request
        plan = self.ask(workspace, replace(dry, dry_run=True))
        if not isinstance(plan, plans.Plan):
            raise TypeError(f"{self.name} does not plan")
        return plan
