"""What upkeep may be asked to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, DryRun, Opt


@dataclass(frozen=True, kw_only=True)
class GcRequest:
    """Takes all finished runs unless you name some. Folded candidates stay in history and keep their names: log, show
    and diff find r17 as before. Evidence that is dropped is gone; that of the first, the best and the last version
    stays.
    """

    runs: Annotated[tuple[str, ...], Arg("[RUN]...", words="runs")] = ()
    fold: Annotated[bool, Opt("Fold branches of rejected candidates into an attic")] = False
    unfold: Annotated[bool, Opt("Give candidates in the attic their branches back")] = False
    evidence_older: Annotated[str, Opt("Drop evidence older than AGE: 30 (days) or a date", metavar="AGE")] = ""
    dry_run: DryRun = False
