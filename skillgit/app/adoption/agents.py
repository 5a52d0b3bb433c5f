"""The folders in which agents look for skills.

Claude Code reads ``~/.claude/skills`` (``CLAUDE_CONFIG_DIR`` moves ``~/.claude``) and ``.claude/skills`` of a project;
Codex ``~/.agents/skills`` and ``.agents/skills``; GitHub Copilot ``~/.copilot/skills`` and ``.github/skills``.
"""

from __future__ import annotations

from enum import StrEnum
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.config.wording import nearest
from skillgit.app.folders.typed import typed_path
from skillgit.errors import UsageError

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.workspace import Workspace


class Agent(StrEnum):
    """A program that reads skills."""

    CLAUDE = "claude"
    CODEX = "codex"
    COPILOT = "copilot"


class Scope(StrEnum):
    """For whom a skill is installed: for everything that the user does, or for the project of this repository."""

    USER = "user"
    PROJECT = "project"


_USER = {Agent.CLAUDE: ".claude/skills", Agent.CODEX: ".agents/skills", Agent.COPILOT: ".copilot/skills"}
_PROJECT = {Agent.CLAUDE: ".claude/skills", Agent.CODEX: ".agents/skills", Agent.COPILOT: ".github/skills"}
_CLAUDE_HOME = "CLAUDE_CONFIG_DIR"


def skills_folder(context: Context, workspace: Workspace, to: str, scope: Scope | None) -> Path:
    """Return the folder of skills that ``to``, an agent's name or a folder, means.

    Raises:
        UsageError: There is none: no home, no work tree, a scope for a folder, or an agent's name is misspelt.
    """
    if to not in set(Agent):
        if scope is not None:
            raise UsageError(f"--scope goes with an agent's name, and '{to}' is a folder", hint=_NAMES)
        return _folder(context, to)
    agent = Agent(to)
    if scope is Scope.PROJECT:
        if workspace.repo.workdir is None:
            raise UsageError("a bare repository is no project that an agent works in", hint="--scope user, or --to DIR")
        return workspace.repo.workdir.resolve() / _PROJECT[agent]
    moved = context.environ.get(_CLAUDE_HOME, "") if agent is Agent.CLAUDE else ""
    if moved:
        return Path(normpath(context.directory / moved)) / "skills"
    home = context.environ.get("HOME", "")
    if not home:
        raise UsageError("HOME is not set, so that there is no folder of the user's skills", hint="--to DIR")
    return Path(home) / _USER[agent]


def _folder(context: Context, to: str) -> Path:
    folder = typed_path(context.directory, to)
    near = "" if "/" in to or folder.exists() else nearest(to, list(Agent))
    if near:
        raise UsageError(f"there is no agent '{to}'", hint=f"did you mean '{near}'? A new folder is --to ./{to}")
    return folder


_NAMES = f"agents are {', '.join(Agent)}"
