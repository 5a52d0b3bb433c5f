"""Every ref name of skillgit is built and parsed here, and the tips of refs are read from git's own files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import TRAITS, Branch
from skillgit.domain.ids import RUN_NAME
from skillgit.errors import HistoryError

if TYPE_CHECKING:
    from skillgit.domain.event import Event  # a look at refs reads no event

NOTES = "refs/notes/skillgit/evals"

STEP, META = "step", "meta"
"""The origins of candidates that no person asked for; they equal those of ``skillgit.domain.event.Origin``."""
INTERVENTIONS = ("cherry-pick", "merge", "revert", "restore", "prune", "compress", "resurrect")
"""The other origins, likewise."""

_RUN = RUN_NAME.pattern
_SIDE = rf"(?P<origin>{META}$|(?:{'|'.join(INTERVENTIONS)})(?=-))(?:-(?P<intervention>[1-9]\d*))?"
_BRANCH = re.compile(
    r"refs/(?:heads|remotes/(?P<remote>.+))/"
    rf"(?:(?P<kind>run|slow|best)/(?P<run>{_RUN})|rejected/(?P<refused>{_RUN})/(?P<step>\d{{4,}})(?:-{_SIDE})?)"
)
_TAG = re.compile(rf"refs/tags/(?P<run>{_RUN})/v(?P<version>0|[1-9]\d*)")
_RELEASE = re.compile(r"refs/tags/[a-z0-9-]+/v\d+\.\d+\.\d+[0-9A-Za-z.+-]*")
_HIDDEN = re.compile(
    rf"refs/skillgit/(?:remotes/(?P<remote>.+)/)?(?P<kind>evidence|dropped|attic|plan)/(?P<run>{_RUN})"
)


class RefKind(StrEnum):
    RUN = "run"
    REJECTED = "rejected"
    SLOW = "slow"
    BEST = "best"
    TAG = "tag"
    EVIDENCE = "evidence"
    DROPPED = "dropped"
    ATTIC = "attic"
    PLAN = "plan"
    NOTES = "notes"

    @property
    def is_truth(self) -> bool:
        """Whether events of a run are found through refs of this kind."""
        return self in _TRUTH


# a tuple, since members are found by identity and hashed in a function of Python's
_TRUTH = (RefKind.RUN, RefKind.REJECTED, RefKind.SLOW, RefKind.ATTIC)
_KINDS = {str(kind): kind for kind in RefKind}


class Ref(NamedTuple):
    kind: RefKind
    run: str = ""  # the run that it belongs to; empty for notes
    number: int = 0  # the step of a rejected branch, the version of a tag
    remote: str = ""  # the remote whose branch it tracks; empty for a ref of this repository
    origin: str = STEP
    intervention: int = 0  # which intervention of the run it is; 0 for steps and the reflection on an epoch
    local: str = ""  # the name that it has, or would have, as a ref of this repository


def run_branch(run: str) -> str:
    return f"refs/heads/run/{run}"


def rejected_branch(run: str, step: int, origin: str = STEP, intervention: int = 0) -> str:
    """Return the branch of the candidate that ``run`` refused at ``step``, at the end of its epoch, or after it."""
    side = "" if origin == STEP else f"-{origin}"
    return f"refs/heads/rejected/{run}/{step:04d}{side}{f'-{intervention}' if intervention else ''}"


def slow_branch(run: str) -> str:
    return f"refs/heads/slow/{run}"


def best_branch(run: str) -> str:
    return f"refs/heads/best/{run}"


def version_tag(run: str, version: int) -> str:
    return f"refs/tags/{run}/{version_label(version)}"


def release_tag(skill: str, version: str) -> str:
    """Return the tag of a release of ``skill``; a semantic version has dots, so it is never one of a run's."""
    return f"refs/tags/{skill}/v" + version


def is_release(name: str) -> bool:
    return _RELEASE.fullmatch(name) is not None


def is_mark(name: str) -> bool:
    """Say whether a person set the ref ``name``, a tag of another kind than those of versions: releases are such."""
    return name.startswith("refs/tags/") and _TAG.fullmatch(name) is None


def evidence_ref(run: str) -> str:
    """Return the ref whose history holds the evidence of ``run``."""
    return f"refs/skillgit/evidence/{run}"


def dropped_ref(run: str) -> str:
    """Return the ref whose newest tree names the evidence of ``run`` that was dropped."""
    return f"refs/skillgit/dropped/{run}"


def attic_ref(run: str) -> str:
    """Return the ref of the chain that keeps the folded candidates of ``run``."""
    return f"refs/skillgit/attic/{run}"


def plan_ref(run: str) -> str:
    """Return the ref of the plan of ``run``, which travels where its evidence does not."""
    return f"refs/skillgit/plan/{run}"


def tracking(remote: str, name: str) -> str:
    """Return the ref of this repository that tracks the ref ``name`` of ``remote``; empty if none does."""
    prefixes = {
        "refs/heads/": f"refs/remotes/{remote}/",
        "refs/skillgit/": f"refs/skillgit/remotes/{remote}/",
        "refs/notes/skillgit/": f"refs/skillgit/remotes/{remote}/notes/",
    }
    return next((own + name.removeprefix(prefix) for prefix, own in prefixes.items() if name.startswith(prefix)), "")


