"""Dialogs over a screen: a question, a menu, a line to type in, the keys that hold, and the log of commands."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Button, Input, Label, Static

from skillgit.files import read_plain
from skillgit.tui import commands, keymap
from skillgit.tui.commands import Ran
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.widgets.lines import FindBar, OneLine
from skillgit.tui.widgets.painted_lines import Painted, PaintedLines, Paragraph, Paragraphs, Part, RowList
from skillgit.verbs.filter_language import TOKENS
from skillgit.view.catalogue import ENTRIES
from skillgit.view.surface import Style
from skillgit.view.text import fit, one_line

Choice = tuple[str, str, str]
"""A letter, what it stands for, and the text that it chooses."""


class SearchScreen(Screen[None]):
    """A screen over another one, which escape leaves; the find bar searches :attr:`searched`."""

    @property
    def searched(self) -> PaintedLines:
        return self.query_one(PaintedLines)

    def say(self, name: str, text: str, right: str = "") -> None:
        """Show what a renderer painted on a line of the screen."""
        self.query_one(f"#{name}", OneLine).say(text, right)

    @on(FindBar.Closed)
    def _seek(self, message: FindBar.Closed) -> None:
        self.searched.focus()
        if message.text is not None:
            self.searched.seek(message.text)

    def action_find_open(self) -> None:
        self.query_one(FindBar).open()

    def action_screen_back(self) -> None:
        self.dismiss()

    def in_editor(self, name: str, content: bytes, mode: int = 0o600) -> bytes | None:
        """Return what the user's editor makes of a file; None if it does not end well."""
        environ = app_of(self).context.environ
        with tempfile.TemporaryDirectory(prefix="skillgit-") as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            path.chmod(mode)
            try:
                words = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
            except ValueError as error:
                self.notify(f"$EDITOR: {error}", severity="error", markup=False)
                return None
            return read_plain(path, most=None) if self.in_terminal([*words, str(path)]) else None

    def in_terminal(self, command: Sequence[str]) -> bool:
        """Lend the terminal to another program until it ends, and say whether it ended well."""
        try:
            with self.app.suspend():
                return not subprocess.run(command, env=dict(app_of(self).context.environ), check=False).returncode  # noqa: S603 - the user's own programs
        except SuspendNotSupported:
            self.notify("this terminal cannot be lent to another program", severity="warning")
        except OSError as error:
            self.notify(f"{command[0]}: {error.strerror}", severity="error", markup=False)
        return False

    def choices(self) -> Sequence[Choice]:
        """Return what can be copied here."""
        return ()

    def action_copy_menu(self) -> None:
        choices = [choice for choice in self.choices() if choice[2]]
        if choices:
            self.app.push_screen(CopyScreen("Copy", choices), self._copy)

    def _copy(self, text: str | None) -> None:
        if text:
            self.app.copy_to_clipboard(text)
            self.notify(text.splitlines()[0], title="Copied", markup=False)


