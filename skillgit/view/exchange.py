"""What was pushed or pulled, what stayed, and what a scan found."""

from __future__ import annotations

from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.view import numbers
from skillgit.view.gate import following
from skillgit.view.numbers import plural, short
from skillgit.view.surface import Style
from skillgit.view.text import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillgit.app.exchange.findings import ScanFinding
    from skillgit.app.exchange.pull import Cloned, FetchResult, Joined, Pulled
    from skillgit.app.exchange.push import Pushed, SentRef
    from skillgit.app.exchange.push_check import Scan
    from skillgit.app.exchange.remote import RemoteRow, RemoteShown
    from skillgit.view.surface import Screen


_STATES = {"pushed": "pushed", "up_to_date": "up to date", "rejected": "rejected"}
_JOINED = {
    "new": "new",
    "forward": "went forward",
    "up_to_date": "up to date",
    "ahead": "ahead, not pushed",
    "diverged": "diverged",
    "refused": "left as it is",
}
_KINDS = {
    "run": "run",
    "slow": "slow line",
    "best": "best",
    "rejected": "rejected candidate",
    "tags": "tag",
    "notes": "notes",
    "evidence": "evidence",
    "dropped": "list of dropped evidence",
    "attic": "attic",
    "plan": "configuration",
}
_COUNTED = {"rejected", "tags"}
_THERE = {
    "same": "the same",
    "ahead": "not pushed yet",
    "behind": "has more than here",
    "diverged": "diverged",
    "unknown": "has something that was not fetched",
    "only-here": "only here",
    "only-there": "only there",
}


def pushed(result: Pushed, screen: Screen) -> Iterator[str]:
    """Yield what happened to each ref, those of one run and one kind together."""
    yield f"{'would push' if result.dry_run else 'push'} to {result.remote}, {result.url}"
    rows = [
        (owner, _painted(state, result, screen), f"{_named(refs)}{f': {reason}' if reason else ''}")
        for (owner, state, reason), refs in _grouped(result.refs).items()
    ]
    for row in table(rows, align="lll"):
        yield f"  {row}".rstrip()
    if not result.refs:
        yield "  nothing to push"


def _painted(state: str, result: Pushed, screen: Screen) -> str:
    word = "to push" if state == "pushed" and result.dry_run else _STATES[state]
    return screen.paint(Style.REJECTED, word) if state == "rejected" else word


def _grouped(refs: Iterable[SentRef]) -> dict[tuple[str, str, str], list[str]]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for ref in refs:
        owner = ref.run or ref.ref.rpartition("/")[2].replace("evals", "notes")
        if not ref.run and ref.ref.startswith("refs/tags/"):
            owner = "releases"
        groups.setdefault((owner, ref.state.value, ref.reason), []).append(ref.ref)
    return groups


def _named(refs: Sequence[str]) -> str:
    """Return what kinds of refs these are, with how many there are of those that are many."""
    if len(refs) == 1 and refs[0] in {"refs/heads/main", "refs/notes/skillgit/evals"}:
        return ""
    kinds = Counter(_kind(ref) for ref in refs)
    return ", ".join(
        numbers.plural(number, _KINDS[kind]) if kind in _COUNTED else _KINDS[kind] for kind, number in kinds.items()
    )


def _kind(ref: str) -> str:
    parts = ref.split("/")
    return parts[1] if parts[1] in {"tags", "notes"} else parts[2]


def pulled(result: Pulled, screen: Screen) -> Iterator[str]:
    """Yield what happened to main, of each run and of the notes."""
    yield f"{'would pull' if result.dry_run else 'pull'} from {result.remote}, {result.url}"
    yield from _joined(result, screen)


def _joined(result: Pulled, screen: Screen) -> Iterator[str]:
    rows = [_joined_row("main", result.main, screen)] if result.main is not None else []
    if result.releases:
        rows.append(("releases", "new", ", ".join(result.releases)))
    rows += [_joined_row(entry.run, entry, screen) for entry in result.runs]
    if result.notes:
        rows.append(("notes", "joined", ""))
    for row in table(rows, align="lll"):
        yield f"  {row}".rstrip()
    if not result.runs:
        yield "  it has no runs"


