"""What the drafting of tasks may be asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfSkill, OnTerms, Opt

MODEL, SESSIONS = "model", "sessions"


@dataclass(frozen=True, kw_only=True)
class DraftRequest(OnTerms, OfSkill):
    """SKILL is a skill folder, or the name of a skill of the repository; default: its only skill.

    SOURCE is model (default), for tasks that the optimizer's model writes; sessions, for your sessions with coding
    agents, or claude, codex, opencode or copilot for those of one agent, or sessions:PATH for those in a file or
    folder, trajectories in ATIF among them; or the folder of a plug-in, for the cases that claude plugin eval runs. No
    run uses a draft until you have reviewed it.

    Session files are read, never changed, and nothing is sent anywhere without --rubric. Requests of sub-agents, of
    headless runs and of programs are left out. These drafts stay in the private folder of the repository, without
    credentials, names and addresses as far as they can be recognised, until you review them.

    A case becomes a task, or a draft if it has a grader that no check equals. Requests that should load a skill go to
    another file, whose name ends in -triggers.
    """

    subject: Annotated[str, Arg("[SKILL]", words="skills")] = ""
    source: Annotated[str, Opt("Draft from SOURCE", "--from", metavar="SOURCE")] = MODEL
    file: Annotated[
        Path | None, Opt("Add tasks to FILE; default: tasks/NAME.jsonl of the skill", "-f --file", metavar="FILE")
    ] = None
    limit: Annotated[int, Opt("Number of tasks to ask a model for", metavar="N")] = 10
    since: Annotated[str, Opt("Skip sessions before a date, or before an age like 7d", metavar="DATE")] = ""
    projects: Annotated[
        tuple[Path, ...], Opt("Read sessions in DIR, not in the work tree (repeatable)", "--project", metavar="DIR")
    ] = ()
    all_projects: Annotated[bool, Opt("Read sessions in any folder")] = False
    rubric: Annotated[
        bool, Opt("Have the judge's model write what a draft is graded by, unless a command checks it")
    ] = False