def branch_of(event: Event) -> str:
    match TRAITS[event.kind].branch:
        case Branch.LINE:
            return run_branch(event.run)
        case Branch.SIDE:
            return rejected_branch(event.run, event.step, event.origin.value, event.number)
        case Branch.SLOW:
            return slow_branch(event.run)


@lru_cache(maxsize=1 << 18)
def parse(name: str) -> Ref | None:
    """Return what the ref ``name`` is, or ``None``; cached, since every look goes through all names several times."""
    if match := _BRANCH.fullmatch(name):
        remote, kind, run, rejected_run, step, origin, intervention = match.groups("")
        local = name.replace(f"refs/remotes/{remote}/", "refs/heads/", 1) if remote else name
        if rejected_run:
            origin, number = origin or STEP, int(intervention or 0)
            return Ref(RefKind.REJECTED, rejected_run, int(step), remote, origin, number, local)
        return Ref(_KINDS[kind], run, remote=remote, local=local)
    if match := _TAG.fullmatch(name):
        return Ref(RefKind.TAG, match["run"], int(match["version"]), local=name)
    if match := _HIDDEN.fullmatch(name):
        kind, run = match["kind"], match["run"]
        return Ref(_KINDS[kind], run, remote=match["remote"] or "", local=f"refs/skillgit/{kind}/{run}")
    return Ref(RefKind.NOTES, local=name) if name == NOTES else None


def run_of(name: str) -> str:
    """Return the run that the ref ``name`` belongs to; empty if it belongs to none."""
    ref = parse(name)
    return ref.run if ref is not None else ""


def short(name: str) -> str:
    """Return the ref ``name`` as git shows it to people."""
    for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/", "refs/"):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


_PACKED = re.compile(r"^([0-9a-f]{40}) (refs/\S+)$", re.MULTILINE)
_PACKED_REFS = "packed-refs"
_OID = re.compile(r"[0-9a-f]{40}\s*")
_TRIES = 5
_RECENT_NS = 2_000_000_000
"""A file that is younger may change once more within one tick of the clock, unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefSnapshot:
    stamp: str  # identifies this packed file; empty if it is too young
    loose: Mapping[str, str]  # name to commit for refs in files of their own; empty for one that is symbolic or damaged


class RefFiles:
    """The refs of one repository; ``predicate`` says of a ref's name whether :meth:`read` returns it."""

    def __init__(self, folder: Path, predicate: Callable[[str], bool]) -> None:
        self._folder, self._predicate = folder, predicate
        self._cache: tuple[str, Mapping[str, str]] = ("", {})

    def look(self) -> RefSnapshot:
        with _told():
            for _ in range(_TRIES):
                # git writes the packed file before it removes loose ones: between two equal marks none can get lost
                before, loose = self._mark(), dict(_loose(self._folder))
                if before == (after := self._mark()):
                    return RefSnapshot(stamp=_settled(after), loose=loose)
        return RefSnapshot(stamp="", loose=loose)

    def read(self) -> dict[str, str]:
        """Return the wanted refs with their commits; symbolic and damaged ones are left out."""
        with _told():
            loose = {name: oid for name, oid in _loose(self._folder) if self._predicate(name)}
            tips = {**self._packed(), **loose}
        return {name: oid for name, oid in tips.items() if oid}

    def _packed(self) -> Mapping[str, str]:
        mark = _settled(self._mark())
        if mark and mark == self._cache[0]:
            return self._cache[1]
        try:
            text = (self._folder / _PACKED_REFS).read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return {}
        tips = {name: oid for oid, name in _PACKED.findall(text) if self._predicate(name)}
        if mark == _settled(self._mark()):
            self._cache = (mark, tips)
        return tips

    def _mark(self) -> tuple[int, ...]:
        try:
            status = (self._folder / _PACKED_REFS).stat()
        except FileNotFoundError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HistoryError(f"git's refs cannot be read: {error}", hint="git fsck") from error


def _settled(mark: tuple[int, ...]) -> str:
    """Return what distinguishes this packed file from any other; empty while it is too young."""
    if mark and abs(time.time_ns() - mark[3]) < _RECENT_NS:
        return ""
    return ":".join(map(str, mark)) or "none"


def _loose(folder: Path) -> Iterator[tuple[str, str]]:
    waiting = ["refs"]
    while waiting:
        name = waiting.pop()
        try:
            with os.scandir(folder / name) as entries:
                for entry in entries:
                    if entry.is_dir():
                        waiting.append(f"{name}/{entry.name}")
                    elif not entry.name.endswith(".lock"):
                        yield from _one(entry.path, f"{name}/{entry.name}")
        except FileNotFoundError:
            # git removes folders that have become empty
            continue


def _one(path: str, name: str) -> Iterator[tuple[str, str]]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - there may be thousands
            text = file.read(64).decode(errors="replace")
    except FileNotFoundError:
        # git has packed or deleted it since
        return
    yield name, text[:40] if _OID.fullmatch(text) else ""
