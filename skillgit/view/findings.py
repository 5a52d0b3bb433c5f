"""Findings of checks as people and programs read them: of history, skills, data and pushes; and what was tidied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from skillgit.domain.finding import Finding, Severity
from skillgit.domain.skill_listing import ListingState
from skillgit.view.json_values import Json, picked, plain_value
from skillgit.view.numbers import plural, short
from skillgit.view.surface import Screen, Style
from skillgit.view.text import headed, one_line

if TYPE_CHECKING:
    from skillgit.app.exchange.push_check import Scan
    from skillgit.app.skill_format.library_lint import LibraryReport
    from skillgit.app.skill_format.lint import Linted
    from skillgit.app.upkeep.fsck import Checked, RemadeRun
    from skillgit.app.upkeep.maintenance import Tidied


_STYLES = {Severity.ERROR: Style.REJECTED, Severity.WARNING: Style.REVERTED, Severity.REMARK: Style.SKIPPED}


@dataclass(frozen=True, slots=True)
class FindingForm:
    """How a command says what its check finds.

    Attributes:
        error: Its word for an error.
        warning: Its word for a warning.
        fields: The fields of a record for programs: names of the finding's, with the command's own name before ``=``.
    """

    error: str
    warning: str
    fields: str

    def word(self, finding: Finding) -> str:
        if finding.repairable:
            return "repairable"
        words = {Severity.ERROR: self.error, Severity.WARNING: self.warning, Severity.REMARK: "remark"}
        return words[finding.severity]

    def record(self, finding: Finding) -> dict[str, Json]:
        own: Mapping[str, Json] = {
            "severity": self.word(finding),
            "remark": finding.severity is Severity.REMARK,
            "repairable": finding.repairable,
        }
        names = (field.partition("=")[::2] for field in self.fields.split())
        return {
            name: own[name] if name in own else plain_value(getattr(finding, attribute or name))
            for name, attribute in names
        }

    def lines(self, findings: Iterable[Finding], screen: Screen) -> Iterator[str]:
        """Yield where and what each finding is, and the way out once for those in a row that share it."""
        for (hint, _), group in groupby(findings, key=lambda finding: (finding.hint, finding.severity)):
            for finding in group:
                word = f"{screen.paint(_STYLES[finding.severity], self.word(finding))}:"
                where = _where(finding, screen)
                rule = f" [{finding.rule}]" if finding.rule else ""
                yield f"{f'{where}: ' if where else ''}{word} {finding.sentence}{rule}"
                if evidence := "  ".join(filter(None, (finding.fingerprint, finding.excerpt))):
                    yield f"    {screen.paint(Style.FAINT, evidence)}"
            if hint and not finding.repairable:
                yield f"    {screen.paint(Style.FAINT, hint)}"


def _where(finding: Finding, screen: Screen) -> str:
    commit = screen.paint(Style.OID, short(finding.commit)) if finding.commit else ""
    return "  ".join(filter(None, (finding.run, commit, finding.place)))


FSCK: Final = FindingForm("broken", "broken", "run commit sentence repairable remark")
LINT: Final = FindingForm("error", "warning", "rule severity path line sentence mend=hint")
SCAN: Final = FindingForm("stop", "warn", "rule severity commit path line what=sentence excerpt fingerprint")
DATA: Final = FindingForm("fault", "warning", "severity kind=rule sentence hint items")


def problem_lines(report: Checked, screen: Screen) -> Iterator[str]:
    yield from (f"{screen.paint(Style.ACCEPTED, 'repaired')}: {repair}" for repair in report.mended)
    yield from FSCK.lines(report.problems, screen)
    for run in report.remade:
        is_sound = not any(run.run == problem.run and problem.severity is Severity.ERROR for problem in report.problems)
        yield from _remade(run, screen, is_sound=is_sound)
    remarks = sum(problem.severity is Severity.REMARK for problem in report.problems)
    count = "no problems" if report.sound else plural(len(report.problems) - remarks, "problem")
    also = f", {plural(remarks, 'remark')}" if remarks else ""
    yield f"checked {plural(report.runs, 'run')}, {plural(report.commits, 'event')}: {count}{also}"


def _remade(run: RemadeRun, screen: Screen, *, is_sound: bool) -> Iterator[str]:
    outcome = "nothing came out otherwise" if run.lacking else "all came out as recorded"
    yield f"{run.run}: {plural(run.events, 'event')} made again, {outcome if is_sound else 'with problems'}"
    want = "their policy" if all("the policy" in reason for reason in run.lacking) else "evidence"
    screenings = f", {plural(run.screenings, 'screening')}" if run.screenings else ""
    parts = (
        f"asked again: {plural(run.gates, 'gate')}{screenings}",
        f"applied again: {plural(run.patches, 'patch', 'patches')}",
        f"{len(run.lacking)} not, for want of {want}" if run.lacking else "",
    )
    yield f"  {screen.dotted(parts)}"
    yield from (screen.paint(Style.FAINT, f"  not again: {reason}") for reason in run.lacking)
    yield f"  history {screen.paint(Style.OID, run.history)}"


def linted(report: Linted, screen: Screen) -> Iterator[str]:
    for skill in report.skills:
        paths = ((fault, f"{skill.place}/{fault.path}" if fault.path else skill.place) for fault in skill.faults)
        yield from LINT.lines([replace(fault, path=path) for fault, path in paths], screen)
    counts = [plural(count, word) for count, word in ((report.errors, "error"), (report.warnings, "warning")) if count]
    yield f"checked {plural(len(report.skills), 'skill')}: {', '.join(counts) or 'no problems'}"


def lint_document(report: Linted) -> dict[str, object]:
    skills = [{**picked(skill, "place name"), "faults": [*map(LINT.record, skill.faults)]} for skill in report.skills]
    return {"errors": report.errors, "warnings": report.warnings, "skills": skills}


def library_document(report: LibraryReport) -> dict[str, object]:
    return picked(report, "listings nearest") | {"findings": {"skills": lint_document(report.findings)["skills"]}}


def scanned(result: Scan, screen: Screen) -> Iterator[str]:
    stops, warnings = result.stops, result.warnings
    yield from SCAN.lines((*stops, *warnings), screen)
    counts = (
        f"{plural(len(stops), 'finding')} that would stop a push" if stops else "",
        plural(len(warnings), "warning") if warnings else "",
        f"{result.allowed} allowed" if result.allowed else "",
    )
    scope = f"looked at {plural(result.commits, 'commit')}, {plural(result.files, 'file')}"
    yield f"{scope}: {', '.join(filter(None, counts)) or 'nothing found'}"


def scan_document(result: Scan) -> dict[str, object]:
    return picked(result, "commits files findings allowed unchecked") | {
        "findings": [*map(SCAN.record, result.findings)]
    }


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
