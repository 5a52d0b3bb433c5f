"""Leaked items in text, what a scan finds, and which findings people allow."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from skillgit.app.sources.data_check import told
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import Leak, SecretIndex, build_index, find_leaks
from skillgit.errors import ConfigError, SkillgitError
from skillgit.index import queries
from skillgit.store.repo import Repo
from skillgit.store.tree import read_file
from skillgit.store.trunk import trunk_tip


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


class ScanSeverity(StrEnum):
    STOP = "stop"
    """Nothing is pushed."""
    WARN = "warn"
    """It is told, and the push goes on."""


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

    @property
    def severity(self) -> ScanSeverity:
        return ScanSeverity.WARN if self in _TOLD else ScanSeverity.STOP


_TOLD = frozenset({FindingKind.SECRET_LIKE, FindingKind.LARGE_FILE, FindingKind.LICENCE_BUNDLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFinding:
    """Something that should not leave, or should be looked at before it does."""

    rule: FindingKind
    severity: ScanSeverity
    commit: str  # the oldest of the commits looked at that brings it
    path: str  # the file in that commit; empty for the commit's message
    line: int  # the line, counted from 1; 0 for the whole file
    what: str
    excerpt: str  # the line with the secret masked; empty if there is none
    fingerprint: str  # what names the same finding in every commit; an allow-list holds it


def finding(
    kind: FindingKind, commit: str, path: str, *, sentence: str, identity: str, line: int = 0, excerpt: str = ""
) -> ScanFinding:
    """Return a finding whose fingerprint is made of its kind and ``identity``."""
    digest = hashlib.sha256(f"{kind.value}\0{identity}".encode("utf-8", "surrogatepass")).hexdigest()
    return ScanFinding(
        rule=kind,
        severity=kind.severity,
        commit=commit,
        path=path,
        line=line,
        what=sentence,
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
                hint="write one a line, as skillgit scan prints them; '#' begins a remark",
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
