"""Where skill folders break the rules of Agent Skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.agent_skills.rules import Severity
from skillgit.cli.render.words import plural
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.agent_skills.rules import Fault
    from skillgit.app.lint import Linted
    from skillgit.cli.screen import Screen

_STYLES = {Severity.ERROR: Style.REJECTED, Severity.WARNING: Style.REVERTED}


def linted(found: Linted, screen: Screen) -> Iterator[str]:
    """Yield every finding with its place, its rule and what to do, and how many there are."""
    for skill in found.skills:
        for fault in skill.faults:
            yield f"{_place(skill.place, fault)}: {_told(fault, screen)}"
            yield f"    {screen.paint(Style.FAINT, fault.mend)}"
    told = [plural(count, word) for count, word in ((found.errors, "error"), (found.warnings, "warning")) if count]
    yield f"checked {plural(len(found.skills), 'skill')}: {', '.join(told) or 'nothing to mend'}"


def _place(folder: str, fault: Fault) -> str:
    path = f"{folder}/{fault.path}" if fault.path else folder
    return f"{path}:{fault.line}" if fault.line else path


def _told(fault: Fault, screen: Screen) -> str:
    word = screen.paint(_STYLES[fault.severity], fault.severity.value)
    return f"{word}: {fault.sentence} [{fault.rule}]"
