"""What fails now: each reason with how many items it concerns, and which."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.paragraphs import Paragraph, Paragraphs
from skillgit.view.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.binding import BindingType

    from skillgit.app.history.live import Snapshot
    from skillgit.domain.failing import Failing
    from skillgit.view.screen import Screen

_INDENT = 6
_UNTYPED = "default"
"""The type of items that have none."""


class FailingList(Paragraphs, inherit_bindings=False):
    """Failing items by reason, the most frequent one first; the view stays where it is when there are others."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    def look(self, snapshot: Snapshot | None) -> None:
        """Show what fails in ``snapshot``."""
        self.border_title = title(snapshot)
        found = snapshot.failing if snapshot is not None else ()
        if not found:
            rolled = snapshot is not None and snapshot.rolled
            self.tell("nothing fails so far" if rolled else "no item was rolled out yet")
            return
        wanted = [paragraph for failing in found for paragraph in _paragraphs(failing, self.ink)]
        if wanted != self._paragraphs or not self.count:
            self._paragraphs = wanted
            self.shown()
            self.lay_out()


def title(snapshot: Snapshot | None) -> str:
    """Return what stands above the list."""
    if snapshot is None or not snapshot.rolled:
        return "Failing now"
    return f"Failing now  {snapshot.failed} of {snapshot.rolled}  {snapshot.looked_at}"


def _paragraphs(failing: Failing, screen: Screen) -> Iterator[Paragraph]:
    kind = f"{failing.task_type}: " if failing.task_type not in {"", _UNTYPED} else ""
    alone = failing.count == 1
    reason = failing.example if alone else failing.reason
    yield Paragraph(f"{kind}{reason}", "", indent=_INDENT, lead=f"{failing.count:>4}")
    more = f" {screen.glyphs.ellipsis}" if failing.count > len(failing.items) else ""
    yield Paragraph(f"{' '.join(failing.items)}{more}", Style.REF, indent=_INDENT)
    if not alone and failing.example != failing.reason:
        yield Paragraph(f"as in: {failing.example}", Style.FAINT, indent=_INDENT)
