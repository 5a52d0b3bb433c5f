"""The keys that hold here, those of the focused widget first; made from the keymap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import ModalScreen, Screen

from skillgit.tui import keymap
from skillgit.tui.filter_language import TOKENS
from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.paragraphs import Paragraph, Paragraphs
from skillgit.view.surface import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from textual.app import ComposeResult
    from textual.binding import BindingType

_KEYS = 14
"""Columns of the keys."""
_LABELS = 32
"""Columns of what they do."""
_WIDE = 84
"""Columns of a terminal from which on there is room for the ids."""


class HelpScreen(ModalScreen[None]):
    """Help on keys."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dialog"), ("q,question_mark", "screen_back", "Close")]

    def __init__(self, over: Screen[Any], rebound: Mapping[str, str]) -> None:
        super().__init__()
        self._over, self._rebound = over, rebound

    def compose(self) -> ComposeResult:
        lines = Paragraphs(id="keys")
        lines.border_title = "Keys"
        yield lines

    def on_mount(self) -> None:
        lines = self.query_one(Paragraphs)
        lines.show(list(self._paragraphs()))
        lines.focus()

    def _paragraphs(self) -> Iterator[Paragraph]:
        entries = {key.id: (key, keys) for key, keys in keymap.in_force(self._rebound)}
        seen_ids: set[str] = set()
        for title, ids in self._sections():
            lines = [self._line(*entries[name]) for name in entries if name in ids and name not in seen_ids]
            seen_ids |= ids
            if lines:
                yield Paragraph(title, Style.STRONG)
                yield from lines
                yield Paragraph("")
        yield Paragraph("Filter", Style.STRONG)
        yield Paragraph(TOKENS, "", indent=3)
        yield Paragraph("Other words are looked up in titles, reasons and texts.", "", indent=3)

    def _sections(self) -> Iterator[tuple[str, set[str]]]:
        """Yield the ids of the focused widget's keys, then those of what is around it, then the app's."""
        focus = self._over.focused
        nodes = list(focus.ancestors_with_self) if focus is not None else [self._over, self._over.app]
        for node in nodes:
            ids = {binding.id for keys in node._bindings.key_to_bindings.values() for binding in keys if binding.id}  # noqa: SLF001 - Textual offers no other list
            title = "Here" if node is focus else "Everywhere" if node is self._over.app else "On this screen"
            yield title, ids & set(keymap.BY_ID)

    def _line(self, key: keymap.Key, keys: tuple[str, ...]) -> Paragraph:
        lead = f"   {' '.join(keys):<{_KEYS - 3}}"
        if self.app.size.width < _WIDE:
            return Paragraph(key.label, "", indent=_KEYS, lead=lead)
        return Paragraph(key.id, Style.FAINT, indent=_KEYS + _LABELS, lead=f"{lead}{key.label}")

    def action_screen_back(self) -> None:
        self.dismiss(None)