def _joined_row(name: str, entry: Joined, screen: Screen) -> tuple[str, str, str]:
    word = _JOINED[entry.state.value]
    if entry.state.value in {"diverged", "refused"}:
        return name, screen.paint(Style.REJECTED, word), entry.reason
    count = numbers.plural(entry.moved, "ref") if entry.moved and name != "main" else ""
    return name, word, "; ".join(part for part in (count, entry.note) if part)


def fetched(result: FetchResult, screen: Screen) -> Iterator[str]:
    if not result.refs:
        yield f"nothing new from {result.remote}, {result.url}"
        return
    yield f"fetched from {result.remote}, {result.url}"
    by_run: dict[str, list[str]] = {}
    rest = 0
    for ref in result.refs:
        if ref.run:
            by_run.setdefault(ref.run, []).append(ref.ref)
        else:
            rest += 1
    for row in table([(run, _named(refs)) for run, refs in by_run.items()], align="ll"):
        yield f"  {row}".rstrip()
    if rest:
        yield f"  {numbers.plural(rest, 'other ref')}"
    evidence = " --evidence" if any(_kind(ref.ref) == "evidence" for ref in result.refs) else ""
    yield following((f"skillgit pull {quote(result.remote)}{evidence}",), screen)


def cloned(result: Cloned, screen: Screen) -> Iterator[str]:
    """Yield where the copy is and what is in it."""
    yield f"cloned {result.pulled.url} into {result.path}"
    yield from _joined(result.pulled, screen)
    yield following((f"cd {quote(str(result.path))}", "skillgit log"), screen)


def addresses(rows: Iterable[RemoteRow]) -> Iterator[str]:
    cells = [(row.name, row.url, "" if row.url == row.push_url else f"pushed to {row.push_url}") for row in rows]
    for line in table(cells, align="lll"):
        yield line.rstrip()


def remote_shown(result: RemoteShown, screen: Screen) -> Iterator[str]:
    dot = f" {screen.glyphs.dot} "
    facts = (
        result.remote.url,
        numbers.plural(result.branches, "branch", "branches"),
        "notes" if result.notes else "no notes",
    )
    yield f"{result.remote.name}  {dot.join(facts)}"
    rows = []
    for run in result.runs:
        beside = (
            numbers.plural(run.rejected, "rejected candidate") if run.rejected else "",
            "attic" if run.attic else "",
            "evidence" if run.evidence else "",
        )
        rows.append((run.run, _THERE[run.state], ", ".join(part for part in beside if part)))
    for line in table(rows, align="lll"):
        yield f"  {line}".rstrip()


def scanned(result: Scan, screen: Screen) -> Iterator[str]:
    """Yield what was found, and how much was looked at."""
    yield from found(result, screen)
    stops, warnings = len(result.stops), len(result.warnings)
    counts = [
        *([f"{plural(stops, 'finding')} that would stop a push"] if stops else []),
        *([plural(warnings, "warning")] if warnings else []),
        *([f"{result.allowed} allowed"] if result.allowed else []),
    ]
    scope = f"looked at {plural(result.commits, 'commit')}, {plural(result.files, 'file')}"
    yield f"{scope}: {', '.join(counts) or 'nothing found'}"


def found(result: Scan, screen: Screen) -> Iterator[str]:
    """Yield every finding with its place, the masked line and its fingerprint."""
    for hit in (*result.stops, *result.warnings):
        style = Style.REJECTED if hit in result.stops else Style.REVERTED
        word = screen.paint(style, hit.severity.value)
        yield f"{word}  {screen.paint(Style.OID, short(hit.commit))}  {_place(hit)}: {hit.what} [{hit.rule.value}]"
        faint = "  ".join(part for part in (hit.fingerprint, hit.excerpt) if part)
        yield f"      {screen.paint(Style.FAINT, faint)}"


def _place(finding: ScanFinding) -> str:
    if not finding.path:
        return f"message, line {finding.line}"
    return f"{finding.path}:{finding.line}" if finding.line else finding.path
