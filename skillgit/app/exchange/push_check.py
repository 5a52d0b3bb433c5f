"""``skillgit lint --secrets``, and the check before a push that refuses to publish secrets and leaked items."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from skillgit.app.skill_format.frontmatter import read_head
from skillgit.app.skill_format.lint import licence_files, unlicensed
from skillgit.app.sources.data_check import told
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in, resolve_in
from skillgit.app.workspace.revision_range import split_range
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.credentials.detector import MASK, Certainty, FoundCredential, cut_out, is_guess
from skillgit.domain.evaluation import Split
from skillgit.domain.finding import Finding, Severity
from skillgit.domain.leaks import Leak, SecretIndex, build_index, find_leaks
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import ConfigError, SkillgitError
from skillgit.index import queries
from skillgit.plugin.redaction import Redactor, values_of
from skillgit.store.diff import NewCommit, NewFile, content, new_commits, publishable
from skillgit.store.repo import Repo
from skillgit.store.tree import outward_links, read_file, skill_folders
from skillgit.store.trunk import trunk_tip

_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    commits: int
    files: int
    findings: tuple[Finding, ...]  # what was found, that of older commits first; what is allowed is left out
    allowed: int = 0
    unchecked: tuple[str, ...] = ()

    @property
    def stops(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)


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
        f"commit {first.commit[:_SHORT]} holds what must not leave, in {where}: {first.sentence}{more_text}",
        hint="skillgit lint --secrets shows everything, with fingerprints for .skillgit-allow",
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
        self.findings: dict[str, Finding] = {}
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

    def _add(self, findings: Iterable[Finding]) -> None:
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

    def _leaked(self, commit: str, file: NewFile, new_lines: Lines, before: str) -> Iterator[Finding]:
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
) -> Finding:
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


def _shapes(commit: str, path: str, data: bytes) -> Iterator[Finding]:
    """Yield the credentials in a file that is no text, or too long for more."""
    text = data.decode("latin-1")
    for credential in Redactor.now().find(text):
        value = text[credential.start : credential.end]
        yield finding(FindingKind.SECRET, commit, path, sentence=credential.kind, identity=value)


def _sizes(commit: str, path: str, size: int) -> Iterator[Finding]:
    kind = FindingKind.HUGE_FILE if size > HUGE else FindingKind.LARGE_FILE if size > LARGE else None
    if kind is not None:
        limit = "refuses files over 100 MiB" if kind is FindingKind.HUGE_FILE else "warns of files over 50 MiB"
        sentence = f"{size / MEBIBYTE:.0f} MiB, and GitHub {limit}"
        yield finding(kind, commit, path, sentence=sentence, identity=path)


def _links(commit: str, skill: str, links: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    for path, target in links:
        sentence = f"it is a link out of the skill, to {shown(target)}: installers copy what it leads to"
        yield finding(FindingKind.LINK_OUT, commit, f"{skill}/{path}", sentence=sentence, identity=f"{skill}/{path}")


def _licences(commit: str, skill: str, files: dict[str, bytes]) -> Iterator[Finding]:
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


class LeakFinder:
    """Holds the items of the runs that train a skill, loaded on first use; ``unchecked`` has the runs that failed."""

    def __init__(self, context: Context, workspace: Workspace) -> None:
        self._context = context
        self._workspace = workspace
        self._indexes: dict[str, list[tuple[SecretIndex, str]]] = {}
        self.unchecked: list[str] = []

    def leaks(self, skill: str, lines: Sequence[tuple[int, str]], before: str) -> Iterator[tuple[int, Leak]]:
        """Yield what numbered ``lines`` quote and where, 0 across lines; ``before``, the old file, may be repeated."""
        text = "\n".join(line for _, line in lines)
        if text.strip() and skill not in self._indexes:
            self._indexes[skill] = list(self._loaded(skill))
        for index, taxonomy in self._indexes[skill] if text.strip() else ():
            known_text = f"{before}\n{taxonomy}"
            for leak in find_leaks(index, text, known_text):
                alone = (
                    number
                    for number, line in lines
                    if any(leak.item == other.item for other in find_leaks(index, line, known_text))
                )
                yield next(alone, 0), leak

    def _loaded(self, skill: str) -> Iterator[tuple[SecretIndex, str]]:
        sources: set[tuple[object, ...]] = set()
        for row in queries.run_rows(self._workspace.index, {}):
            if row.skill != skill:
                continue
            try:
                yield from self._of_run(row.name, sources)
            except (SkillgitError, OSError, ImportError) as error:
                reason = error.message if isinstance(error, SkillgitError) else str(error)
                self.unchecked.append(f"leaked items of run {row.name} were not looked for: {reason}")

    def _of_run(self, run: str, sources: set[tuple[object, ...]]) -> Iterator[tuple[SecretIndex, str]]:
        from skillgit.app.setup.run_setup import recorded_config  # noqa: PLC0415 - it loads pydantic
        from skillgit.plugin.registry import load_environment  # noqa: PLC0415 - only a run's skill needs it

        config = recorded_config(self._context, self._workspace, run, ())
        identity = (config.values.env.name, config.root, repr(config.options))
        if identity in sources:
            return
        sources.add(identity)
        environment = load_environment(config.values.env.name, config.root)(config.options, config.root)
        rows = told(environment, {split: environment.items(split) for split in Split})
        if not rows:
            self.unchecked.append(
                f"leaked items of run {run} were not looked for: its environment does not say what is secret about them"
            )
            return
        yield build_index((row.item.id, row.split, row.secrets) for row in rows), environment.taxonomy()


FINGERPRINT_LENGTH = 16


class FindingKind(StrEnum):
    SECRET = "secret"  # noqa: S105 - the name of a kind
    """A credential by its shape, its name or its place, or the value of an environment variable named like one."""
    SECRET_LIKE = "secret-like"  # noqa: S105 - as above
    """What may be one: a random word, the beginning of a token, or a password in evidence."""
    LEAK = "leak"
    """A skill quotes an answer, a check, or the input of a selection or test item."""
    HUGE_FILE = "huge-file"
    """GitHub refuses it."""
    LARGE_FILE = "large-file"
    """GitHub warns of it."""
    LINK_OUT = "link-out"
    """A symbolic link of a skill leads out of its folder."""
    LICENCE_FILE = "licence-file"
    """A skill's license names a file that is not there."""
    LICENCE_BUNDLED = "licence-bundled"
    """A file seems to be someone else's, and no licence file is beside or above it."""


