"""What screens can do: leave, search, and change history by commands that are shown before they run.

Editor and pager take the terminal for a while.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial, partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual import on
from textual.app import SuspendNotSupported
from textual.screen import Screen

from skillgit.index.rows import LogRow
from skillgit.tui import prints
from skillgit.tui.widgets.detail import Detail, EventItems
from skillgit.tui.widgets.lines import FindBar
from skillgit.tui.widgets.painted_lines import AbstractNode, PaintedLines, app_of
from skillgit.tui.widgets.printed import Print
from skillgit.tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from skillgit.app.exchange.remote import Remote
    from skillgit.tui.app import SkillgitApp
    from skillgit.tui.screens.dialogs import Choice


class SearchScreen(Screen[None], metaclass=AbstractNode):
    """A screen over another one, which escape leaves; the find bar searches :attr:`searched`."""

    @property
    @abstractmethod
    def searched(self) -> PaintedLines: ...

    @on(FindBar.Closed)
    def _seek(self, message: FindBar.Closed) -> None:
        self.searched.focus()
        if message.text is not None:
            self.searched.seek(message.text)

    def action_find_open(self) -> None:
        self.query_one(FindBar).open()

    def action_screen_back(self) -> None:
        self.dismiss()

    def copy(self, text: str | None) -> None:
        if text:
            self.app.copy_to_clipboard(text)


class VersionScreen(SearchScreen):
    """A screen with the detail of an event, and actions on :attr:`current`, the event under its cursor."""

    @property
    def detail(self) -> Detail:
        return self.query_one(Detail)

    @property
    def searched(self) -> PaintedLines:
        return self.detail.view

    @property
    @abstractmethod
    def current(self) -> LogRow | None: ...

    def _with_version(self, *command: str, look: bool = False) -> None:
        row = self.current
        if row is None:
            return
        if row.version is None:
            self.notify(f"{row.address} is no version", severity="warning", markup=False)
        else:
            app_of(self).command([*command[0].split(), str(row.address), *command[1:]], look=look)

    def action_version_checkout(self) -> None:
        if self.current is not None:
            app_of(self).command(["checkout", str(self.current.address)])

    def _printed(self, of: Callable[[LogRow], Sequence[Print]], title: str = "") -> None:
        row = self.current
        if row is not None:
            from skillgit.tui.screens.printed import PrintedScreen  # noqa: PLC0415 - it is opened now and then

            self.app.push_screen(PrintedScreen(f"{title} {row.run}" if title else str(row.address), of(row)))

    def action_version_text(self) -> None:
        self._printed(lambda row: [prints.version_text(str(row.address), app_of(self).now)])

    def action_run_items(self) -> None:
        self._printed(lambda row: prints.run_items(row.run), "Items of")

    def action_run_cost(self) -> None:
        self._printed(lambda row: prints.run_cost(row.run), "Cost of")

    def action_run_settings(self) -> None:
        self._printed(lambda row: [prints.run_settings(row.run)], "Settings of")

    def action_run_summary(self) -> None:
        self._printed(lambda row: [prints.run_summary(row.run, app_of(self).now)], "Run")

    action_version_revert = partialmethod(_with_version, "revert --to")
    action_version_promote = partialmethod(_with_version, "promote")
    action_version_evaluate = partialmethod(_with_version, "eval", "--split", "test", look=True)

    def action_version_export(self) -> None:
        row = self.current
        if row is not None:
            archive, words = f"{str(row.address).replace('/', '-')}.skill", ("export", str(row.address))
            self._ask("Folder, FILE.zip or FILE.skill to write", archive, lambda path: (*words, path or archive))

    def action_version_adopt(self) -> None:
        row = self.current
        if row is not None:
            from skillgit.app.deliver.requests import USUAL_AGENTS, Scope  # noqa: PLC0415 - few sessions install
            from skillgit.tui.screens.dialogs import ChoiceScreen, numbered  # noqa: PLC0415 - as above

            targets = [f"{agent.value} --scope {scope.value}" for agent in USUAL_AGENTS for scope in Scope]
            words = ("install", str(row.address), "--to")

            def answered(target: str | None) -> None:
                if target:
                    app_of(self).command([*words, *target.split()])

            self.app.push_screen(ChoiceScreen("For which agent", numbered("install", targets)), answered)

    def action_version_note(self) -> None:
        row = self.current
        if row is not None:
            address = str(row.address)

            def words(text: str) -> Sequence[str]:
                return ("note", *(["--"] if text.startswith("-") else []), address, text) if text else ()

            self._ask("Note for the steps that come", "", words)

    def action_run_report(self) -> None:
        row = self.current
        if row is not None:
            app_of(self).command(["report", row.run, "--output", f"{row.run}.html"])

    def action_version_fork(self) -> None:
        row = self.current
        if row is not None and row.version is not None:
            words = ("fork", str(row.address))
            self._ask("Name of the new run", "made up if empty", lambda name: (*words, name) if name else words)
        else:
            self._with_version("fork")

    def _ask(self, question: str, usual: str, command: Callable[[str], Sequence[str]]) -> None:
        from skillgit.tui.screens.dialogs import NameScreen  # noqa: PLC0415 - as above

        def answered(text: str | None) -> None:
            if text is not None and (words := command(text)):
                app_of(self).command(words)

        self.app.push_screen(NameScreen(question, usual), answered)

    def action_copy_menu(self) -> None:
        from skillgit.tui.screens.dialogs import CopyScreen  # noqa: PLC0415 - as above

        if self.current is not None:
            row = self.current
            choices: Sequence[Choice] = (
                ("a", "address", str(row.address)),
                ("c", "commit", row.commit),
                ("t", "title", row.title),
                ("s", "command", f"skillgit show {row.address}"),
                ("d", "diff", f"git show {row.commit}"),
            )
            self.app.push_screen(CopyScreen(choices), self.copy)

    def copy(self, text: str | None) -> None:
        super().copy(text)
        if text:
            self.notify(text.splitlines()[0], title="Copied", markup=False)

    def action_editor_open(self) -> None:
        """Read the skill's document in the editor; what is changed there is not kept."""
        if self.current is not None:
            app_of(self).read(_document, str(self.current.address), then=partial(_edit, app_of(self), self.current))

    def action_pager_open(self) -> None:
        """Show the event as ``skillgit show`` does, in its pager."""
        if self.current is not None:
            words = ("-C", str(app_of(self).context.directory), "--color=always", "show", str(self.current.address))
            _in_terminal(app_of(self), [sys.executable, "-m", "skillgit", *words])

    @on(RowList.Opened, "#items")
    def _item_opened(self, message: RowList.Opened) -> None:
        from skillgit.tui.screens.item import ItemScreen  # noqa: PLC0415 - it is opened now and then

        if isinstance(message.rows, EventItems) and self.detail.row is not None:
            self.app.push_screen(ItemScreen(message.rows.item, self.detail.row.run))

    def action_evidence_open(self) -> None:
        self.detail.open("trace")

    def action_tab_next(self) -> None:
        self.detail.action_tab_next()

    def action_tab_prev(self) -> None:
        self.detail.action_tab_prev()


