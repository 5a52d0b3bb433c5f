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
from skillgit.app.sources.data_check import item_facts
from skillgit.app.workspace.revision import event_in, resolve
from skillgit.app.workspace.revision_range import split_range
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.credentials.detector import MASK, Certainty, FoundCredential, cut_out, is_guess
from skillgit.domain.evaluation import Split
from skillgit.domain.finding import Finding, Severity
from skillgit.domain.leaks import Leak, SecretIndex, build_index, find_leaks
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import ConfigError, SkillgitError
from skillgit.index import queries
from skillgit.lazy import loaded_on_use
from skillgit.plugin.redaction import Redactor, values_of
from skillgit.store.diff import NewCommit, NewFile, content, new_commits, publishable
from skillgit.store.repo import Repo
from skillgit.store.tree import outward_links, read_file, skill_folders
from skillgit.store.trunk import trunk_tip

with loaded_on_use():  # pydantic and plug-ins, which only a run's skill needs
    from skillgit.app.setup import recorded_setup
    from skillgit.plugin import registry

_SHORT = 12


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
    """A file seems to be someone else's, and no licence file is next to it or above it."""


_WARNINGS = frozenset({FindingKind.SECRET_LIKE, FindingKind.LARGE_FILE, FindingKind.LICENCE_BUNDLED})


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


def scan(workspace: Workspace, word: str | None = None, *, evidence: bool = False) -> Scan:
    """Look at the commits of ``word``: a revision with all that it leads to, or a range; None for what no remote has.

    Only without a word, ``evidence`` adds evidence and folded candidates.
    """
    if word is None:
        tips, bases = publishable(workspace.repo, evidence=evidence)
    elif (ends := split_range(word)) is None:
        tips, bases = [resolve(workspace, word).commit], []
    else:
        begin, end = ends
        run = (begin or end).rpartition("/")[0]
        newest = f"{run}/head" if run else "head"
        tips = [resolve(workspace, end).commit if end else event_in(workspace, newest).commit]
        bases = [resolve(workspace, begin).commit] if begin else []
    return scan_commits(workspace, tips, bases)


def scan_commits(workspace: Workspace, tips: Iterable[str], bases: Iterable[str] = ()) -> Scan:
    """Look at the commits that ``tips`` lead to and ``bases`` do not, as far as those are in this repository."""
    tips = list(dict.fromkeys(tips))
    leaks = LeakFinder(workspace)
    look = ScanCollector(workspace.repo, leaks)
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


MEBIBYTE = 1024 * 1024
HUGE, LARGE = 100 * MEBIBYTE, 50 * MEBIBYTE
"""Bytes of a file that GitHub refuses, and of one that it warns of."""
_SEARCHED = 5 * MEBIBYTE
"""Bytes of a text from which on it is searched for shapes of credentials only."""
_BINARY = 8000
"""Bytes at the beginning of a file in which git looks for NUL to see that it is not text."""
_AROUND = 6
"""Lines before and behind a new one that are read with it: a value may be behind a name in the line above."""
_EXCERPT = 160

Lines = list[tuple[int, str]]


class ScanCollector:
    """Collects what commits bring: each finding once, by its fingerprint, at the oldest commit that has it."""

    def __init__(self, repo: Repo, leaks: LeakFinder) -> None:
        self._repo, self._leaks, self._exceptions = repo, leaks, read_allowed(repo)
        self._redactor = Redactor.now(Certainty.LIKELY)
        self._cache: dict[str, list[FoundCredential]] = {}  # stretches of texts that were read before
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
        """Look at the licences and links of the skills that changed, as the commits ``tips`` have them."""
        for tip, skill in ((tip, skill) for tip in tips if tip in self.commits for skill in sorted(self._skills)):
            for files in skill_folders(self._repo, tip, skill).values():
                self._licences(tip, skill, files)
                for name, target in outward_links(self._repo, tip, skill):
                    sentence = f"it is a link out of the skill, to {shown(target)}: installers copy what it leads to"
                    self._add(FindingKind.LINK_OUT, tip, f"{skill}/{name}", sentence)

    def _add(
        self,
        kind: FindingKind,
        commit: str,
        path: str,
        sentence: str,
        *,
        identity: str | None = None,
        line: int = 0,
        excerpt: str = "",
        is_allowed: bool = False,
    ) -> None:
        """Add a finding; its kind and ``identity``, by default its path, make its fingerprint."""
        mark = f"{kind.value}\0{path if identity is None else identity}".encode("utf-8", "surrogatepass")
        fingerprint = hashlib.sha256(mark).hexdigest()[:FINGERPRINT_LENGTH]
        if is_allowed or fingerprint in self._exceptions.fingerprints:
            self.allowed_findings.add(fingerprint)
        elif fingerprint not in self.findings:
            self.findings[fingerprint] = Finding(
                severity=Severity.WARNING if kind in _WARNINGS else Severity.ERROR,
                rule=kind,
                commit=commit,
                path=path,
                line=line,
                sentence=sentence,
                excerpt=excerpt,
                fingerprint=fingerprint,
            )

    def _file(self, commit: NewCommit, file: NewFile) -> None:
        data = content(self._repo, file.blob)
        size = f"{len(data) / MEBIBYTE:.0f} MiB, and GitHub"
        if len(data) > HUGE:
            self._add(FindingKind.HUGE_FILE, commit.commit, file.path, f"{size} refuses files over 100 MiB")
        elif len(data) > LARGE:
            self._add(FindingKind.LARGE_FILE, commit.commit, file.path, f"{size} warns of files over 50 MiB")
        if b"\0" in data[:_BINARY] or len(data) > _SEARCHED:  # no text, or too long for more than shapes
            text = data.decode("latin-1")
            for credential in Redactor.now().find(text):
                value = text[credential.start : credential.end]
                self._add(FindingKind.SECRET, commit.commit, file.path, credential.kind, identity=value)
            return
        before = [content(self._repo, blob).decode(errors="replace") for blob in file.before]
        old_lines = {line for text in before for line in text.split("\n")}
        lines = list(enumerate(data.decode(errors="replace").split("\n"), start=1))
        self._secrets(commit, file, lines, old_lines)
        if file.skill:
            new_lines = [(number, line) for number, line in lines if line not in old_lines]
            for number, leak in self._leaks.leaks(file.skill, new_lines, "\n".join(before)):
                # The words themselves stay out of what is shown: a report may travel further than the data.
                identity = f"{file.path}\0{leak.kind}\0{leak.item}"
                sentence = str(leak).removeprefix("leak: ")
                self._add(FindingKind.LEAK, commit.commit, file.path, sentence, identity=identity, line=number)

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
                position, shown_line = stretch[number]
                if shown_line in old_lines or (kind := _kind(suspects, commit, file)) is None:
                    continue
                values = values_of(text, suspects)
                above = stretch[number - 1][1] if number else ""
                self._add(
                    kind,
                    commit.commit,
                    path,
                    ", ".join(dict.fromkeys(credential.kind for credential in suspects)),
                    identity="\0".join(sorted(set(values))),
                    line=position,
                    excerpt=_excerpt(text, suspects),
                    is_allowed=self._exceptions.holds(path, values) or is_allowed_inline(read_lines[number], above),
                )

    def _licences(self, commit: str, skill: str, files: dict[str, bytes]) -> None:
        head = read_head(files.get(DOCUMENT, b"").decode(errors="replace"))
        licence = head.fields.get("license")
        for name in licence_files(licence) if isinstance(licence, str) else ():
            if name not in files:
                path, sentence = f"{skill}/{DOCUMENT}", f"the license names {name}, which is not in the skill"
                line, identity = head.lines["license"], f"{skill}\0{name}"
                self._add(FindingKind.LICENCE_FILE, commit, path, sentence, identity=identity, line=line)
        for name, reason in unlicensed(files):
            sentence = f"it {reason}, and there is no licence file next to it or above it"
            self._add(FindingKind.LICENCE_BUNDLED, commit, f"{skill}/{name}", sentence)


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


