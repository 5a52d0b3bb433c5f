"""The application: what all screens share. Reading in threads, running commands, themes, keys, and watching history."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.events import Click, Event, InputEvent
from textual.filter import LineFilter
from textual.screen import ModalScreen, Screen

from skillgit.app.workspace import command_journal
from skillgit.app.workspace.command_journal import CommandRecord
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import change_stamp, git_settings
from skillgit.lazy import loaded_on_use
from skillgit.tui import commands, keymap, theme
from skillgit.tui.commands import Ran
from skillgit.tui.first_picture import THEME, StartPicture, setting_names
from skillgit.tui.reading import ReadingApp
from skillgit.tui.screens.dialogs import AskScreen, ChoiceScreen, CommandLogScreen, HelpScreen, PromptScreen, numbered
from skillgit.tui.screens.history import HistoryScreen
from skillgit.tui.theme import QUIET, Collector, LastFilter

with loaded_on_use():
    from skillgit.tui.screens import drafts
    from skillgit.verbs import command_line, exchange, tasks

WATCHED_EVERY = 0.5
"""Seconds between two looks at whether history has changed."""
_THEMES = {"dark": theme.DARK.name, "light": theme.LIGHT.name}
_RIGHT = 3  # the right button of a mouse


class SkillgitApp(ReadingApp):
    """``skillgit tui``; ``start`` was read already, ``opening`` makes a screen over the history, ``watch`` rereads."""

    CSS_PATH = Path(__file__).with_name("skillgit.tcss")
    TITLE = "skillgit"
    BINDINGS: ClassVar[list[BindingType]] = keymap.bindings("app")

    def __init__(
        self,
        context: Context,
        run: str = "",
        *,
        start: StartPicture | None = None,
        opening: Callable[[], Screen[None]] | None = None,
        unicode: bool = True,
        watch: bool = True,
    ) -> None:
        super().__init__(context, unicode=unicode, watch=watch)
        self.run_wanted = run
        self.ran: list[Ran] = []
        self.rebound: Mapping[str, str] = {}
        self._known, self._opening = start, opening
        self._seen = start.standing if start is not None else ""
        self._collector, self._last = Collector(), LastFilter()
        # before anything is styled: another theme would style everything again
        for scheme in theme.THEMES.values():
            self.register_theme(scheme)
        self.theme = theme.DARK.name

    def get_line_filters(self) -> Sequence[LineFilter]:
        return (*super().get_line_filters(), self._last)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the colours of our own under other themes than ours, and before there is one."""
        return {"chosen": theme.DARK.variables["chosen"]}

    def on_mount(self) -> None:
        start = self._known
        self.set_class(not self.facts.unicode, "-ascii")
        if start is None:
            self.call(git_settings, setting_names(), then=self._configure, on_error=lambda _: None)
        else:
            self._configure(start.settings)
        self.push_screen(HistoryScreen(self.run_wanted, start))
        if self._opening is not None:
            self.push_screen(self._opening())
        if self.watched:
            if start is None:
                self._look()
            self.set_interval(WATCHED_EVERY, self._look)

    def on_load(self) -> None:
        """Collect no garbage while everything is made that is needed to the end."""
        if not self.is_headless:
            self._collector.wait()

    def on_ready(self) -> None:
        """Collect garbage only where no key waits for it; tests have many apps in one process, and no user."""
        if not self.is_headless:
            self._collector.take_over()
            self.set_interval(QUIET, self._collector.rest)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, InputEvent):
            self._collector.used()
        await super().on_event(event)

    def _configure(self, settings: Mapping[str, str]) -> None:
        self.rebound = keymap.rebound(settings)
        self.set_keymap(dict(self.rebound))
        name = settings.get(THEME, "")
        if name in _THEMES:
            self.theme = _THEMES[name]
        elif name:
            self.notify(f"{THEME} is neither dark nor light", severity="warning", markup=False)

    def _look(self) -> None:
        self.call(change_stamp, then=self._looked, on_error=lambda _: None, group="watch")

    def _looked(self, standing: str) -> None:
        has_changed, self._seen = bool(self._seen) and standing != self._seen, standing
        if has_changed:
            self.reload()

    def reload(self) -> None:
        for screen in self.screen_stack:
            reread = getattr(screen, "reload", None)
            if reread is not None:
                reread()

    def command(self, argv: Sequence[str], *, look: bool = False) -> None:
        """Run a command and show its output or last line; ask first if it changes refs or files or may cost money."""
        why, plan = command_line.question_of(argv)
        ran = Ran(argv=tuple(argv), changes=bool(why))

        def answered(yes: bool | None) -> None:  # noqa: FBT001 - Textual calls it
            if yes:
                self._start(ran, look=look)

        if why:
            self.push_screen(AskScreen(ran.line, why, plan=plan), answered)
        else:
            answered(yes=True)

    def _start(self, ran: Ran, *, look: bool) -> None:
        self.ran.append(ran)
        if look:
            self.action_command_log()
        self.run_worker(self._finish(ran, look=look), group="command")

    async def _finish(self, ran: Ran, *, look: bool) -> None:
        await commands.run(self.context, ran, self._told_more)
        self._told_more()
        if ran.code or not look:
            message = ran.last or "done"
            self.notify(message, title=ran.line, severity="error" if ran.code else "information", markup=False)
        self.reload()

    def _told_more(self) -> None:
        more = getattr(self.screen, "more", None)
        if more is not None:
            more()

    def action_app_quit(self) -> None:
        """Leave; commands that change anything go on."""
        self.exit()

    def action_app_help(self) -> None:
        self.push_screen(HelpScreen(self.screen, self.rebound))

    def on_click(self, event: Click) -> None:
        if event.button == _RIGHT and not isinstance(self.screen, ModalScreen):
            self.action_app_palette()

    def action_app_palette(self) -> None:
        self.action_command_palette()

    action_app_refresh = reload

    def action_app_theme(self) -> None:
        self.theme = theme.LIGHT.name if self.theme == theme.DARK.name else theme.DARK.name

    def action_command_prompt(self) -> None:
        self.push_screen(PromptScreen(), lambda line: self.command(shlex.split(line), look=True) if line else None)

    def action_drafts_open(self) -> None:
        self.call(tasks.drafted_skills, then=self._choose_drafts, group="drafts-of")

    def _choose_drafts(self, counts: Mapping[str, int]) -> None:
        def answered(skill: str | None) -> None:
            if skill:
                self.push_screen(drafts.DraftsScreen(skill))

        if not counts:
            self.notify("there are no drafts\nhint: skillgit tasks draft NAME --from sessions", severity="warning")
        elif len(counts) == 1:
            answered(*counts)
        else:
            self.push_screen(ChoiceScreen("Drafts of", numbered("skill", [*counts])), answered)

    def action_command_log(self) -> None:
        self.call(command_journal.commands, then=self._adopt, on_error=lambda _: None, group="journal")
        if not isinstance(self.screen, CommandLogScreen):
            self.push_screen(CommandLogScreen(self.ran))

    def _adopt(self, records: Sequence[CommandRecord]) -> None:
        """Put commands that other screens and pages have started in the log."""
        for ran in commands.adopted(self.ran, records):
            self.ran.append(ran)
            self.run_worker(commands.follow(ran, self._told_more), group="command")
        self.ran.sort(key=lambda ran: ran.began or self.now)

    def _exchange(self, verb: str, question: str) -> None:
        """Push or pull, with the one remote that there is or one of several."""
        self.call(exchange.remotes, then=partial(self._choose_remote, verb, question), group="remotes")

    action_remote_push = partialmethod(_exchange, "push", "Push to")
    action_remote_pull = partialmethod(_exchange, "pull", "Pull from")

    def _choose_remote(self, verb: str, question: str, remotes: tuple[exchange.Remote, ...]) -> None:
        def answered(choice: str | None) -> None:
            if choice:
                self.command([verb, choice.split()[0]], look=True)

        if not remotes:
            self.notify("there are no remotes yet\nhint: git remote add origin URL", severity="warning")
        elif len(remotes) == 1:
            answered(remotes[0].name)
        else:
            choices = numbered(verb, [f"{row.name}  {row.url}" for row in remotes])
            self.push_screen(ChoiceScreen(question, choices), answered)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield what the keys of ``screen`` do, for the command palette; who does it has the focus, or is around it."""
        focus = screen.focused.ancestors_with_self if screen.focused is not None else []
        nodes = (*focus, screen, *screen.walk_children(), self)
        owners = {keymap.shown(name): active.binding.id for name, active in screen.active_bindings.items()}
        for key, bound in keymap.in_force(self.rebound):
            keys = [name for name in bound if owners.get(name, key.id) == key.id]
            node = next((node for node in nodes if hasattr(node, f"action_{key.action}")), None)
            if node is not None and key.id != "app.palette":
                action = partial(self.run_action, key.action, node)
                yield SystemCommand(f"{key.label}  ({' '.join(keys)})" if keys else key.label, key.id, action)

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: DOMNode) -> None:
        del node
        names = ", ".join(sorted(binding.id or binding.action for binding in clashed_bindings))
        self.notify(f"{names} have lost their key to another binding", severity="warning", markup=False)
