"""The entry point: the top-level command, its global options, and what happens to errors."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

import click
from click.shell_completion import shell_complete

from skillgit import __version__
from skillgit.cli.session import CONTEXT, carry_out, open_context, open_diagnostics
from skillgit.domain.untrusted.model_text import unstorable_place
from skillgit.errors import ExitCode, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.command_line import PROGRAM, VerbGroup, shared_notes
from skillgit.verbs.manual import COMPLETION_VARIABLE, EVERY_COMMAND
from skillgit.view.catalogue import DAILY, ENTRIES, SECTIONS

with loaded_on_use():
    from skillgit.app.workspace import workspace


class CommandGroup(VerbGroup):
    """All commands; help lists those of every day, unless all are asked for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, ENTRIES))
        daily = {"Commands": tuple(ENTRIES[name] for name in DAILY)}
        for title, entries in (SECTIONS if ctx.meta.get(EVERY_COMMAND) else daily).items():
            with formatter.section(title):
                formatter.write_dl([(entry.name.ljust(widest), entry.summary) for entry in entries])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        more = "" if ctx.meta.get(EVERY_COMMAND) else "skillgit help --all lists every command. "
        formatter.write_paragraph()
        shared = "skillgit help options explains options that commands share."
        formatter.write_text(f"{more}skillgit help COMMAND explains one. {shared}")


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(PROGRAM, cls=CommandGroup, context_settings=_SETTINGS)
@click.version_option(
    __version__, message=f"%(prog)s %(version)s (Python {sys.version.split()[0]})", help="Show the version"
)
def cli() -> None:
    """Train Agent Skills and keep every training decision in git.

    REV names an event of a run: v7 (version 7), best, head, r17 (rejected at step 17), s4 (step 4, skipped), m2
    (reflection on epoch 2), e2 (slow update of epoch 2), i1 (the first intervention), b7 (v7 measured on its own), end,
    v7~2 or v7^^; RUN/v7 is one of RUN. A run and any git revision will do too. Commands that read take --as-of REV.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    try:
        code = _run(arguments)
        # A command that failed may have left output in the buffer; once Python itself flushes it, no code can tell.
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon(sys.stdout)
        code = ExitCode.BROKEN_PIPE
    except OSError:
        code = ExitCode.NO  # it was reported when the command wrote
    try:
        sys.stderr.flush()
    except OSError:
        _abandon(sys.stderr)  # there is no reader left
    return code


def _run(arguments: Sequence[str] | None) -> int:
    environ: Mapping[str, str] = {}
    diagnostics = open_diagnostics(environ)
    ctx: click.Context | None = None
    try:
        environ = open_context().environ
        instruction = environ.get(COMPLETION_VARIABLE)
        if instruction:
            return shell_complete(cli, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
        diagnostics = open_diagnostics(environ)
        words = list(sys.argv[1:] if arguments is None else arguments)
        _check_words(words)
        with cli.make_context(PROGRAM, words, obj=carry_out) as ctx:
            return int(cli.invoke(ctx) or ExitCode.OK)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, click.Abort):
        return diagnostics.interrupted()
    except Exception as error:  # noqa: BLE001 - the last line of defence: a bug becomes one sentence
        notes = {} if ctx is None else shared_notes(ctx)
        diagnostics = open_diagnostics(environ, color=notes.get("color", "auto"), debug=notes.get("debug", False))
        if isinstance(error, click.ClickException):
            return diagnostics.misused(error)
        failure = workspace.explained(error, None if ctx is None else ctx.meta.get(CONTEXT))
        return diagnostics.failed(failure) if failure is not None else diagnostics.crashed(error)


def _check_words(words: Sequence[str]) -> None:
    """Refuse bytes that are not UTF-8 in a command line, but for paths: no commit, index or model can hold them."""
    for word in words:
        if unstorable_place(word) is not None and not os.path.lexists(word):
            raise UsageError(
                f"the argument '{word}' is not UTF-8", hint="check the terminal's encoding: locale charmap"
            )


def main(on_interrupt: Callable[[int, object], None] | None = None) -> NoReturn:
    """Run the command line and end the process; ``on_interrupt`` hears Ctrl-C before and after the command does."""
    # After `>&-` Python has no stdout, and the first file that is opened would get its number.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115 - it stays
    try:
        if on_interrupt is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run()
        if on_interrupt is not None:
            signal.signal(signal.SIGINT, on_interrupt)
    except KeyboardInterrupt:  # while an error was printed, or a second time
        if on_interrupt is not None:
            on_interrupt(signal.SIGINT, None)
        code = ExitCode.INTERRUPTED
    sys.exit(code)


def _abandon(stream: TextIO) -> None:
    # Python flushes its streams once more when it ends, and would complain about a closed pipe.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
