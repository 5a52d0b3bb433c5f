"""Every ref name of skillgit is built and parsed here, and nowhere else.

::

    refs/heads/run/<run>                 accepted line; truth
    refs/heads/rejected/<run>/<step4>    one refused candidate; truth
    refs/heads/rejected/<run>/<step4>-meta  one of the reflection on the epoch that ends with the step; truth
    refs/heads/slow/<run>                slow line; truth
    refs/heads/best/<run>                newest best version; derived
    refs/tags/<run>/v<N>                 one per version; derived
    refs/notes/skillgit/evals            facts learned after the commit; truth
    refs/skillgit/evidence/<run>         bulk artefacts; optional
    refs/remotes/<remote>/<branch>       what a clone has of the branches above
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.domain.ids import RUN_NAME

if TYPE_CHECKING:
    from skillgit.domain.event import Event

MAIN = "refs/heads/main"
NOTES = "refs/notes/skillgit/evals"

_RUN = RUN_NAME.pattern
_BRANCH = re.compile(
    r"refs/(?:heads|remotes/(?P<remote>.+))/"
    rf"(?:(?P<kind>run|slow|best)/(?P<run>{_RUN})|rejected/(?P<refused>{_RUN})/(?P<step>\d{{4,}})(?P<meta>-meta)?)"
)
_TAG = re.compile(rf"refs/tags/(?P<run>{_RUN})/v(?P<version>0|[1-9]\d*)")
_HIDDEN = re.compile(rf"refs/skillgit/evidence/(?P<run>{_RUN})")


class Kind(StrEnum):
    """What a ref of skillgit is for."""

    RUN = "run"
    REJECTED = "rejected"
    SLOW = "slow"
    BEST = "best"
    TAG = "tag"
    EVIDENCE = "evidence"
    NOTES = "notes"

    @property
    def is_truth(self) -> bool:
        """Whether events of a run are found through refs of this kind."""
        return self in {Kind.RUN, Kind.REJECTED, Kind.SLOW}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A ref name taken apart.

    Attributes:
        kind: What it is for.
        run: The run that it belongs to; empty for notes.
        number: The step of a rejected branch, the version of a tag.
        remote: The remote whose branch it tracks; empty for a ref of this repository.
        meta: Whether a rejected candidate is one of the reflection on an epoch.
    """

    kind: Kind
    run: str = ""
    number: int = 0
    remote: str = ""
    meta: bool = False

    @property
    def local(self) -> str:
        """The name that this ref has, or would have, as a ref of this repository."""
        match self.kind:
            case Kind.RUN:
                return run_branch(self.run)
            case Kind.REJECTED:
                return rejected_branch(self.run, self.number, meta=self.meta)
            case Kind.SLOW:
                return slow_branch(self.run)
            case Kind.BEST:
                return best_branch(self.run)
            case Kind.TAG:
                return version_tag(self.run, self.number)
            case Kind.EVIDENCE:
                return evidence_ref(self.run)
            case Kind.NOTES:
                return NOTES


def run_branch(run: str) -> str:
    """Return the branch of the accepted line of ``run``."""
    return f"refs/heads/run/{run}"


def rejected_branch(run: str, step: int, *, meta: bool = False) -> str:
    """Return the branch of the candidate that ``run`` refused at ``step``, or at the end of the epoch that it ends."""
    return f"refs/heads/rejected/{run}/{step:04d}{'-meta' if meta else ''}"


def slow_branch(run: str) -> str:
    """Return the branch of the slow line of ``run``."""
    return f"refs/heads/slow/{run}"


def best_branch(run: str) -> str:
    """Return the branch that points to the newest best version of ``run``."""
    return f"refs/heads/best/{run}"


def version_tag(run: str, version: int) -> str:
    """Return the tag of ``version`` of ``run``."""
    return f"refs/tags/{run}/v{version}"


def evidence_ref(run: str) -> str:
    """Return the ref whose history holds the evidence of ``run``."""
    return f"refs/skillgit/evidence/{run}"


def branch_of(event: Event) -> str:
    """Return the branch that the commit of ``event`` belongs to."""
    from skillgit.domain.event import Origin, Rejected, SlowProposed  # noqa: PLC0415 - names are needed without events

    match event:
        case Rejected():
            return rejected_branch(event.run, event.step, meta=event.origin is Origin.META)
        case SlowProposed():
            return slow_branch(event.run)
        case _:
            return run_branch(event.run)


def parse(name: str) -> Ref | None:
    """Return what the ref ``name`` is; ``None`` if it is not one of ours."""
    if name == NOTES:
        return Ref(kind=Kind.NOTES)
    if match := _BRANCH.fullmatch(name):
        remote = match["remote"] or ""
        if match["refused"]:
            step, meta = int(match["step"]), match["meta"] is not None
            return Ref(kind=Kind.REJECTED, run=match["refused"], number=step, remote=remote, meta=meta)
        return Ref(kind=Kind(match["kind"]), run=match["run"], remote=remote)
    if match := _TAG.fullmatch(name):
        return Ref(kind=Kind.TAG, run=match["run"], number=int(match["version"]))
    if match := _HIDDEN.fullmatch(name):
        return Ref(kind=Kind.EVIDENCE, run=match["run"])
    return None


def short(name: str) -> str:
    """Return the ref ``name`` as git shows it to people."""
    for prefix in ("refs/heads/", "refs/tags/", "refs/remotes/", "refs/"):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
