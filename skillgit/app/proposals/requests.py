"""What may be asked of a proposal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfSkill, OnTerms, Opt


@dataclass(frozen=True, kw_only=True)
class ProposeRequest(OnTerms, OfSkill):
    """Each SKILL, or every one with tasks in tasks/SKILL.jsonl and something new, is trained from what it is at the
    base. If the best version passes the paired test on items that chose no version, propose/SKILL gets one commit with
    the evidence. Work tree, trunk and default run stay as they are, and only --pull-request pushes.

    A process that was stopped or killed is followed by the same command, which does what is left. The caps are for all
    skills together.

    Exits with 0 if something is proposed or nothing is new, with 1 if no version is better, with 21 if that cannot be
    said, and with the code of the error if a skill failed; the others go on.

    --model trains nothing. Each SKILL, or every one, is measured on the model M with its text and without it, on as
    many items as it takes to find a gain of gate.worth four times out of five. The text is that of the base; where no
    version was promoted, it is the best version. A skill that helps is kept, as is one of which that cannot be said.
    Where such a gain is ruled out, and the model alone leaves as much to gain, the answer is the command that trains it
    for M; where it leaves less, retire/SKILL gets a commit that removes the skill. With M as new, these are the models
    that the server lists and did not list before; the first time it only remembers them. Exits with 0 if all are kept
    or no model is new, and with 1 if a skill is to be trained again or removed.
    """

    skills: Annotated[tuple[str, ...], Arg("[SKILL]...", words="skills")] = ()
    base: Annotated[
        str,
        Opt("What skills are taken from, and proposals are for", metavar="REV", words="revisions", default="the trunk"),
    ] = ""
    branch: Annotated[
        str,
        Opt(
            "The branch of a proposal; NAME is the skill",
            metavar="BRANCH",
            default="propose/NAME, with --model retire/NAME",
        ),
    ] = ""
    models: Annotated[
        tuple[str, ...],
        Opt(
            "Measure whether skills still help on M: BACKEND/MODEL, a model of the run's backend, or new (repeatable)",
            "--model",
            metavar="M",
            words="models",
        ),
    ] = ()
    junit: Annotated[
        str, Opt("With --model, not --dry-run: write a test case for each skill to FILE, as JUnit XML", metavar="FILE")
    ] = ""
    pull_request: Annotated[bool, Opt("Push the branch and open a pull request, with gh")] = False
