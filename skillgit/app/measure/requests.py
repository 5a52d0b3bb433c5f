"""What may be asked of measurements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from skillgit.app.workspace.request import Arg, Capped, Noting, OfSkill, OnTerms, Opt, Overrides
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_policies import POLICIES

ALL = "all"
SPLITS = (*(split.value for split in Split), ALL)
"""What ``eval --split`` may be."""
SCORED = (Split.SELECTION.value, Split.TEST.value)
"""The splits that versions have scores on."""
ITEMS, REPEATS = 40, 3


@dataclass(frozen=True, kw_only=True)
class Reporting:
    """With a report for CI servers."""

    junit: Annotated[str, Opt("Also write a test case for each item to FILE, as JUnit XML", metavar="FILE")] = ""


@dataclass(frozen=True, kw_only=True)
class EvalRequest(Reporting, OnTerms, Noting, OfSkill):
    """They are measured as the run of the first one was: same items, same model, same seed. Commits that belong to no
    run are measured as the default run was if it trains the skill, else as the newest run of the skill with language
    models, else as its newest run. WORKTREE is the text of the work tree, committed or not. Answers that are known
    already cost nothing. Exits with 5 if too few items could be evaluated.

    --fresh draws every item again, so that drift and noise show, and --model measures under another target. Each
    version is then paired with what its run recorded; under another model nothing is tested. With --sample only N items
    of one version are drawn, and the answer is whether its recorded score holds: consistent, lower, higher or not
    comparable, the last if items, environment or target are not those of the run, and then nothing is spent. Exits with
    1 unless it is consistent.

    --judge asks no target. Recorded results of one version, or those in the file of --labels, are graded several times:
    how often a verdict flips, Krippendorff's alpha, kappa against another judge and against labels, what place does to
    comparisons, and what grading alone does to a score. Exits with 1 if alpha is below .667. A run that asks the same
    judge by the same criteria says so before its first call.

    The test split is for the end. Each evaluation on it is counted, and show says how many a version has had.
    """

    revisions: Annotated[tuple[str, ...], Arg("REV...", words="revisions")] = ()
    split: Annotated[str, Opt("Which items to measure on", choices=SPLITS)] = Split.SELECTION.value
    against: Annotated[
        tuple[str, ...],
        Opt("Compare with these versions, item by item; none is no skill", metavar="REV,...", words="revisions"),
    ] = ()
    fresh: Annotated[bool, Opt("Draw every item again, and compare with what the run recorded")] = False
    sample: Annotated[
        int | None, Opt("With --fresh: draw N items, and say whether the recorded score holds", metavar="N", least=1)
    ] = None
    seed: Annotated[int, Opt("With --sample: decides which items are drawn", metavar="S", least=0)] = 0
    model: Annotated[
        str | None,
        Opt("Measure under another target, BACKEND/MODEL or a model of the run's backend", metavar="M", words="models"),
    ] = None
    judge: Annotated[
        bool, Opt("Grade the recorded results of REV again, and say how far the judge agrees with itself")
    ] = False
    repeats: Annotated[
        int, Opt("With --judge: grade each result N times", metavar="N", least=1, default=str(REPEATS))
    ] = REPEATS
    items: Annotated[int, Opt("With --judge: draw N items", metavar="N", least=1, default=str(ITEMS))] = ITEMS
    other_judge: Annotated[
        str | None,
        Opt(
            "With --judge: compare with another judge, BACKEND/MODEL, a model of its backend, or that of a CONFIG.yaml",
            "--with",
            metavar="M",
            words="models",
        ),
    ] = None
    labels: Annotated[
        Path | None,
        Opt(
            "With --judge: compare with the labels of results in FILE, one JSON object a line",
            metavar="FILE",
            folder=False,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ClaimRequest(Noting, OfSkill):
    """The claim is an in-toto statement: which bytes, items, models, scorer and gate, and what came of them, with
    digests that anyone with the history can make again. It is signed with the SSH key that git signs with, offline, and
    is left as a note on the version's commit. It holds no path, no name of a person and no price. skillgit verify
    checks it.
    """

    revision: Annotated[str, Arg("REV", words="revisions")]
    split: Annotated[str, Opt("Which score to claim", choices=SCORED)] = Split.SELECTION.value
    key: Annotated[str | None, Opt("Sign with this SSH key, not with git's", metavar="FILE", folder=False)] = None
    output: Annotated[str, Opt("Write the claim to FILE; - writes it to stdout", metavar="FILE")] = ""
    public: Annotated[bool, Opt("Say that the evidence is published: skillgit push --evidence", "--evidence")] = False
    with_salt: Annotated[
        bool, Opt("Hide which items they are behind a salt, which is printed and not kept", "--salt")
    ] = False


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(OnTerms, Noting):
    """CLAIM is a file, or a version with a claim in its note. No model is asked, unless --sample says so. Three answers
    are kept apart: by whom it is signed; whether the history and evidence here come to the same values; and whether a
    sample of the items does again. Exits with 1 if one of them is no, and with 21 if the key is not known from
    --signers and not every value could be made again.

    skillgit eval --fresh --sample measures a version that has no claim.
    """

    claim: Annotated[str, Arg("CLAIM", words="revisions")]
    signers: Annotated[str | None, Opt("Whose keys count, as ssh-keygen's ALLOWED SIGNERS", metavar="FILE")] = None
    folder: Annotated[
        str | None, Opt("The folder of a skill to compare with it", "--skill", metavar="DIR", folder=True)
    ] = None
    salt: Annotated[str | None, Opt("What opens its digests of items", metavar="HEX")] = None
    sample: Annotated[int | None, Opt("Measure N random items again", metavar="N", least=1)] = None
    seed: Annotated[int, Opt("With --sample: decides which items are drawn", metavar="S", least=0)] = 0


@dataclass(frozen=True, kw_only=True)
class GateRequest(Reporting, Capped, Noting, OfSkill):
    """Every skill that the head changed since it left the base is compared with what is at the base.
    Outcomes of the same text that runs and notes have are taken from there; only the others are measured, and noted.
    Without --config a skill is measured as the default run was if it trains the skill, else as the newest run of the
    skill with language models, else as its newest run. WORKTREE is the text of the work tree, committed or not.

    Exits with 0 if every changed skill passes or none is changed, with 1 if one does not pass, with 5 if too few items
    could be evaluated, and with 21 if it cannot say: outcomes are not recorded, no configuration is known, or the
    items are too few for the rule.

    skillgit lint --library --base REV judges, without a model, what agents show of other skills.
    """

    base: Annotated[str, Opt("What the head would replace", metavar="REV", words="revisions")]
    head: Annotated[str, Opt("What to judge", metavar="REV", words="revisions")] = "HEAD"
    configs: Annotated[
        tuple[str, ...],
        Opt("Measure SKILL as CONFIG says, not as its run did", "--config", metavar="[SKILL=]CONFIG", words="configs"),
    ] = ()
    overrides: Overrides = ()
    split: Annotated[str, Opt("Which items to measure on", choices=SCORED)] = Split.SELECTION.value
    rule: Annotated[str | None, Opt("How to compare; default: as the configuration says", choices=tuple(POLICIES))] = (
        None
    )
    recorded_only: Annotated[bool, Opt("Measure nothing; say which outcomes are not recorded")] = False
    output: Annotated[
        str, Opt("Write the verdict as Markdown, for a comment, to FILE; - writes it to stdout", metavar="FILE")
    ] = ""


@dataclass(frozen=True, kw_only=True)
class AblateRequest(OnTerms, Noting, OfSkill):
    """A rule is a list item or a sentence of SKILL.md. The skill is measured without it, on the same items and with the
    same model as its run, and compared item by item; p is the chance of so many broken items if every change were a
    coin flip. Dead rules, without which nothing changes, come last. The result is noted on the commit, where
    shorten finds it.

    REV is the newest version of the default run unless you name one.
    """

    revision: Annotated[str, Arg("[REV]", words="revisions")] = "head"
    rule: Annotated[int | None, Opt("Leave out rule N only", metavar="N", least=1)] = None
    split: Annotated[str, Opt("Which items to measure on", choices=tuple(split.value for split in Split))] = (
        Split.SELECTION.value
    )
