"""Owns what agents share that ask their model at skillgit's address only, never with a login of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import Request
from skillgit.plugin.backend_settings import Knob
from skillgit_backends.agent_cli.backend import (
    MODEL_BACKEND,
    START_TIMEOUT,
    TOKEN,
    AgentBackend,
    AgentSettings,
    read_agent_settings,
)
from skillgit_backends.agent_cli.prompting import Assignment, offer
from skillgit_backends.agent_cli.workspace import CallWorkspace


def metered_settings(program: str) -> dict[str, Knob]:
    return {
        "path": Knob(default=program, meaning="the program"),
        "timeout_s": Knob(default=600.0, meaning="seconds that one call may take; env.exec_timeout goes before"),
        "start_timeout_s": START_TIMEOUT,
        "pass_env": Knob(default="", meaning="further variables to pass on, with commas between"),
        "model_backend": MODEL_BACKEND,
    }


class MeteredAgent(AgentBackend[AgentSettings]):
    """An agent that has no key and no account here; its tools read, for it has no sandbox to write or run in."""

    program: ClassVar[str]
    usual_model = "openai_chat"

    def __init__(self, settings: Mapping[str, object]) -> None:
        name = self.info.name
        self.login = f"set the key of the backend that model.{name}_model_backend names"
        values = read_agent_settings(name, metered_settings(self.program), settings)
        if not values["model_backend"]:
            raise ConfigError(f"model.{name}_model_backend is empty", hint="name a backend, or leave it out")
        if values["model_backend"] == "auto":
            values["model_backend"] = self.usual_model
        super().__init__(AgentSettings(**values))

    def _key_variable(self, environ: Mapping[str, str]) -> str:
        del environ
        return ""

    def _require_access(self, environ: Mapping[str, str]) -> None:
        if not self._settings.base_url or TOKEN not in environ:
            hint = f"name it as target_backend, and its model's backend as model.{self.info.name}_model_backend"
            raise FatalBackendError(f"{self.info.name} asks its model through skillgit only", hint=hint)

    def _ask(
        self,
        request: Request,
        task: Assignment,
        pictures: Sequence[Path],
        workspace: CallWorkspace,
        environment: dict[str, str],
    ) -> tuple[list[str], bytes]:
        load = [
            f"Before you begin, load the skill {skill.name}, or read {self.skill_folder}/{skill.name}/SKILL.md."
            for skill in task.to_load
        ]
        look = ["Look at the pictures that the task names by reading their files."] if pictures else []
        instructions = "\n\n".join(text for text in (task.instructions, offer(request.tools), *load, *look) if text)
        parts = [f"<instructions>\n{instructions}\n</instructions>"] if instructions else []
        text = "\n\n".join([*parts, f"<task>\n{task.task}\n</task>"]) + "\n"
        return self._command(request, workspace, environment), text.encode("utf-8", "replace")

    @abstractmethod
    def _command(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> list[str]:
        """Return the command line, which reads its task from standard input; add to ``environment`` what it needs."""
