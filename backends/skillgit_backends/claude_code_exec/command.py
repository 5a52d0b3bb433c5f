"""Owns the command line of ``claude -p``, which gets its prompt on standard input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit_backends.agent_cli.tooling import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillgit.plugin.backend import Request
    from skillgit_backends.agent_cli.prompting import Assignment
    from skillgit_backends.agent_cli.workspace import Workspace
    from skillgit_backends.claude_code_exec.settings import Settings

SKILLS = ".claude/skills"


def command(settings: Settings, request: Request, workspace: Workspace, instructions: str) -> list[str]:
    """Return the command line; every option that takes a list stands before another option."""
    words = [settings.path, "-p", "--output-format", "stream-json"]
    words += ["--tools", ",".join(settings.tools)]
    if settings.allowed_tools:
        words += ["--allowedTools", ",".join(settings.allowed_tools)]
    words += ["--permission-mode", settings.permission_mode, "--setting-sources", "project"]
    words += ["--strict-mcp-config", "--no-session-persistence"]
    if instructions:
        system = workspace.place_private(workspace.outside / "system-prompt.md", instructions)
        words += ["--append-system-prompt-file", str(system)]
    effort = settings.effort or request.reasoning_effort
    if effort:
        words += ["--effort", effort]
    if request.tools:
        words += ["--json-schema", json.dumps(SCHEMA)]
    return [*words, "--model", request.model, "--verbose"]


def instructions(given: Assignment, pictures: Sequence[Path], offered: str) -> str:
    """Return what is added to the agent's own system prompt."""
    parts = [given.instructions, offered]
    parts += [
        f"Before you begin, load the skill {skill.name} with the Skill tool, or read {SKILLS}/{skill.name}/SKILL.md."
        for skill in given.skills
    ]
    if pictures:
        parts.append("Look at the pictures that the task names with the Read tool.")
    return "\n\n".join(part for part in parts if part)


def prompt(given: Assignment) -> bytes:
    """Return what the agent reads; a task that begins with a slash must not be taken for a command."""
    return f"<task>\n{given.task}\n</task>\n".encode("utf-8", "replace")