_DOCUMENT = "SKILL.md"


def _document(context: object, revision: str) -> bytes:
    from skillgit.app.history.plumbing import cat  # noqa: PLC0415 - libgit2 is not loaded for the first picture

    return cat(context, f"{revision}:{_DOCUMENT}")  # type: ignore[arg-type]


def _edit(app: SkillgitApp, row: LogRow, document: bytes) -> None:
    environ = app.context.environ
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="skillgit-") as folder:
        path = Path(folder) / f"{str(row.address).replace('/', '-')}-{_DOCUMENT}"
        path.write_bytes(document)
        path.chmod(0o444)
        _in_terminal(app, [*shlex.split(editor), str(path)])


def _in_terminal(app: SkillgitApp, command: Sequence[str]) -> None:
    try:
        with app.suspend():
            subprocess.run(command, env=dict(app.context.environ), check=False)  # noqa: S603 - the user's own programs
    except SuspendNotSupported:
        app.notify("this terminal cannot be lent to another program", severity="warning")
    except OSError as error:
        app.notify(f"{command[0]}: {error.strerror}", severity="error", markup=False)


Exchange = Literal["push", "pull"]


def exchange(app: SkillgitApp, verb: Exchange) -> None:
    from skillgit.app.exchange.remote import remotes  # noqa: PLC0415 - few sessions push or pull

    app.read(remotes, then=partial(_choose, app, verb), group="remotes")


def _choose(app: SkillgitApp, verb: Exchange, remotes: tuple[Remote, ...]) -> None:
    from skillgit.tui.screens.dialogs import ChoiceScreen, numbered  # noqa: PLC0415 - few have several remotes

    if not remotes:
        app.notify("there are no remotes yet\nhint: git remote add origin URL", severity="warning")
    elif len(remotes) == 1:
        _run(app, verb, remotes[0].name)
    else:
        choices = numbered(verb, [f"{row.name}  {row.url}" for row in remotes])
        app.push_screen(ChoiceScreen("Push to" if verb == "push" else "Pull from", choices), partial(_run, app, verb))


def _run(app: SkillgitApp, verb: Exchange, choice: str | None) -> None:
    if choice:
        app.command([verb, choice.split()[0]], look=True)
