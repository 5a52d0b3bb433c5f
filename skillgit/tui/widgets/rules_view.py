"""Two versions rule by rule: what came, what went, and which step did it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from skillgit.tui.keymap import bindings
from skillgit.tui.widgets.painted_lines import AT_ONCE, Painted, Part, RenderedLines
from skillgit.tui.widgets.rendered import disarmed, rendered
from skillgit.view import rule_changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from skillgit.app.history.diff.rules import RulesDiffed

_HEAD = 2
"""Lines above the rules that the screen has said already: the two sides, and a blank one."""


class RulesView(RenderedLines):
    """The rules that two versions do not share, with what each rests on and what its step gained."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._rules: RulesDiffed | None = None

    def show(self, rules: RulesDiffed) -> None:
        """Show the difference of two versions' rules."""
        self._rules = rules
        self.shown()
        self.lay_out()

    @property
    def heavy(self) -> bool:
        """Whether there are many rules."""
        return self._rules is not None and len(self._rules.rows) > AT_ONCE

    def made(self) -> Sequence[Painted]:
        """Return the rules, then the sums."""
        if self._rules is None:
            return ()
        ink = replace(self.ink, width=self.room - 1)
        lines = rendered(islice(rule_changes.lines(disarmed(self._rules, ink), ink), _HEAD, None))
        return [(Part(" "), *line) for line in lines]
