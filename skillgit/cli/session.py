"""What a command gets to work with: the context of its use case, its streams, and who is at the other end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

import click

from skillgit import mcp, web
from skillgit.app.exchange.connection import Listener
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.request import MisuseError
from skillgit.app.workspace.workspace import Workspace
from skillgit.cli.diagnostics import Diagnostics
from skillgit.cli.output import Output, Pager, choose, paints_diffs
from skillgit.errors import UsageError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.command_line import VerbCommand, shared_notes
from skillgit.verbs.verb import Answer, Form, TerminalSession
from skillgit.view.json_values import picked
from skillgit.view.surface import Screen, can_show_glyphs

with loaded_on_use():
    from skillgit.app.workspace import command_journal
    from skillgit.cli import watchers
    from skillgit.mcp import server as mcp_server
    from skillgit.tui import start as screens
    from skillgit.verbs import tui
    from skillgit.web import server as web_server

if TYPE_CHECKING:
    from skillgit.view.progress import SilentWatcher


def wanted(choice: str, environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Say if a stream gets colour: by ``--color``, NO_COLOR, FORCE_COLOR or CLICOLOR_FORCE, or for a terminal."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal and environ.get("TERM", "dumb") not in {"", "dumb"}


CONTEXT: Final = "skillgit.context"
"""Where the context of a command line notes the one that its command works in."""
_SEAL = f"{int.from_bytes(os.urandom(6))};"  # what marks the colours of this process; see ``Screen``


@dataclass(frozen=True, kw_only=True)
class CommandSession(TerminalSession):
    """One invocation of a command: what it works with, and how it speaks to the user."""

    workspace: Workspace
    output: Output
    diagnostics: Diagnostics
    form: Form = Form.TEXT
    quiet: bool = False

    def present(self, answer: Answer[object]) -> None:
        """Print an answer in the form that was chosen."""
        if self.form is Form.TEXT:
            lines = answer.for_people(self.screen, self.now)
            with self.output.paged() if answer.pager else nullcontext():
                self.write(lines)
        elif (table := answer.table) is not None:
            if self.form is Form.JSON:
                body = answer.body
                head = body if isinstance(body, Mapping) else picked(body, table.head)
                self.output.document(table.schema, {**head, table.rows: [*map(table.record, answer.rows)]})
            else:
                self.output.table(map(table.plain_row, answer.rows))
        elif self.form is Form.JSON:
            self.output.document(answer.schema, answer.body)
        elif self.form is Form.JSONL:
            self.output.records(answer.rows)
        else:
            self.output.table(answer.rows)  # type: ignore[arg-type]
        for sentence, hint in answer.notes:
            self.note(*filter(None, [sentence]), hint=hint)

    @property
    def screen(self) -> Screen:
        return self.output.screen

    @property
    def notes_screen(self) -> Screen:
        return self.diagnostics.screen

    @property
    def answers(self) -> bool:
        return sys.stdin.isatty()

    @property
    def listener(self) -> Listener:
        if self.quiet:
            return Listener(answers=self.answers)
        return Listener(answers=self.answers, watches=self.notes_screen.terminal, tell=self.diagnostics.passing)

    @property
    def screen_for_diff(self) -> Screen:
        screen = self.screen
        if not screen.terminal:
            return screen
        if paints_diffs(choose(self.context.environ, self.context.directory)):
            return Screen(terminal=True, unicode=screen.unicode, width=screen.width)
        return screen

    @property
    def form_words(self) -> tuple[str, ...]:
        return () if self.form is Form.TEXT else (f"--{self.form.value}",)

    def watch_run(self, words: Sequence[str], *, instead: str) -> int:
        """Return what the trainer exited with; 0 if it goes on."""
        if not tui.has_terminal(self):
            raise UsageError("train --tui needs a terminal", hint=instead)
        options = (f"--color={'always' if self.screen.colour else 'never'}",)
        trainer = command_journal.start_command(self.context, tuple(words), options=options)
        run = screens.watch(self.context, trainer, unicode=self.screen.unicode)
        trainer = trainer.now()
        if trainer.code is None:
            name = f"run {run}" if run else "the training"
            hint = f"skillgit tui {run}".rstrip() + ", then L, watches it; K stops it after its step"
            self.diagnostics.note(f"{name} goes on as process {trainer.pid}", hint=hint)
            return 0
        output, errors = trainer.outputs()
        self.output.raw(output)
        self.output.flush()
        sys.stderr.write(errors.decode(errors="replace"))
        return trainer.code

    def note(self, *sentences: str, hint: str = "") -> None:
        self.diagnostics.note(*sentences, hint=hint)

    def write(self, lines: Iterable[str | bytes]) -> None:
        for line in lines:
            if isinstance(line, bytes):
                self.output.raw(line)
            else:
                self.output.text([line])
        self.output.flush()

    def confirm(self, question: str, *, default: bool = False) -> bool:
        return click.confirm(question, default=default, err=True)

    def edit(self, text: str, extension: str = ".txt") -> str | None:
        try:
            return click.edit(text, env=self.context.environ, extension=extension)
        except (click.ClickException, ValueError) as error:
            # a ValueError is an open quote in $EDITOR, or a text that is not UTF-8
            problem = error.format_message() if isinstance(error, click.ClickException) else f"$EDITOR: {error}"
            raise UsageError(problem, hint="set EDITOR to a program that ends well") from error

    def stdin(self) -> str:
        return sys.stdin.read()

    def heartbeat(self) -> AbstractContextManager[Callable[[str], None]]:
        return watchers.Heartbeat(self.diagnostics, quiet=self.quiet)

    def surface(self, name: Literal["mcp", "tui", "web"]) -> ModuleType:
        if name == "tui":
            return screens
        (mcp if name == "mcp" else web).require_extra()
        return mcp_server if name == "mcp" else web_server

    def watching(
        self, work: Literal["training", "measuring", "fetching"]
    ) -> AbstractContextManager[SilentWatcher[Any]]:
        displays: Mapping[str, Any] = {
            "training": watchers.LiveWatcher,
            "measuring": watchers.LiveEvalWatcher,
            "fetching": watchers.LiveFetchWatcher,
        }
        return watchers.watching(self.context, self.diagnostics, displays[work], quiet=self.quiet)


def open_context(directory: Path | None = None) -> Context:
    try:
        return Context.from_process(directory)
    except FileNotFoundError:
        raise UsageError("the current folder does not exist any more", hint="cd to one that does") from None


def carry_out(ctx: click.Context, command: VerbCommand) -> int:
    """Carry a command out and return its exit status; what only reads answers from one moment, also during a run."""
    request, notes = command.request(ctx), shared_notes(ctx)
    session = open_session(**{name: notes[name] for name in ("directory", "color", "paging", "debug") if name in notes})
    ctx.meta[CONTEXT] = session.context
    is_quiet = notes.get("quiet", False) or getattr(request, "dry_run", False)
    context = replace(session.context, remark=lambda _: None) if is_quiet else session.context
    try:
        with Workspace(context, request, still=True) as workspace:
            session = replace(session, workspace=workspace, form=command.form(ctx), quiet=is_quiet)
            answer = command.verb.run(session, request)
            session.present(answer)
        if answer.error is not None:
            raise answer.error
    except MisuseError as error:
        raise click.UsageError(error.message, ctx) from error
    session.output.flush()
    return int(answer.exit_code)


def open_session(
    directory: Path | None = None, *, color: str = "auto", paging: bool = True, debug: bool = False
) -> CommandSession:
    context = open_context(directory)
    screen = screen_of(sys.stdout, color, context.environ)
    diagnostics = open_diagnostics(context.environ, color=color, debug=debug)
    return CommandSession(
        workspace=Workspace(replace(context, remark=diagnostics.note)),
        output=Output(
            sys.stdout.buffer,
            screen=screen,
            encoding=_encoding(sys.stdout),
            pager=partial(_start_pager, context, is_wanted=paging and screen.terminal),
        ),
        diagnostics=diagnostics,
    )


def open_diagnostics(environ: Mapping[str, str], *, color: str = "auto", debug: bool = False) -> Diagnostics:
    return Diagnostics(sys.stderr, screen_of(sys.stderr, color, environ), debug=debug)


def screen_of(stream: TextIO, color: str, environ: Mapping[str, str]) -> Screen:
    terminal = stream.isatty()
    return Screen(
        terminal=terminal,
        colour=wanted(color, environ, terminal=terminal),
        unicode=can_show_glyphs(_encoding(stream)),
        width=_width(stream, environ) if terminal else 0,
        seal=_SEAL,
    )


def _width(stream: TextIO, environ: Mapping[str, str]) -> int:
    columns = environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    with suppress(OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns or 80
    return 80


def _encoding(stream: TextIO) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _start_pager(context: Context, *, is_wanted: bool) -> Pager | None:
    command = choose(context.environ, context.directory) if is_wanted else ""
    return Pager(command, context.environ) if command else None
