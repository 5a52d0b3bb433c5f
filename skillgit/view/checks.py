"""What lint and replay report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.skill_format.lint_rules import RuleSeverity
from skillgit.app.upkeep.replay import INDEX
from skillgit.view.numbers import plural, short
from skillgit.view.surface import Style
from skillgit.view.text import fit, pad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.skill_format.lint import Linted
    from skillgit.app.skill_format.lint_rules import Fault
    from skillgit.app.upkeep.replay import Replay, Replayed
    from skillgit.view.surface import Screen


_STYLES = {RuleSeverity.ERROR: Style.REJECTED, RuleSeverity.WARNING: Style.REVERTED}


def linted(report: Linted, screen: Screen) -> Iterator[str]:
    """Yield every finding with its place, its rule and what to do, and how many there are."""
    for skill in report.skills:
        for fault in skill.faults:
            yield f"{_place(skill.place, fault)}: {_told(fault, screen)}"
            yield f"    {screen.paint(Style.FAINT, fault.mend)}"
    counts = [plural(count, word) for count, word in ((report.errors, "error"), (report.warnings, "warning")) if count]
    yield f"checked {plural(len(report.skills), 'skill')}: {', '.join(counts) or 'nothing to mend'}"


def _place(folder: str, fault: Fault) -> str:
    path = f"{folder}/{fault.path}" if fault.path else folder
    return f"{path}:{fault.line}" if fault.line else path


def _told(fault: Fault, screen: Screen) -> str:
    word = screen.paint(_STYLES[fault.severity], fault.severity.value)
    return f"{word}: {fault.sentence} [{fault.rule}]"


_SAME, _DIFFERS = "same", "differs"
_CHECKED = len("gate patch")


def replay_lines(replay: Replay, screen: Screen, *, quiet: bool) -> Iterator[str]:
    """Yield one line for each event, below it what differs, and a summary."""
    width = max((len(event.label) for event in replay.events), default=0)
    for event in replay.events:
        if event.differing or not quiet:
            yield _line(event, screen, width)
        yield from (f"  {screen.paint(Style.REJECTED, difference)}" for difference in event.differing)
    yield from (screen.paint(Style.REJECTED, difference) for difference in replay.differing)
    if not replay.index:
        yield screen.paint(Style.REJECTED, INDEX)
    if not quiet:
        yield ""
    yield from _summary(replay, screen)


def _line(event: Replayed, screen: Screen, width: int) -> str:
    word, style = (_DIFFERS, Style.REJECTED) if event.differing else (_SAME, Style.ACCEPTED)
    checks = f"{'gate' if event.gate else '    '} {'patch' if event.patch else ''}"
    cells = [
        pad(screen.paint(style, word), len(_DIFFERS)),
        event.label.ljust(width),
        screen.paint(Style.OID, short(event.commit)),
        checks.ljust(_CHECKED),
    ]
    start = "  ".join(cells)
    note = f"not again: {'; '.join(event.lacking)}" if event.lacking else event.title
    room = screen.width - (len(_DIFFERS) + width + len(short(event.commit)) + _CHECKED + 8) if screen.width else 0
    text = fit(note, room, screen.glyphs.ellipsis) if room > 0 else note
    return f"{start}  {screen.paint(Style.FAINT, text) if event.lacking else text}".rstrip()


def _summary(replay: Replay, screen: Screen) -> Iterator[str]:
    differ = sum(bool(event.differing) for event in replay.events)
    gates = sum(event.gate for event in replay.events)
    patches = sum(event.patch for event in replay.events)
    reasons = [reason for event in replay.events for reason in event.lacking]
    lacking, want = len(reasons), "their policy" if all("the policy" in text for text in reasons) else "evidence"
    outcome = "nothing came out otherwise" if lacking else "all came out as recorded"
    outcome = outcome if replay.same else f"{differ} came out otherwise"
    if not differ and not replay.same:
        outcome = "the commits agree with each other, and something around them does not"
    yield f"{replay.run}: {plural(len(replay.events), 'event')} made again, {outcome}"
    yield f"asked again: {plural(gates, 'gate')} · applied again: {plural(patches, 'patch', 'patches')}" + (
        f" · {lacking} not, for want of {want}" if lacking else ""
    )
    yield f"history {screen.paint(Style.OID, replay.history)}"
