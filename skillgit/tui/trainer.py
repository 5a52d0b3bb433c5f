"""The process that ``skillgit train --tui`` watches: it has a session of its own and outlives screen and terminal."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from skillgit.app.history.live import Standing
from skillgit.tui.app import SkillgitApp
from skillgit.tui.screens.live import LiveScreen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.app.workspace.context import Context


class TrainerProcess:
    """``skillgit train`` as a process without a terminal, for the ``words`` behind ``skillgit``.

    Keys reach the screen and never the process, so that nobody stops a training by mistake; what it says is kept in
    files without a name until it is printed.
    """

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - likewise
        self._process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-m", "skillgit", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._errors,
            env=dict(environ),
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it works, and less than 0 for the signal that killed it."""
        return self._process.poll()

    def ended(self) -> bool:
        return self.code is not None

    def wait(self) -> None:
        """Wait for its end, which is moments away once its run has ended."""
        self._process.wait()

    def output(self) -> tuple[bytes, bytes]:
        self._said.seek(0)
        self._errors.seek(0)
        return self._said.read(), self._errors.read()


def watch(context: Context, trainer: TrainerProcess, *, unicode: bool) -> str:
    """Show the run of ``trainer`` until the user closes the screen, and return the run; empty before it has one."""
    screens: list[LiveScreen] = []

    def opening() -> LiveScreen:
        screens.append(LiveScreen(trainer=trainer))
        return screens[0]

    SkillgitApp(context, opening=opening, unicode=unicode).run()
    if not screens:
        return ""
    look = screens[0].look
    if look is not None and look.standing is Standing.ENDED:
        trainer.wait()
    return screens[0].run_name
