"""Owns the command line of ``codex exec``, which gets its prompt on standard input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit_backends.agent_cli.tooling import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.plugin.backend import Request
    from skillgit_backends.agent_cli.prompting import Assignment
    from skillgit_backends.agent_cli.workspace import Workspace
    from skillgit_backends.codex_exec.settings import Settings

SKILLS = ".agents/skills"


def last_message(workspace: Workspace) -> Path:
    """Return the file that the agent's last message goes to."""
    return workspace.outside / "last-message.txt"


def command(
    settings: Settings,
    request: Request,
    workspace: Workspace,
    pictures: Sequence[Path],
    environment: Mapping[str, str],
) -> list[str]:
    """Return the command line; every option has its value attached or stands before another option."""
    words = [settings.path, "exec", "--json", "--color=never", "--skip-git-repo-check", "--ephemeral", "--ignore-rules"]
    words += [f"--model={request.model}", f"--sandbox={settings.sandbox}", f"--cd={workspace.work}"]
    words += [f"--output-last-message={last_message(workspace)}"]
    if settings.profile:
        words += [f"--profile={settings.profile}"]
    if request.tools:
        schema = workspace.outside / "schema.json"
        schema.write_text(json.dumps(SCHEMA), encoding="utf-8")
        words += [f"--output-schema={schema}"]
    words += [f"--image={picture}" for picture in pictures]
    for name, value in _overrides(settings, request, environment).items():
        words += ["-c", f"{name}={value}"]
    return [*words, "-"]


def prompt(given: Assignment, offered: str) -> bytes:
    """Return what the agent reads; ``$name`` is how Codex is told to load a skill."""
    parts = [" ".join(f"${skill.name}" for skill in given.skills)]
    instructions = "\n\n".join(text for text in (given.instructions, offered) if text)
    parts += [f"<instructions>\n{instructions}\n</instructions>"] if instructions else []
    return "\n\n".join(part for part in (*parts, given.task) if part).encode("utf-8", "replace")


def _overrides(settings: Settings, request: Request, environment: Mapping[str, str]) -> dict[str, str]:
    said = {
        "analytics.enabled": "false",  # else every run waits for it at its end
        "approval_policy": _quoted("never"),
        "web_search": _quoted("live" if settings.web_search else "disabled"),
        "sandbox_workspace_write.network_access": _truth(settings.network_access),
        # The folders of other calls are there.
        "sandbox_workspace_write.exclude_slash_tmp": "true",
        # Without it commands see the key.
        "shell_environment_policy.inherit": _quoted("core"),
    }
    effort = settings.reasoning_effort or request.reasoning_effort
    if effort:
        said["model_reasoning_effort"] = _quoted(effort)
    if settings.provider:
        said["model_provider"] = _quoted(settings.provider)
    if settings.base_url:
        said[f"model_providers.{settings.provider}"] = _provider(settings, environment)
    return said


def _provider(settings: Settings, environment: Mapping[str, str]) -> str:
    retries = str(settings.request_retries)
    entries = {
        "name": _quoted(settings.provider),
        "base_url": _quoted(settings.base_url),
        "wire_api": _quoted("responses"),
        "request_max_retries": retries,
        "stream_max_retries": retries,
    }
    if settings.api_key_env in environment:
        entries["env_key"] = _quoted(settings.api_key_env)
    return "{" + ",".join(f"{name}={value}" for name, value in entries.items()) + "}"


def _quoted(text: str) -> str:
    return json.dumps(text)  # a JSON string is a TOML string too


def _truth(value: bool) -> str:  # noqa: FBT001 - it is the value itself
    return "true" if value else "false"