def _excerpt(text: str, suspects: Sequence[FoundCredential]) -> str:
    """Return the line that ``suspects`` are in, without them."""
    start, end = text.rfind("\n", 0, suspects[0].start) + 1, text.find("\n", suspects[-1].end)
    whole = text[start : end if end >= 0 else len(text)]
    spans = [replace(suspect, start=suspect.start - start, end=suspect.end - start) for suspect in suspects]
    masked_line = cut_out(whole, spans)
    begin = max(0, masked_line.find(MASK) - _EXCERPT // 2) if len(masked_line) > _EXCERPT else 0
    return masked_line[begin : begin + _EXCERPT].strip().partition("\n")[0]


class LeakFinder:
    """Holds the items of the runs that train a skill, loaded on first use; ``unchecked`` has the runs that failed."""

    def __init__(self, workspace: Workspace) -> None:
        self._context = workspace.context
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
                    if any(leak.item == quote.item for quote in find_leaks(index, line, known_text))
                )
                yield next(alone, 0), leak

    def _loaded(self, skill: str) -> Iterator[tuple[SecretIndex, str]]:
        sources: set[tuple[object, ...]] = set()
        for row in queries.run_rows(self._workspace.index, {}):
            reason = ""
            try:
                config = recorded_setup.recorded_config(self._workspace, row.name, ()) if row.skill == skill else None
                if (
                    config is None
                    or (identity := (config.values.env.name, config.root, repr(config.options))) in sources
                ):
                    continue
                sources.add(identity)
                environment = registry.load_environment(config.values.env.name, config.root)(
                    config.options, config.root
                )
                if rows := item_facts(environment, {split: environment.items(split) for split in Split}):
                    yield build_index((row.item.id, row.split, row.secrets) for row in rows), environment.taxonomy()
                else:
                    reason = "its environment does not say what is secret about them"
            except (SkillgitError, OSError, ImportError) as error:
                reason = error.message if isinstance(error, SkillgitError) else str(error)
            if reason:
                self.unchecked.append(f"leaked items of run {row.name} were not looked for: {reason}")


FINGERPRINT_LENGTH = 16
ALLOW_LIST = ".skillgit-allow"
BASELINE = ".secrets.baseline"
_KEY_HEADER = re.compile(r"-{2,5}(BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-{2,5}")
_INLINE = re.compile(r"pragma: ?(?:allow|white)list[ -](?P<next>nextline[ -])?secret")
_FINGERPRINT = re.compile(rf"[0-9a-f]{{{FINGERPRINT_LENGTH}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    fingerprints: frozenset[str]
    secrets: frozenset[tuple[str, str]]
    """Path and digest of secrets that a baseline of detect-secrets holds and that are not marked as real."""

    def holds(self, path: str, values: Iterable[str]) -> bool:
        """Say whether the baseline holds all of these values of the file at ``path``, or the heads of private keys."""
        texts = ((value, _KEY_HEADER.match(value)) for value in values)
        return all(
            any((path, _sha1(text)) in self.secrets for text in (value, *([header[1]] if header else [])))
            for value, header in texts
        )


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


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
                f"line {number} of {ALLOW_LIST} is not a fingerprint: {fingerprint}",
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
        raise ConfigError(f"{BASELINE} is not a baseline", hint="detect-secrets scan > .secrets.baseline") from error
