"""What the commands that put skills and runs elsewhere may be asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from skillgit.app.workspace.request import Arg, DryRun, OfSkill, Opt


class Agent(StrEnum):
    CLAUDE = "claude"
    CODEX = "codex"
    COPILOT = "copilot"
    AMP = "amp"
    CURSOR = "cursor"
    GEMINI = "gemini"
    GOOSE = "goose"
    KIRO = "kiro"
    OPENCODE = "opencode"
    QWEN = "qwen"
    ROO = "roo"
    WINDSURF = "windsurf"


SCHEME: Final = "skill://"
"""How the addresses begin at which a server serves skills (SEP-2640)."""
USUAL_AGENTS: Final = (Agent.CLAUDE, Agent.CODEX, Agent.COPILOT)
"""Agents whose folder is made where it is missing; of the others it says whether the agent is on this machine."""


class Scope(StrEnum):
    """For whom a skill is installed: for everything that the user does, or for the project of this repository."""

    USER = "user"
    PROJECT = "project"


class ExportKind(StrEnum):
    """As what something is written elsewhere."""

    SKILL = "skill"
    PLUGIN = "plugin"
    SKILLOPT = "skillopt"
    CSV = "csv"
    MLFLOW = "mlflow"
    WELL_KNOWN = "well-known"
    ATIF = "atif"
    INSPECT = "inspect"


class RunTable(StrEnum):
    EVENTS = "events"
    VERSIONS = "versions"
    ITEMS = "items"
    EDITS = "edits"


@dataclass(frozen=True, kw_only=True)
class Placed:
    """At a place of an agent, with a dry run."""

    to: Annotated[str | None, Opt(f"An agent ({', '.join(Agent)}) or a folder of skills", metavar="AGENT|DIR")] = None
    scope: Annotated[Scope | None, Opt("For everything you do, the default, or for this project only")] = None
    dry_run: DryRun = False
    yes: Annotated[bool, Opt("Also replace manual changes", "-y --yes")] = False


@dataclass(frozen=True, kw_only=True)
class InstallRequest(Placed, OfSkill):
    """What was there is kept outside of the skill's folder, and skillgit uninstall restores it. Manual changes are
    replaced only after their differences were shown: a terminal asks, a pipe needs --yes.

    The user's skills are in ~/.claude/skills, ~/.agents/skills (codex) and ~/.copilot/skills; those of a project are in
    .claude/skills, .agents/skills and .github/skills of this repository. docs/sharing.md lists the folders of all
    agents.

    With --list, PATH is an installed skill or a folder of them. Its tree is searched for among versions and releases,
    also without what gh skill adds to metadata; where it was changed, the record of skillgit, metadata.github-tree-sha
    and the lock files of installers identify it. Exits with 1 if a PATH holds a skill that is not from this repository.
    """

    words: Annotated[tuple[str, ...], Arg("[REV|PATH]...", words="revisions")] = ()
    listing: Annotated[bool, Opt("List installed skills: their versions and their states", "--list")] = False

    @property
    def revision(self) -> str:
        return self.words[0] if self.words else ""


@dataclass(frozen=True, kw_only=True)
class UninstallRequest(Placed):
    """That is what was there before the last version was installed, or nothing. SKILL and --to choose among several
    installed skills.
    """

    skill_name: Annotated[str | None, Arg("[SKILL]")] = None


@dataclass(frozen=True, kw_only=True)
class ExportRequest(OfSkill):
    """By default the skill: DIR becomes its folder, which agents want to bear the skill's name. FILE.zip and FILE.skill
    are archives with one folder of that name; equal skills give equal bytes. At any moment the place holds the old
    content or the new one.

    As plugin, DIR becomes a catalogue with a plug-in for Claude Code, Codex and clients of Agent Plugins: the skills of
    all REV, and commands that ask their history. A REV may be the name of a skill: the best version of the run that
    trains it. A folder that someone else made or changed is left alone.

    As well-known, the skills of REV are written for a web space, below DIR/.well-known.

    As atif, DIR gets a trajectory for each rollout that is recorded of REV, in the format ATIF 1.7. As inspect,
    it gets a log of Inspect for each split that REV measured, and for its train items.

    The other kinds write the run of REV: skillopt as an output directory of SkillOpt, csv as tables, mlflow into the
    file store DIR. --json without DIR prints the run as one document.
    """

    words: Annotated[tuple[str, ...], Arg("REV... [DIR|FILE]", words="revisions")] = ()
    kind: Annotated[ExportKind, Opt("What to write", "--as")] = ExportKind.SKILL
    table: Annotated[RunTable | None, Opt("Of csv, this table only; without DIR to stdout")] = None
    name: Annotated[str, Opt("Of plugin, its name; the default is the skill's", metavar="NAME")] = ""
    evals: Annotated[str, Opt("Of plugin, write the tasks in FILE as eval cases", metavar="FILE")] = ""
    check: Annotated[bool, Opt("Of plugin, write nothing; exit with 1 if DIR differs from what would be built")] = False
    strip_markers: Annotated[bool, Opt("Of skill, leave out the markers of regions, not their content")] = False
    force: Annotated[bool, Opt("Of skill, replace a skill or an archive that exists")] = False
