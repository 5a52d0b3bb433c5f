"""The only writer of stderr: errors with their hints, notes and progress. A quiet run is silent on it."""

from __future__ import annotations

from contextlib import suppress
from typing import TextIO

import click

from skillgit.domain.did_you_mean import did_you_mean
from skillgit.errors import ConfigError, ExitCode, SkillgitError
from skillgit.lazy import loaded_on_use
from skillgit.view.catalogue import ELSEWHERE
from skillgit.view.surface import Screen, Style
from skillgit.view.text import sentence

with loaded_on_use():
    import traceback

    from rich import console

    from skillgit.plugin import redaction


class Diagnostics:
    """Says what happened; with ``debug`` also where an error comes from."""

    def __init__(self, stream: TextIO, screen: Screen, *, debug: bool = False) -> None:
        self.screen = screen
        self._stream = stream
        self._debug = debug

    def failed(self, error: SkillgitError) -> ExitCode:
        self._trace(error)
        findings = error.findings if isinstance(error, ConfigError) else ()
        for fault in findings or (error,):
            self._error(fault.message)
            self.hint(fault.hint)
        return error.exit_code

    def misused(self, error: click.ClickException) -> ExitCode:
        """Tell of a command line that cannot be understood, in the words of all other errors."""
        self._trace(error)
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            self._line(error.format_message())
            return ExitCode.USAGE
        self._error(_wording(error))
        context = getattr(error, "ctx", None)
        self.hint(f"{context.command_path if context else 'skillgit'} --help")
        return ExitCode.USAGE

    def crashed(self, error: Exception) -> ExitCode:
        """Tell of a bug: one sentence, for the trace helps only its author."""
        self._trace(error)
        message = " ".join(str(error).split())
        self._error(f"internal error: {type(error).__name__}{': ' if message else ''}{message}")
        self.hint("" if self._debug else "run it again as 'skillgit --debug …' and report what it prints")
        return ExitCode.INTERNAL

    def interrupted(self) -> ExitCode:
        if self.screen.terminal:
            self._line("")  # the terminal shows ^C where the cursor was
        self._error("interrupted")
        return ExitCode.INTERRUPTED

    def note(self, *texts: str, hint: str = "") -> None:
        """Say what is neither data nor an error, each on a line, and what to do about it."""
        for text in texts:
            self._line("\n".join(sentence(text, self.screen)))
        self.hint(hint)

    def passing(self, text: str, end: str) -> None:
        """Pass on what another program says; behind a carriage return the next line takes its place."""
        self._line(text, end=end)

    def hint(self, text: str) -> None:
        if text:
            self._line(f"{self.screen.paint(Style.STRONG, 'hint:')} {text}")

    def console(self) -> console.Console:

        return console.Console(
            file=self._stream,
            force_terminal=True,
            no_color=not self.screen.colour,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def _error(self, text: str) -> None:
        lines = "\n".join(sentence(f"skillgit: {text}", self.screen))
        self._line(lines.replace("skillgit:", self.screen.paint(Style.REJECTED, "skillgit:"), 1))

    def _trace(self, error: BaseException) -> None:
        if self._debug:
            self._line("".join(traceback.format_exception(error)).rstrip("\n"))

    def _line(self, text: str, end: str = "\n") -> None:

        # A trace may hold any words, and what is on a terminal ends in logs.
        # There is no reader when stderr itself is gone.
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        visible = self.screen.shown(redaction.redact(text)).encode(encoding, errors="replace").decode(encoding)
        with suppress(OSError):
            self._stream.write(f"{visible}{end}")
            self._stream.flush()


def _wording(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        params = error.ctx.command.get_params(error.ctx) if error.ctx is not None else ()
        options = [name for param in params if isinstance(param, click.Option) for name in param.opts]
        command = error.ctx.command_path.partition(" ")[2] if error.ctx is not None else ""
        replacement = ELSEWHERE.get(f"{command} {error.option_name}")
        names = [name for name in options if name.startswith("--")]
        near = f"did you mean '{replacement}'?" if replacement else did_you_mean(error.option_name, names, most=2)
        return f"there is no option '{error.option_name}'{f', {near}' if near else ''}"
    if isinstance(error, click.BadParameter) and error.param is not None and isinstance(error.param.type, click.Choice):
        value = error.message.partition("'")[2].partition("'")[0]
        near = did_you_mean(value, map(str, error.param.type.choices))
        return f"{_message(error)}{f'; {near}' if near else ''}"
    return _message(error)


def _message(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    return message if message.partition(" ")[0].isupper() else message[:1].lower() + message[1:]
