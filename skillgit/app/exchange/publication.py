"""``skillgit scan``, and the check before a push that refuses to publish secrets and leaked items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.exchange.findings import Finding as Finding  # noqa: PLC0414 - what a scan returns
from skillgit.app.exchange.findings import Severity as Severity  # noqa: PLC0414 - as above
from skillgit.app.exchange.findings import read_allowed
from skillgit.app.exchange.scanned import Look
from skillgit.app.exchange.scanning import LeakFinder, secret_scanner
from skillgit.app.place.revision import event_in, resolve_in
from skillgit.app.place.span import split_range
from skillgit.app.place.workspace import open_workspace
from skillgit.errors import SkillgitError
from skillgit.store import published

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillgit.app.place.context import Context
    from skillgit.app.place.workspace import Workspace

_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What was looked at and what was found.

    Attributes:
        commits: How many commits.
        files: How many distinct contents of files.
        findings: What was found, that of older commits first; what is allowed is left out.
        allowed: How many findings are allowed.
        unchecked: Sentences: what could not be looked for.
    """

    commits: int
    files: int
    findings: tuple[Finding, ...]
    allowed: int = 0
    unchecked: tuple[str, ...] = ()

    @property
    def stops(self) -> tuple[Finding, ...]:
        """What stops a push."""
        return tuple(found for found in self.findings if found.severity is Severity.STOP)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is told and stops nothing."""
        return tuple(found for found in self.findings if found.severity is Severity.WARN)


def scan(context: Context, word: str | None = None, *, evidence: bool = False) -> Scan:
    """Look at commits of a repository.

    Args:
        context: Where to look.
        word: A revision, for everything that it leads to, or a range; None for what no remote has.
        evidence: Whether evidence and folded candidates are looked at too; only without a word.

    Raises:
        ConfigError: A list of what is allowed cannot be read.
        HistoryError: A commit or a file is missing or damaged.
        RevisionNotFoundError: The word names nothing.
        UsageError: The word is no range.
    """
    with open_workspace(context) as workspace:
        if word is None:
            tips, known = published.publishable(workspace.repo, evidence=evidence)
        else:
            tips, known = _ends(workspace, word)
        return scan_commits(context, workspace, tips, known)


def scan_commits(context: Context, workspace: Workspace, tips: Iterable[str], known: Iterable[str] = ()) -> Scan:
    """Look at the commits that ``tips`` lead to and ``known`` do not.

    Args:
        context: What is outside.
        workspace: The repository.
        tips: Ids of the commits or annotated tags that are to be published, of whatever kind of ref.
        known: Ids of what the other side has; those that are not in this repository are passed over.

    Raises:
        ConfigError: A list of what is allowed cannot be read.
        HistoryError: A commit or a file is missing or damaged.
    """
    tips = list(dict.fromkeys(tips))
    allowed, leaks = read_allowed(workspace.repo), LeakFinder(context, workspace)
    with secret_scanner() as scanner:
        look = Look(workspace.repo, scanner, leaks, allowed)
        for commit in published.new_commits(workspace.repo, tips, known):
            look.at(commit)
        look.at_tips(tips)
    return Scan(
        commits=len(look.commits),
        files=len(look.blobs),
        findings=tuple(look.findings.values()),
        allowed=len(look.allowed_findings),
        unchecked=tuple(leaks.unchecked),
    )


def check(scanned: Scan) -> None:
    """Refuse to publish what must not leave.

    Raises:
        SkillgitError: There is something that stops a push.
    """
    if not scanned.stops:
        return
    first, more = scanned.stops[0], len(scanned.stops) - 1
    place = f"{first.path}:{first.line}" if first.line else first.path or "its message"
    others = f" and {more} more" if more else ""
    raise SkillgitError(
        f"commit {first.commit[:_SHORT]} holds what must not leave, in {place}: {first.what}{others}",
        hint="skillgit scan shows everything, with fingerprints for .skillgit-allow",
    )


def _ends(workspace: Workspace, word: str) -> tuple[list[str], list[str]]:
    ends = split_range(word)
    if ends is None:
        return [resolve_in(workspace, word).commit], []
    begin, end = ends
    run = (begin or end).rpartition("/")[0]
    last = resolve_in(workspace, end).commit if end else event_in(workspace, f"{run}/head" if run else "head").commit
    return [last], [resolve_in(workspace, begin).commit] if begin else []