_WARNINGS = frozenset({FindingKind.SECRET_LIKE, FindingKind.LARGE_FILE, FindingKind.LICENCE_BUNDLED})


def finding(
    kind: FindingKind, commit: str, path: str, *, sentence: str, identity: str, line: int = 0, excerpt: str = ""
) -> Finding:
    """Return what a scan finds in the oldest commit that brings it; its kind and ``identity`` make its fingerprint."""
    digest = hashlib.sha256(f"{kind.value}\0{identity}".encode("utf-8", "surrogatepass")).hexdigest()
    return Finding(
        severity=Severity.WARNING if kind in _WARNINGS else Severity.ERROR,
        rule=kind,
        commit=commit,
        path=path,
        line=line,
        sentence=sentence,
        excerpt=excerpt,
        fingerprint=digest[:FINGERPRINT_LENGTH],
    )


ALLOW_LIST = ".skillgit-allow"
BASELINE = ".secrets.baseline"
_KEY_HEADER = re.compile(r"-{2,5}(BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-{2,5}")
_INLINE = re.compile(r"pragma: ?(?:allow|white)list[ -](?P<next>nextline[ -])?secret")
_FINGERPRINT = re.compile(rf"[0-9a-f]{{{FINGERPRINT_LENGTH}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    fingerprints: frozenset[str]
    secrets: frozenset[tuple[str, str]]
    """Path and digest of secrets that a baseline of detect-secrets holds and nobody has marked as real."""

    def holds(self, path: str, values: Iterable[str]) -> bool:
        """Say whether the baseline holds all of these values of the file at ``path``."""
        return all(any((path, digest) in self.secrets for digest in _digests(value)) for value in values)


def _digests(value: str) -> Iterator[str]:
    """Yield what a baseline of detect-secrets may hold of a value: its hash, or of a private key that of its head."""
    header = _KEY_HEADER.match(value)
    for text in (value, header[1] if header else value):
        yield hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def read_allowed(repo: Repo) -> Allowed:
    return Allowed(
        fingerprints=frozenset(_fingerprints(_content(repo, ALLOW_LIST))),
        secrets=frozenset(_baseline(_content(repo, BASELINE))),
    )


def _content(repo: Repo, name: str) -> str:
    path = repo.workdir / name if repo.workdir is not None else None
    try:
        if path is not None and path.is_file():
            return path.read_text(encoding="utf-8")
        tip = trunk_tip(repo)
        return ((tip and read_file(repo, repo.commit(tip).tree, name)) or b"").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name} cannot be read", hint="check its permissions, and its UTF-8") from error


def _fingerprints(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        fingerprint = line.partition("#")[0].strip()
        if fingerprint and not _FINGERPRINT.fullmatch(fingerprint):
            raise ConfigError(
                f"line {number} of {ALLOW_LIST} is no fingerprint: {fingerprint}",
                hint="write one a line, as skillgit lint --secrets prints them; '#' begins a remark",
            )
        if fingerprint:
            yield fingerprint


def is_allowed_inline(line: str, above: str) -> bool:
    """Say whether a remark such as ``pragma: allowlist secret`` allows what is in ``line``."""
    own, before = _INLINE.search(line), _INLINE.search(above)
    return (own is not None and not own["next"]) or (before is not None and bool(before["next"]))


def _baseline(text: str) -> Iterator[tuple[str, str]]:
    if not text.strip():
        return
    try:
        results = json.loads(text)["results"]
        rows = [(path, row) for path, entries in results.items() for row in entries]
        for path, row in rows:
            if row.get("is_secret") is not True:
                yield str(path), str(row["hashed_secret"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{BASELINE} is no baseline", hint="detect-secrets scan > .secrets.baseline") from error
