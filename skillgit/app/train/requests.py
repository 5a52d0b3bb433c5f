"""What training may be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfSkill, OnTerms, Opt


@dataclass(frozen=True, kw_only=True)
class TrainRequest(OnTerms, OfSkill):
    """The skill is that of HEAD, or with --from that of REV; WORKTREE is the work tree, committed or not.

    CONFIG is a file, or the name of a configuration that comes with skillgit. Default: the configuration of run NAME,
    or of REV's run. A stopped run continues where it was when you train it again under its name. Ctrl-C stops after
    the current call and loses nothing.

    With --tui the run is a process of its own: K asks it to stop after its step, q closes the screen and leaves it at
    work.
    """

    config: Annotated[str | None, Arg("[CONFIG]", words="configs")] = None
    run: Annotated[str | None, Opt("Name the run, or continue the run NAME", metavar="NAME", words="runs")] = None
    start: Annotated[
        str | None, Opt("Start from the skill at REV, or WORKTREE", "--from", metavar="REV", words="revisions")
    ] = None
    fresh: Annotated[bool, Opt("Ask models also what other runs have asked; earlier answers stay in the ledger")] = (
        False
    )
    ask_again: Annotated[bool, Opt("Retry questions that models refused")] = False
    strict: Annotated[bool, Opt("Use a distinct exit code for each outcome", "--exit-code")] = False
    screen: Annotated[bool, Opt("Watch the run on the screen; it continues when you close the screen", "--tui")] = False


@dataclass(frozen=True, kw_only=True)
class SkillTraining(TrainRequest):
    """A request for one skill, as another command may make it."""

    folder: str = ""  # of the skill that is meant at ``start``; empty where it is clear by itself
    cap: int | None = None  # the cap on calls as the user wrote it, where ``max_calls`` was reckoned from it
