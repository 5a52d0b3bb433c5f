"""What checks of the history, of skills and of what would be published report, and what was tidied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skillgit.app.skill_format.lint_rules import RuleSeverity
from skillgit.app.upkeep.run_checks import INDEX, Replay, Replayed
from skillgit.domain.skill_listing import ListingState
from skillgit.view.numbers import plural, short
from skillgit.view.surface import Screen, Style
from skillgit.view.text import fit, headed, one_line, pad

if TYPE_CHECKING:
    from skillgit.app.exchange.push_check import Scan
    from skillgit.app.exchange.secret_scan import ScanFinding
    from skillgit.app.skill_format.library_lint import LibraryReport
    from skillgit.app.skill_format.lint import Linted
    from skillgit.app.upkeep.fsck import Checked, Problem
    from skillgit.app.upkeep.maintenance import Tidied


_STYLES = {RuleSeverity.ERROR: Style.REJECTED, RuleSeverity.WARNING: Style.REVERTED}


def linted(report: Linted, screen: Screen) -> Iterator[str]:
    for skill in report.skills:
        for fault in skill.faults:
            path = f"{skill.place}/{fault.path}" if fault.path else skill.place
            word = screen.paint(_STYLES[fault.severity], fault.severity.value)
            line = f":{fault.line}" if fault.line else ""
            yield f"{path}{line}: {word}: {fault.sentence} [{fault.rule}]"
            yield f"    {screen.paint(Style.FAINT, fault.mend)}"
    counts = [plural(count, word) for count, word in ((report.errors, "error"), (report.warnings, "warning")) if count]
    yield f"checked {plural(len(report.skills), 'skill')}: {', '.join(counts) or 'nothing to mend'}"


_SHOWN = {
    ListingState.WHOLE: Style.ACCEPTED,
    ListingState.CUT: Style.REVERTED,
    ListingState.NAME: Style.REJECTED,
    ListingState.ABSENT: Style.REJECTED,
}


def library_lines(report: LibraryReport, screen: Screen) -> Iterator[str]:
    """Yield a table for each agent, then what the rules say."""
    for table in report.listings:
        yield f"{screen.paint(Style.STRONG, table.agent.label)}  {table.size:,} of {table.budget:,} {table.unit}"
        rows = [
            (
                one_line(entry.skill.name),
                screen.paint(_SHOWN[entry.state], entry.state.value),
                f"{len(entry.text):,}",
                f"{len(entry.skill.description):,}",
                *_nearest(report, entry.skill.name),
            )
            for entry in table.entries
        ]
        yield from headed(("skill", "shown", "characters", "of", "nearest", ""), rows, screen, align="llrrlr")
        yield ""
    yield from linted(report.findings, screen)


def _nearest(report: LibraryReport, name: str) -> tuple[str, str]:
    neighbour = report.nearest.get(name)
    return ("", "") if neighbour is None else (one_line(neighbour.name), f"{round(100 * neighbour.share)} %")


_DIFFERS = "differs"
_CHECKED = len("gate patch")


def replay_lines(replay: Replay, screen: Screen, *, quiet: bool) -> Iterator[str]:
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
    word, style = (_DIFFERS, Style.REJECTED) if event.differing else ("same", Style.ACCEPTED)
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
    screenings = sum(event.screening for event in replay.events)
    more = f" · {plural(screenings, 'screening')}" if screenings else ""
    yield (
        f"asked again: {plural(gates, 'gate')}{more} · applied again: {plural(patches, 'patch', 'patches')}"
        + (f" · {lacking} not, for want of {want}" if lacking else "")
    )
    yield f"history {screen.paint(Style.OID, replay.history)}"


def scanned(result: Scan, screen: Screen) -> Iterator[str]:
    yield from found(result, screen)
    counts = (
        f"{plural(len(result.stops), 'finding')} that would stop a push" if result.stops else "",
        plural(len(result.warnings), "warning") if result.warnings else "",
        f"{result.allowed} allowed" if result.allowed else "",
    )
    scope = f"looked at {plural(result.commits, 'commit')}, {plural(result.files, 'file')}"
    yield f"{scope}: {', '.join(filter(None, counts)) or 'nothing found'}"


def found(result: Scan, screen: Screen) -> Iterator[str]:
    for hit in (*result.stops, *result.warnings):
        style = Style.REJECTED if hit in result.stops else Style.REVERTED
        word = screen.paint(style, hit.severity.value)
        yield f"{word}  {screen.paint(Style.OID, short(hit.commit))}  {_position(hit)}: {hit.what} [{hit.rule.value}]"
        faint = "  ".join(part for part in (hit.fingerprint, hit.excerpt) if part)
        yield f"      {screen.paint(Style.FAINT, faint)}"


def _position(finding: ScanFinding) -> str:
    if not finding.path:
        return f"message, line {finding.line}"
    return f"{finding.path}:{finding.line}" if finding.line else finding.path


_WIDTH = len("repairable")


def problem_lines(report: Checked, screen: Screen) -> Iterator[str]:
    for repair in report.mended:
        yield f"{pad(screen.paint(Style.ACCEPTED, 'mended'), _WIDTH)}  {repair}"
    for problem in report.problems:
        commit = f"{screen.paint(Style.OID, short(problem.commit))}  " if problem.commit else ""
        word, style = _severity(problem)
        run = f"{problem.run}  " if problem.run else ""
        yield f"{pad(screen.paint(style, word), _WIDTH)}  {run}{commit}{problem.sentence}"
    remarks = sum(problem.remark for problem in report.problems)
    count = "no problems" if report.sound else plural(len(report.problems) - remarks, "problem")
    also = f", {plural(remarks, 'remark')}" if remarks else ""
    yield f"checked {plural(report.runs, 'run')}, {plural(report.commits, 'event')}: {count}{also}"


def _severity(problem: Problem) -> tuple[str, Style]:
    if problem.remark:
        return "remark", Style.SKIPPED
    return ("repairable", Style.REVERTED) if problem.repairable else ("broken", Style.REJECTED)


def gc_lines(rows: Sequence[Tidied], *, dry_run: bool) -> Iterator[str]:
    width = max((len(row.run) for row in rows), default=0)
    for row in rows:
        for sentence in _tidied(row, dry_run=dry_run):
            yield f"{row.run.ljust(width)}  {sentence}"
    if not rows:
        yield "there are no runs yet"


def _tidied(row: Tidied, *, dry_run: bool) -> Iterator[str]:
    if row.left:
        yield f"left as it is: {row.left}"
        return
    if row.folded:
        candidates = f"{plural(row.folded, 'candidate')}; undo: skillgit gc --unfold {row.run}"
        yield f"{'would fold' if dry_run else 'folded'} {candidates}"
    if row.unfolded:
        yield f"{'would give back' if dry_run else 'gave back'} {plural(row.unfolded, 'branch', 'branches')}"
    if row.dropped:
        events = f"the evidence of {plural(row.dropped, 'event')}, {_size(row.freed)} uncompressed"
        yield f"{'would drop' if dry_run else 'dropped'} {events}"
    if not (row.folded or row.unfolded or row.dropped):
        yield "nothing to do" + (f", {plural(row.attic, 'candidate')} in the attic" if row.attic else "")


def _size(count: int) -> str:
    value, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:  # noqa: PLR2004 - what the prefixes stand for
        value, units = value / 1000, units[1:]
    return f"{count} bytes" if units[0] == "bytes" else f"{value:.1f} {units[0]}"
