"""``skillgit scan``, and the check before a push that refuses to publish secrets and leaked items."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from skillgit.app.exchange.secret_scan import (
    Allowed,
    FindingKind,
    LeakFinder,
    ScanFinding,
    finding,
    is_allowed_inline,
    read_allowed,
)
from skillgit.app.exchange.secret_scan import ScanSeverity as Severity
from skillgit.app.skill_format.frontmatter import read_head
from skillgit.app.skill_format.lint import licence_files, unlicensed
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in, resolve_in
from skillgit.app.workspace.revision_range import split_range
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.credentials.detector import MASK, Certainty, FoundCredential, cut_out, is_guess
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import SkillgitError
from skillgit.plugin.redaction import Redactor, values_of
from skillgit.store.diff import NewCommit, NewFile, content, new_commits, publishable
from skillgit.store.repo import Repo
from skillgit.store.tree import outward_links, skill_folders

_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    commits: int
    files: int
    findings: tuple[ScanFinding, ...]  # what was found, that of older commits first; what is allowed is left out
    allowed: int = 0
    unchecked: tuple[str, ...] = ()

    @property
    def stops(self) -> tuple[ScanFinding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.STOP)

    @property
    def warnings(self) -> tuple[ScanFinding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARN)


def scan(context: Context, word: str | None = None, *, evidence: bool = False) -> Scan:
    """Look at the commits of ``word``: a revision with all that it leads to, or a range; None for what no remote has.

    Only without a word, ``evidence`` adds evidence and folded candidates.
    """
    with open_workspace(context) as workspace:
        if word is None:
            tips, bases = publishable(workspace.repo, evidence=evidence)
        else:
            tips, bases = _ends(workspace, word)
        return scan_commits(context, workspace, tips, bases)


def scan_commits(context: Context, workspace: Workspace, tips: Iterable[str], bases: Iterable[str] = ()) -> Scan:
    """Look at the commits that ``tips`` lead to and ``bases`` do not, as far as those are in this repository."""
    tips = list(dict.fromkeys(tips))
    exceptions, leaks = read_allowed(workspace.repo), LeakFinder(context, workspace)
    look = ScanCollector(workspace.repo, leaks, exceptions)
    for commit in new_commits(workspace.repo, tips, bases):
        look.at(commit)
    look.at_tips(tips)
    return Scan(
        commits=len(look.commits),
        files=len(look.blobs),
        findings=tuple(look.findings.values()),
        allowed=len(look.allowed_findings),
        unchecked=tuple(leaks.unchecked),
    )


def check(result: Scan) -> None:
    """Refuse to publish what must not leave."""
    if not result.stops:
        return
    first, more = result.stops[0], len(result.stops) - 1
    where = f"{first.path}:{first.line}" if first.line else first.path or "its message"
    more_text = f" and {more} more" if more else ""
    raise SkillgitError(
        f"commit {first.commit[:_SHORT]} holds what must not leave, in {where}: {first.what}{more_text}",
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


MEBIBYTE = 1024 * 1024
HUGE, LARGE = 100 * MEBIBYTE, 50 * MEBIBYTE
"""Bytes of a file that GitHub refuses, and of one that it warns of."""
_SEARCHED = 5 * MEBIBYTE
"""Bytes of a text from which on it is searched for shapes of credentials only."""
_BINARY = 8000
"""Bytes at the beginning of a file in which git looks for NUL to tell that it is no text."""

_AROUND = 6
"""Lines before and behind a new one that are read with it: a value may be behind a name in the line above."""
_EXCERPT = 160

Lines = list[tuple[int, str]]


class ScanCollector:
    def __init__(self, repo: Repo, leaks: LeakFinder, exceptions: Allowed) -> None:
        self._repo = repo
        self._redactor = Redactor.now(Certainty.LIKELY)
        self._cache: dict[str, list[FoundCredential]] = {}  # stretches of texts that were read before
        self._leaks = leaks
        self._exceptions = exceptions
        self._skills: set[str] = set()
        self._versions: set[tuple[str, str]] = set()
        self.findings: dict[str, ScanFinding] = {}
        self.allowed_findings: set[str] = set()
        self.commits: set[str] = set()
        self.blobs: set[str] = set()

    def at(self, commit: NewCommit) -> None:
        """Look at what ``commit`` brings, and at its message."""
        self.commits.add(commit.commit)
        self._secrets(commit, None, list(enumerate(commit.message.split("\n"), start=1)))
        for file in commit.files:
            if file.skill:
                self._skills.add(file.skill)
            if (file.path, file.blob) not in self._versions:
                self._versions.add((file.path, file.blob))
                self.blobs.add(file.blob)
                self._file(commit, file)

    def at_tips(self, tips: Iterable[str]) -> None:
        """Look at the licences of the skills that changed, as the commits ``tips`` have them."""
        for tip in tips:
            for skill in sorted(self._skills) if tip in self.commits else ():
                for files in skill_folders(self._repo, tip, skill).values():
                    self._add(_licences(tip, skill, files))
                    self._add(_links(tip, skill, outward_links(self._repo, tip, skill)))

    def _add(self, findings: Iterable[ScanFinding]) -> None:
        for row in findings:
            if row.fingerprint in self._exceptions.fingerprints:
                self.allowed_findings.add(row.fingerprint)
            else:
                self.findings.setdefault(row.fingerprint, row)

    def _file(self, commit: NewCommit, file: NewFile) -> None:
        data = content(self._repo, file.blob)
        self._add(_sizes(commit.commit, file.path, len(data)))
        if b"\0" in data[:_BINARY] or len(data) > _SEARCHED:
            self._add(_shapes(commit.commit, file.path, data))
            return
        before = [content(self._repo, blob).decode(errors="replace") for blob in file.before]
        old_lines = {line for text in before for line in text.split("\n")}
        lines = list(enumerate(data.decode(errors="replace").split("\n"), start=1))
        self._secrets(commit, file, lines, old_lines)
        if file.skill:
            new_lines = [(number, line) for number, line in lines if line not in old_lines]
            self._add(self._leaked(commit.commit, file, new_lines, "\n".join(before)))

    def _secrets(
        self, commit: NewCommit, file: NewFile | None, lines: Lines, old_lines: Collection[str] = frozenset()
    ) -> None:
        path = file.path if file is not None else ""
        for stretch in _stretches(lines, old_lines):
            text = "\n".join(line for _, line in stretch)
            if text not in self._cache:
                self._cache[text] = self._redactor.find(text)
            read_lines = text.split("\n")
            for number, suspects in _by_line(text, self._cache[text]).items():
                line, (position, shown_line) = read_lines[number], stretch[number]
                if shown_line in old_lines or (kind := _kind(suspects, commit, file)) is None:
                    continue
                values = values_of(text, suspects)
                finding_of_line = _secret(kind, commit.commit, path, line=position, text=text, suspects=suspects)
                above = stretch[number - 1][1] if number else ""
                if self._exceptions.holds(path, values) or is_allowed_inline(line, above):
                    self.allowed_findings.add(finding_of_line.fingerprint)
                else:
                    self._add([finding_of_line])

    def _leaked(self, commit: str, file: NewFile, new_lines: Lines, before: str) -> Iterator[ScanFinding]:
        for line, leak in self._leaks.leaks(file.skill, new_lines, before):
            # The words themselves stay out of what is shown: a report may travel further than the data.
            identity = f"{file.path}\0{leak.kind}\0{leak.item}"
            sentence = str(leak).removeprefix("leak: ")
            yield finding(FindingKind.LEAK, commit, file.path, line=line, sentence=sentence, identity=identity)


def _stretches(lines: Lines, old_lines: Collection[str]) -> Iterator[Lines]:
    """Yield the stretches of a text that have new lines, with a few lines around each."""
    stretch = Lines()
    new = [line not in old_lines for _, line in lines]
    for position, entry in enumerate(lines):
        if any(new[max(0, position - _AROUND) : position + _AROUND + 1]):
            stretch.append(entry)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _by_line(text: str, suspects: Iterable[FoundCredential]) -> dict[int, list[FoundCredential]]:
    """Return credentials by the line that each begins in, counted from 0."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    rows: dict[int, list[FoundCredential]] = {}
    for credential in suspects:
        rows.setdefault(bisect_right(starts, credential.start) - 1, []).append(credential)
    return rows


