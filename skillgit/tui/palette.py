"""The command palette: everything that a key does on the screen, found by its words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from textual.command import DiscoveryHit, Hit, Hits, Provider

from skillgit.tui import keymap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.dom import DOMNode
    from textual.screen import Screen

    from skillgit.tui.keymap import Key


def doer(screen: Screen[Any], key: Key) -> DOMNode | None:
    """Return who does what ``key`` stands for: the focused widget or one around it, else any widget, else the app."""
    name = f"action_{key.action}"
    chain = screen.focused.ancestors_with_self if screen.focused is not None else []
    for node in (*chain, screen, *screen.walk_children(), screen.app):
        if hasattr(node, name):
            return node
    return None


class KeyCommands(Provider):
    """The keys of the screen that the palette was opened over, as commands."""

    def _commands(self) -> Iterator[tuple[Key, str, DOMNode]]:
        rebound = getattr(self.app, "rebound", {})
        for key, keys in keymap.in_force(rebound):
            node = doer(self.screen, key)
            if node is not None and key.id != "app.palette":
                yield key, f"{key.label}  ({' '.join(keys)})", node

    async def discover(self) -> Hits:
        """Yield all commands."""
        for key, label, node in self._commands():
            yield DiscoveryHit(label, partial(self._do, key, node), text=label, help=key.id)

    async def search(self, query: str) -> Hits:
        """Yield the commands whose words fit."""
        matcher = self.matcher(query)
        for key, label, node in self._commands():
            score = max(matcher.match(label), matcher.match(key.id))
            if score > 0:
                yield Hit(score, matcher.highlight(label), partial(self._do, key, node), text=label, help=key.id)

    async def _do(self, key: Key, node: DOMNode) -> None:
        await self.app.run_action(key.action, node)