class Dialog(ModalScreen[ScreenResultType]):
    """What is asked or shown over a screen; escape closes it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("dialog")

    def action_screen_back(self) -> None:
        self.dismiss(None)


class AskScreen(Dialog[bool | None]):
    """Whether to run a command, if one is named; nothing is run without a yes. ``plan`` says what it would cost."""

    BINDINGS: ClassVar[list[BindingType]] = [("y", "answer(True)", "Yes"), ("n,q", "answer(False)", "No")]

    def __init__(self, command: str, why: str, *, yes: str = "Run it", plan: Sequence[str] = ()) -> None:
        super().__init__()
        self.command, self.why, self.yes, self.plan = command, why, yes, tuple(plan)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            if self.command:
                yield Static(_line(f"$ {self.command}"), id="command")
            yield Static(self.why, id="why", markup=False)
            if self.plan:
                yield Static("", id="plan", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(f"{self.yes} (y)", id="yes", compact=True, variant="primary")
                yield Button("Cancel (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """Have the cost planned while the user reads; the user does not wait for it."""
        if self.plan:
            app_of(self).call(commands.plan_text, self.plan, then=self._show_plan)

    def _show_plan(self, plan: str) -> None:
        self.query_one("#plan", Static).update(Text("\n").join(map(_line, plan.splitlines())))

    def action_answer(self, yes: bool) -> None:  # noqa: FBT001 - a binding calls it
        self.dismiss(yes)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


def _line(text: str) -> Text:
    return Text(one_line(text), no_wrap=True, end="")


def numbered(label: str, texts: Sequence[str]) -> list[Choice]:
    """Return choices that digits stand for, as far as there are digits."""
    return [("123456789"[index : index + 1] or " ", label, text) for index, text in enumerate(texts)]


class _Choices(RowList):
    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__(id="choices")
        self.choices, self.count = choices, len(choices)

    def painted(self, line: int) -> Painted:
        letter, label, text = self.choices[line]
        excerpt = fit(one_line(text), max(8, self.room - 16), self.ink.glyphs.ellipsis)
        return Part(f" {letter}  ", Style.REF), Part(f"{label:<9}"), Part(excerpt, Style.FAINT)


class ChoiceScreen(Dialog[str | None]):
    """A menu of texts: a letter chooses."""

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._heading, self._choices = title, choices

    def compose(self) -> ComposeResult:
        rows = _Choices(self._choices)
        rows.border_title = self._heading
        rows.styles.height = len(self._choices) + 2
        yield rows

    def on_mount(self) -> None:
        self.query_one(_Choices).focus()

    def on_key(self, event: events.Key) -> None:
        choice = next((text for letter, _, text in self._choices if letter == event.character), None)
        if choice is not None:
            event.stop()
            self.dismiss(choice)

    @on(PaintedLines.Opened)
    def _opened(self, message: PaintedLines.Opened) -> None:
        self.dismiss(self._choices[message.index][2])


class CopyScreen(ChoiceScreen):
    """A menu of texts; the chosen one goes to the clipboard of the terminal."""


class NameScreen(Dialog[str | None]):
    """A line to type in, such as the name of a run to make; it shows ``usual`` while it is empty."""

    def __init__(self, question: str, usual: str) -> None:
        super().__init__()
        self.question, self.usual = question, usual

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog prompt"):
            yield Label(self.question, markup=False)
            yield Input(placeholder=self.usual, compact=True)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.answer(event.value)

    def answer(self, text: str) -> None:
        self.dismiss(text.strip())


_NOT_HERE = {"tui": "it is open already", "help": "type the command with --help"}


class PromptScreen(NameScreen):
    """A command without ``skillgit`` in front; commands that begin with the first word are named below."""

    def __init__(self) -> None:
        super().__init__("skillgit", "log --all")

    def on_mount(self) -> None:
        self.query_one(".prompt").mount(Static("", id="told", markup=False))

    def _say(self, text: str) -> None:
        self.query_one("#told", Static).update(text)

    def on_input_changed(self, event: Input.Changed) -> None:
        words = event.value.split()
        fitting = [entry for name, entry in ENTRIES.items() if words and name.startswith(words[0])]
        names = [entry.name for entry in fitting]
        self._say(f"{names[0]}: {fitting[0].summary}" if len(names) == 1 else "  ".join(names))

    def answer(self, text: str) -> None:
        try:
            argv = shlex.split(text)
        except ValueError:
            self._say("a quotation is not closed")
            return
        argv = argv[1:] if argv[:1] == ["skillgit"] else argv
        if argv and argv[0] in _NOT_HERE:
            self._say(f"{argv[0]}: {_NOT_HERE[argv[0]]}")
        else:
            self.dismiss(shlex.join(argv))


class _TextDialog(Dialog[None]):
    """Paragraphs over a screen."""

    HEADING: ClassVar[tuple[str, str]]
    """The id of the text, and what is above it."""

    def compose(self) -> ComposeResult:
        lines = Paragraphs(id=self.HEADING[0], wraps=isinstance(self, HelpScreen))
        lines.border_title = self.HEADING[1]
        yield lines

    def on_mount(self) -> None:
        self.query_one(Paragraphs).focus()
        self.call_after_refresh(self.more)

    def more(self) -> None:
        self.query_one(Paragraphs).show(list(self.paragraphs()))

    def paragraphs(self) -> Iterator[Paragraph]:
        raise NotImplementedError


class CommandLogScreen(_TextDialog):
    """The commands that were run from screens and pages with what they printed, the newest at the end."""

    BINDINGS: ClassVar[list[BindingType]] = [("q,at", "screen_back", "Close")]
    HEADING = ("log", "Commands")

    def __init__(self, ran: Sequence[Ran]) -> None:
        super().__init__()
        self._ran = ran

    def on_mount(self) -> None:
        self.set_interval(1, lambda: self.more() if any(ran.code is None for ran in self._ran) else None)

    def more(self) -> None:
        super().more()
        self.query_one(Paragraphs).scroll_end(animate=False)

    def paragraphs(self) -> Iterator[Paragraph]:
        if not self._ran:
            yield Paragraph("No command has been run yet; : runs one.", Style.FAINT)
        for ran in self._ran:
            state = ran.state(app_of(self).now)
            yield Paragraph(f"$ {ran.line}   {state}", Style.REJECTED if ran.code else Style.STRONG)
            yield Paragraph("\n".join(ran.output), "", indent=3)


_KEYS, _LABELS = 14, 2 + max(len(key.label) for key in keymap.KEYS)  # columns of the keys, and of what they do
_WIDE = 84  # columns of a terminal from which on there is room for the ids


class HelpScreen(_TextDialog):
    """The keys that hold here, those of the focused widget first."""

    BINDINGS: ClassVar[list[BindingType]] = [("q,question_mark", "screen_back", "Close")]
    HEADING = ("keys", "Keys")

    def __init__(self, over: Screen[Any], rebound: Mapping[str, str]) -> None:
        super().__init__()
        self._over, self._rebound = over, rebound

    def paragraphs(self) -> Iterator[Paragraph]:
        """Yield the keys of the focused widget, then those of what is around it, then the app's."""
        entries = {key.id: (key, keys) for key, keys in keymap.in_force(self._rebound)}
        seen_keys = set[str]()  # a key does what the nearest binding says
        focus = self._over.focused
        for node in list(focus.ancestors_with_self) if focus is not None else [self._over, self._over.app]:
            ids = {binding.id for bound in node._bindings.key_to_bindings.values() for binding in bound}  # noqa: SLF001 - Textual offers no other list
            here = [entries.pop(name) for name in [*entries] if name in ids]
            here = [(key, own) for key, keys in here if (own := tuple(name for name in keys if name not in seen_keys))]
            seen_keys.update(name for _, keys in here for name in keys)
            if here:
                where = "Here" if node is focus else "Everywhere" if node is self._over.app else "On this screen"
                yield Paragraph(where, Style.STRONG)
                yield from (self._line(*entry) for entry in here)
                yield Paragraph("")
        yield Paragraph("Filter", Style.STRONG)
        yield Paragraph(TOKENS, "", indent=3)
        yield Paragraph("Other words are looked up in titles, reasons and texts.", "", indent=3)

    def _line(self, key: keymap.Key, keys: tuple[str, ...]) -> Paragraph:
        lead = f"   {' '.join(keys):<{_KEYS - 4}} "
        if self.app.size.width < _WIDE:
            return Paragraph(key.label, "", indent=_KEYS, lead=lead)
        return Paragraph(key.id, Style.FAINT, indent=_KEYS + _LABELS, lead=f"{lead}{key.label} ")
