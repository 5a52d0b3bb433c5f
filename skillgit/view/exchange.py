"""What was pushed or pulled, what stayed, and what a scan found."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from skillgit.view import words
from skillgit.view.gate import following
from skillgit.view.screen import Style
from skillgit.view.text import table
from skillgit.view.words import plural, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillgit.app.exchange.findings import Finding
    from skillgit.app.exchange.publication import Scan
    from skillgit.app.exchange.pull import Cloned, Fetched, Joined, Pulled
    from skillgit.app.exchange.push import Pushed, SentRef
    from skillgit.app.exchange.remote import RemoteRow, RemoteShown
    from skillgit.view.screen import Screen


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
    """Yield what became of each ref, those of one run and one kind together."""
    yield f"{'would push' if result.dry_run else 'push'} to {result.remote}, {result.url}"
    rows = [
        (
            owner,
            _painted(state, result, screen),
            f"{_named(refs)}{f': {reason}' if reason else ''}",
        )
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
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in refs:
        owner = one.run or one.ref.rpartition("/")[2].replace("evals", "notes")
        if not one.run and one.ref.startswith("refs/tags/"):
            owner = "releases"
        found.setdefault((owner, one.state.value, one.reason), []).append(one.ref)
    return found


def _named(refs: Sequence[str]) -> str:
    """Return what kinds of refs these are, with how many there are of those that are many."""
    if len(refs) == 1 and refs[0] in {"refs/heads/main", "refs/notes/skillgit/evals"}:
        return ""
    kinds = Counter(_kind(ref) for ref in refs)
    return ", ".join(
        words.plural(number, _KINDS[kind]) if kind in _COUNTED else _KINDS[kind] for kind, number in kinds.items()
    )


def _kind(ref: str) -> str:
    parts = ref.split("/")
    return parts[1] if parts[1] in {"tags", "notes"} else parts[2]


def pulled(result: Pulled, screen: Screen) -> Iterator[str]:
    """Yield what became of main, of each run and of the notes."""
    yield f"{'would pull' if result.dry_run else 'pull'} from {result.remote}, {result.url}"
    yield from _joined(result, screen)


def _joined(result: Pulled, screen: Screen) -> Iterator[str]:
    rows = [_joined_row("main", result.main, screen)] if result.main is not None else []
    if result.releases:
        rows.append(("releases", "new", ", ".join(result.releases)))
    rows += [_joined_row(one.run, one, screen) for one in result.runs]
    if result.notes:
        rows.append(("notes", "joined", ""))
    for row in table(rows, align="lll"):
        yield f"  {row}".rstrip()
    if not result.runs:
        yield "  it has no runs"


def _joined_row(name: str, one: Joined, screen: Screen) -> tuple[str, str, str]:
    word = _JOINED[one.state.value]
    if one.state.value in {"diverged", "refused"}:
        return name, screen.paint(Style.REJECTED, word), one.reason
    moved = words.plural(one.moved, "ref") if one.moved and name != "main" else ""
    return name, word, "; ".join(part for part in (moved, one.note) if part)


def fetched(result: Fetched, screen: Screen) -> Iterator[str]:
    """Yield what is new, by run."""
    if not result.refs:
        yield f"nothing new from {result.remote}, {result.url}"
        return
    yield f"fetched from {result.remote}, {result.url}"
    by_run: dict[str, list[str]] = {}
    others = 0
    for one in result.refs:
        if one.run:
            by_run.setdefault(one.run, []).append(one.ref)
        else:
            others += 1
    for row in table([(run, _named(refs)) for run, refs in by_run.items()], align="ll"):
        yield f"  {row}".rstrip()
    if others:
        yield f"  {words.plural(others, 'other ref')}"
    evidence = " --evidence" if any(_kind(one.ref) == "evidence" for one in result.refs) else ""
    yield following((f"skillgit pull {result.remote}{evidence}",), screen)


def cloned(result: Cloned, screen: Screen) -> Iterator[str]:
    """Yield where the copy is and what is in it."""
    yield f"cloned {result.pulled.url} into {result.path}"
    yield from _joined(result.pulled, screen)
    yield following((f"cd {result.path}", "skillgit log"), screen)


def addresses(rows: Iterable[RemoteRow]) -> Iterator[str]:
    """Yield names and addresses."""
    listed = [(row.name, row.url, "" if row.url == row.push_url else f"pushed to {row.push_url}") for row in rows]
    for line in table(listed, align="lll"):
        yield line.rstrip()


def remote_shown(result: RemoteShown, screen: Screen) -> Iterator[str]:
    """Yield what a remote has."""
    dot = f" {screen.glyphs.dot} "
    facts = (
        result.remote.url,
        words.plural(result.branches, "branch", "branches"),
        "notes" if result.notes else "no notes",
    )
    yield f"{result.remote.name}  {dot.join(facts)}"
    rows = []
    for one in result.runs:
        beside = (
            words.plural(one.rejected, "rejected candidate") if one.rejected else "",
            "attic" if one.attic else "",
            "evidence" if one.evidence else "",
        )
        rows.append((one.run, _THERE[one.state], ", ".join(part for part in beside if part)))
    for line in table(rows, align="lll"):
        yield f"  {line}".rstrip()


def scanned(result: Scan, screen: Screen) -> Iterator[str]:
    """Yield what was found, and how much was looked at."""
    yield from found(result, screen)
    stops, warnings = len(result.stops), len(result.warnings)
    told = [
        *([f"{plural(stops, 'finding')} that would stop a push"] if stops else []),
        *([plural(warnings, "warning")] if warnings else []),
        *([f"{result.allowed} allowed"] if result.allowed else []),
    ]
    looked = f"looked at {plural(result.commits, 'commit')}, {plural(result.files, 'file')}"
    yield f"{looked}: {', '.join(told) or 'nothing found'}"


def found(result: Scan, screen: Screen) -> Iterator[str]:
    """Yield every finding with its place, the masked line and its fingerprint."""
    for one in (*result.stops, *result.warnings):
        style = Style.REJECTED if one in result.stops else Style.REVERTED
        word = screen.paint(style, one.severity.value)
        yield f"{word}  {screen.paint(Style.OID, short(one.commit))}  {_place(one)}: {one.what} [{one.rule.value}]"
        faint = "  ".join(part for part in (one.fingerprint, one.excerpt) if part)
        yield f"      {screen.paint(Style.FAINT, faint)}"


def _place(one: Finding) -> str:
    if not one.path:
        return f"message, line {one.line}"
    return f"{one.path}:{one.line}" if one.line else one.path
