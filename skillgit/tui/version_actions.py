"""What can be done with the event under the cursor: every change is a command of skillgit's, shown before it runs."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING

from skillgit.tui.abstract import AbstractNode
from skillgit.tui.naming import address
from skillgit.tui.widgets.painted_lines import app_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.screen import Screen

    from skillgit.index.rows import LogRow
    from skillgit.tui.screens.copy import Choice

    _Base = Screen[None]
else:
    _Base = object


class VersionActions(_Base, metaclass=AbstractNode):
    """Actions on :attr:`current`, for screens that have an event under a cursor."""

    @property
    @abstractmethod
    def current(self) -> LogRow | None:
        """The event that is meant; None without one."""

    def _with_version(self, *command: str) -> None:
        row = self.current
        if row is None:
            return
        if row.version is None:
            self.notify(f"{address(row)} is no version", severity="warning", markup=False)
        else:
            app_of(self).command([command[0], address(row), *command[1:]])

    def action_version_checkout(self) -> None:
        """Put it in the work tree."""
        if self.current is not None:
            app_of(self).command(["checkout", address(self.current)])

    def action_version_revert(self) -> None:
        """Make its text the newest version."""
        self._with_version("revert")

    def action_version_promote(self) -> None:
        """Bring it to main."""
        self._with_version("promote")

    def action_version_evaluate(self) -> None:
        """Measure it on the test split."""
        self._with_version("eval", "--split", "test")

    def action_version_fork(self) -> None:
        """Ask for a name and start a run there."""
        from skillgit.tui.screens.prompt import NameScreen  # noqa: PLC0415 - few sessions fork

        row = self.current
        if row is not None and row.version is not None:
            self.app.push_screen(NameScreen("Name of the new run", "made up if empty"), partial(self._fork, row))
        else:
            self._with_version("fork")

    def _fork(self, row: LogRow, name: str | None) -> None:
        if name is not None:
            app_of(self).command(["fork", address(row), *([name] if name else [])])

    def action_copy_menu(self) -> None:
        """Choose what of it to copy."""
        from skillgit.tui.screens.copy import CopyScreen  # noqa: PLC0415 - as above

        if self.current is not None:
            self.app.push_screen(CopyScreen(self.copies(self.current)), self._copied)

    def copies(self, row: LogRow) -> Sequence[Choice]:
        """Return what of an event can be copied."""
        return (
            ("a", "address", address(row)),
            ("c", "commit", row.commit),
            ("t", "title", row.title),
            ("s", "command", f"skillgit show {address(row)}"),
            ("d", "diff", f"git show {row.commit}"),
        )

    def _copied(self, text: str | None) -> None:
        if text:
            self.app.copy_to_clipboard(text)
            self.notify(text.splitlines()[0], title="Copied", markup=False)

    def action_editor_open(self) -> None:
        """Read the skill's document in the editor; what is changed there is not kept."""
        from skillgit.tui.outside import edited  # noqa: PLC0415 - as above

        if self.current is not None:
            edited(app_of(self), self.current)

    def action_pager_open(self) -> None:
        """Read the event in the pager."""
        from skillgit.tui.outside import paged  # noqa: PLC0415 - as above

        if self.current is not None:
            paged(app_of(self), self.current)
