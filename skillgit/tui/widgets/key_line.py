"""The line of keys at the bottom of a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.widgets import Footer

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen

_Shown = tuple[tuple[str, str, str, bool], ...]


class KeyLine(Footer):
    """Textual's footer, which makes its keys anew only where others are to be shown.

    Textual's own does so whenever the focus moves, which takes longer than anything else that follows from that.
    """

    def __init__(self, *, compact: bool = False) -> None:
        super().__init__(show_command_palette=False, compact=compact)
        self._made: _Shown | None = None

    def compose(self) -> ComposeResult:
        """Return the keys that hold now."""
        self._made = self._shown(self.screen) if self._bindings_ready else None
        yield from super().compose()

    def bindings_changed(self, screen: Screen[Any]) -> None:
        """Show other keys if there are any."""
        if self._made is None or self._made != self._shown(screen):
            super().bindings_changed(screen)

    def _shown(self, screen: Screen[Any]) -> _Shown:
        return tuple(
            (one.binding.action, self.app.get_key_display(one.binding), one.binding.description, one.enabled)
            for one in screen.active_bindings.values()
            if one.binding.show
        )
