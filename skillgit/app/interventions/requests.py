"""What may be asked for a run that a person changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfSkill, OnTerms, Opt
from skillgit.domain.evaluation import Split


@dataclass(frozen=True, kw_only=True)
class RevertRequest(OnTerms, OfSkill):
    """As with git, only what REV itself changed goes from the newest version of its run. The text is measured on the
    selection split, and the gate accepts it if its score is not lower. What is refused stays on a side branch, and the
    exit code is 1. Where later versions changed the same lines, they are named and nothing is written.

    With --to, the whole text of REV becomes the newest version. It inherits the score of REV; with --gate it is
    measured and judged against the newest version. History only grows: the versions in between stay.
    """

    revision: Annotated[str | None, Arg("[REV]", words="revisions")] = None
    to: Annotated[str | None, Opt("Make the text of REV the newest version", metavar="REV", words="revisions")] = None
    gate: Annotated[bool, Opt("With --to: measure the text and let the gate decide")] = False
    run: Annotated[str | None, Opt("Take REV as a version of RUN", metavar="RUN", words="runs")] = None


@dataclass(frozen=True, kw_only=True)
class CherryPickRequest(OnTerms, OfSkill):
    """REV is a version or a rejected candidate. Its edits are applied to the newest version of the run, measured on the
    selection split and judged by the gate of that run. What is refused stays on a side branch, and the exit code is 1.

    With --rejected, the edits of the run's own rejected candidates are tried, those first that came closest, and what
    no longer applies is listed with the reason. Nothing is written without --keep. Exits with 1 if none passes.
    """

    revision: Annotated[str | None, Arg("[REV]", words="revisions")] = None
    run: Annotated[str | None, Opt("Change RUN, not the default run", metavar="RUN", words="runs")] = None
    rejected: Annotated[bool, Opt("Try rejected candidates of the run again, on its newest version")] = False
    keep: Annotated[bool, Opt("With --rejected: make the first that passes the gate a version")] = False
    limit: Annotated[int, Opt("With --rejected: try at most N that apply", metavar="N", least=1)] = 5
    model: Annotated[
        str | None,
        Opt(
            "With --rejected: measure with M, as BACKEND/MODEL or a model of the run's backend",
            metavar="M",
            words="models",
        ),
    ] = None
    split: Annotated[
        str, Opt("With --rejected: measure on the items of this split", choices=("train", "selection", "test"))
    ] = Split.SELECTION.value


@dataclass(frozen=True, kw_only=True)
class MergeRequest(OnTerms, OfSkill):
    """OTHER is a run, whose best version is merged, or a version as RUN/v7. Where both lines changed the same place,
    the texts of RUN, of OTHER, of both and of neither are measured, and the one that scores best stays. The whole has
    to pass the gate of RUN. What is refused stays on a side branch, and the exit code is 1.
    """

    into: Annotated[str, Arg("RUN", words="runs")]
    source: Annotated[str, Arg("OTHER", words="revisions")]


@dataclass(frozen=True, kw_only=True)
class ShortenRequest(OnTerms, OfSkill):
    """REV is the newest version of a run, by default of the default run. The gate accepts the shorter text if its score
    is not lower. What is refused stays on a side branch, and the exit code is 1.

    Which rules change nothing is taken from the notes of ablate, and measured where they do not say. With --words, the
    optimizer's model is asked once for a shorter text; frontmatter and protected regions stay. The same command then
    asks again.
    """

    revision: Annotated[str, Arg("[REV]", words="revisions")] = "head"
    words: Annotated[bool, Opt("Say the same in fewer words; without it, rules that change nothing are dropped")] = (
        False
    )