def _kind(suspects: Sequence[FoundCredential], commit: NewCommit, file: NewFile | None) -> FindingKind | None:
    """Return what a line's secrets are; None for guesses in evidence and messages, where "password" says little."""
    if any(credential.certainty is Certainty.CERTAIN for credential in suspects):
        return FindingKind.SECRET
    if all(is_guess(credential) for credential in suspects):
        return FindingKind.SECRET_LIKE if file is not None and file.skill else None
    is_text = file is None or commit.hidden
    return FindingKind.SECRET_LIKE if is_text else FindingKind.SECRET


def _secret(
    kind: FindingKind, commit: str, path: str, *, line: int, text: str, suspects: Sequence[FoundCredential]
) -> ScanFinding:
    names = dict.fromkeys(credential.kind for credential in suspects)
    start, end = text.rfind("\n", 0, suspects[0].start) + 1, text.find("\n", suspects[-1].end)
    whole = text[start : end if end >= 0 else len(text)]
    spans = [replace(suspect, start=suspect.start - start, end=suspect.end - start) for suspect in suspects]
    text_shown = cut_out(whole, spans)
    begin = max(0, text_shown.find(MASK) - _EXCERPT // 2) if len(text_shown) > _EXCERPT else 0
    excerpt = text_shown[begin : begin + _EXCERPT].strip()
    return finding(
        kind,
        commit,
        path,
        line=line,
        sentence=", ".join(names),
        excerpt=excerpt.partition("\n")[0],
        identity="\0".join(sorted(set(values_of(text, suspects)))),
    )


def _shapes(commit: str, path: str, data: bytes) -> Iterator[ScanFinding]:
    """Yield the credentials in a file that is no text, or too long for more."""
    text = data.decode("latin-1")
    for credential in Redactor.now().find(text):
        value = text[credential.start : credential.end]
        yield finding(FindingKind.SECRET, commit, path, sentence=credential.kind, identity=value)


def _sizes(commit: str, path: str, size: int) -> Iterator[ScanFinding]:
    kind = FindingKind.HUGE_FILE if size > HUGE else FindingKind.LARGE_FILE if size > LARGE else None
    if kind is not None:
        limit = "refuses files over 100 MiB" if kind is FindingKind.HUGE_FILE else "warns of files over 50 MiB"
        sentence = f"{size / MEBIBYTE:.0f} MiB, and GitHub {limit}"
        yield finding(kind, commit, path, sentence=sentence, identity=path)


def _links(commit: str, skill: str, links: Iterable[tuple[str, str]]) -> Iterator[ScanFinding]:
    for path, target in links:
        sentence = f"it is a link out of the skill, to {shown(target)}: installers copy what it leads to"
        yield finding(FindingKind.LINK_OUT, commit, f"{skill}/{path}", sentence=sentence, identity=f"{skill}/{path}")


def _licences(commit: str, skill: str, files: dict[str, bytes]) -> Iterator[ScanFinding]:
    head = read_head(files.get(DOCUMENT, b"").decode(errors="replace"))
    licence = head.fields.get("license")
    for name in licence_files(licence) if isinstance(licence, str) else ():
        if name not in files:
            sentence = f"the license names {name}, which is not in the skill"
            line = head.lines["license"]
            path = f"{skill}/{DOCUMENT}"
            yield finding(
                FindingKind.LICENCE_FILE, commit, path, line=line, sentence=sentence, identity=f"{skill}\0{name}"
            )
    for path, reason in unlicensed(files):
        sentence = f"it {reason}, and there is no licence file beside or above it"
        yield finding(
            FindingKind.LICENCE_BUNDLED, commit, f"{skill}/{path}", sentence=sentence, identity=f"{skill}/{path}"
        )
