"""What may be asked of a proposal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfSkill, OnTerms, Opt


@dataclass(frozen=True, kw_only=True)
class ProposeRequest(OnTerms, OfSkill):
    """Each SKILL, or every one with tasks in tasks/SKILL.jsonl and something new, is trained from what it is at the
    base. If the best version passes the paired test on items that chose no version, propose/SKILL gets one commit with
    the evidence. Work tree and trunk stay as they are, and nothing is pushed without --pull-request.

    A process that was stopped or killed is followed by the same command, which does what is left. The caps are for all
    skills together.

    Exits with 0 if something is proposed or nothing is new, with 1 if no version is better, with 21 if that cannot be
    said, and with the code of the error if a skill failed; the others go on.
    """

    skills: Annotated[tuple[str, ...], Arg("[SKILL]...", words="skills")] = ()
    base: Annotated[
        str,
        Opt("What skills are taken from, and proposals are for", metavar="REV", words="revisions", default="the trunk"),
    ] = ""
    branch: Annotated[str, Opt("The branch of a proposal; NAME is the skill", metavar="BRANCH")] = "propose/NAME"
    pull_request: Annotated[bool, Opt("Push the branch and open a pull request, with gh")] = False
