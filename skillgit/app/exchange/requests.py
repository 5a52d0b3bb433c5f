"""What may be asked of another repository."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, DryRun, Opt


@dataclass(frozen=True, kw_only=True)
class PushRequest:
    """REMOTE defaults to origin, or the only one. The trunk, notes and all runs of this repository go, or only the runs
    that you name. Nothing that is there is overwritten: remote changes are reported, and skillgit pull brings them in.
    Before anything goes, it is looked through for secrets, leaked items and large files, as by lint --secrets;
    --dry-run does that and sends nothing.
    """

    remote: Annotated[str | None, Arg("[REMOTE]")] = None
    runs: Annotated[tuple[str, ...], Arg("[RUN]...", words="runs")] = ()
    rejected_mode: Annotated[
        str | None,
        Opt(
            "How to push rejected candidates (default: as last time; first time: attic)",
            "--rejected",
            choices=("branches", "attic", "none"),
        ),
    ] = None
    evidence: Annotated[bool, Opt("Push evidence too: trajectories, patches, outcomes")] = False
    dry_run: DryRun = False
    verify: Annotated[bool, Opt("Neither look for secrets nor ask git's pre-push hook", "--no-verify")] = True
    yes: Annotated[bool, Opt("Create the repository on GitHub if there is none, without asking", "-y --yes")] = False


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """REMOTE defaults to origin, or the only one. Runs that are unknown here are made, others go forward, notes of both
    sides are put together, and the trunk goes forward where it can. A run that both sides continued is reported and
    left as it is.

    With --dry-run only the copies of the other repository's refs are updated, as git fetch does. You can look at a run
    that is not here then, and a run that goes on from there knows the candidates that others rejected.
    """

    remote: Annotated[str | None, Arg("[REMOTE]")] = None
    rejected_mode: Annotated[
        str,
        Opt(
            "Which rejected candidates come: all, those in attics, or none",
            "--rejected",
            choices=("branches", "attic", "none"),
        ),
    ] = "branches"
    evidence: Annotated[bool, Opt("Bring evidence too")] = False
    dry_run: DryRun = False
