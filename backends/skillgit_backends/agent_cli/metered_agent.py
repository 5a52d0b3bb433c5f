"""Owns what agents share that ask their model at skillgit's address only, never with a login of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from skillgit.errors import ConfigError, FatalBackendError, UnusableAnswerError
from skillgit.plugin.backend import NO_TOKENS, Reply, Request
from skillgit.plugin.backend_settings import Knob, read_settings
from skillgit.plugin.skill_loads import ToolLog
from skillgit.wire.wire_format import refuse
from skillgit_backends.agent_cli.backend import (
    MODEL_BACKEND,
    START_TIMEOUT,
    TOKEN,
    AgentBackend,
    AgentSettings,
    CallWorkspace,
    check_times,
    names,
)
from skillgit_backends.agent_cli.error_mapping import BY_HAND, failure
from skillgit_backends.agent_cli.process import Event
from skillgit_backends.agent_cli.prompting import Assignment, assignment, offer, read_answer


@dataclass(slots=True, kw_only=True)
class AgentEnd:
    """What a program's events have said so far."""

    answer: str = ""
    failure: str = ""
    is_complete: bool = False
    tools: ToolLog = field(default_factory=ToolLog)


def metered_settings(program: str) -> dict[str, Knob]:
    return {
        "path": Knob(default=program, meaning="the program"),
        "timeout_s": Knob(default=600.0, meaning="seconds that one call may take; env.exec_timeout goes before"),
        "start_timeout_s": START_TIMEOUT,
        "pass_env": Knob(default="", meaning="further variables to pass on, with commas between"),
        "model_backend": MODEL_BACKEND,
    }


class MeteredAgent(AgentBackend):
    """An agent that has no key and no account here; its tools read, for it has no sandbox to write or run in."""

    folder: ClassVar[str]  # where the program looks for skills, in its workspace
    program: ClassVar[str]
    usual_model = "openai_chat"

    def __init__(self, settings: Mapping[str, object]) -> None:
        name = self.info.name
        self.login = f"set the key of the backend that model.{name}_model_backend names"
        values = cast("dict[str, Any]", read_settings(name, metered_settings(self.program), settings))
        check_times(name, values)
        if not values["model_backend"]:
            raise ConfigError(f"model.{name}_model_backend is empty", hint="name a backend, or leave it out")
        super().__init__(
            AgentSettings(
                path=values["path"] or self.program,
                timeout_s=values["timeout_s"],
                start_timeout_s=values["start_timeout_s"],
                request_retries=0,
                base_url="",
                api_key_env="",
                key_named=False,
                pass_env=names(values["pass_env"]),
                model_backend=self.usual_model if values["model_backend"] == "auto" else values["model_backend"],
            )
        )
        self._url = ""

    def _at(self, url: str) -> Self:
        agent = copy(self)
        agent._url = url  # noqa: SLF001 - a copy of this one
        return agent

    def _key_variable(self, environ: Mapping[str, str]) -> str:
        del environ
        return ""

    def _refuse(self, request: Request, environ: Mapping[str, str]) -> None:
        refuse(request, "temperature", "top_p", "seed", "stop", answerer=self.info.name)
        if not self._url or TOKEN not in environ:
            hint = f"name it as target_backend, and its model's backend as model.{self.info.name}_model_backend"
            raise FatalBackendError(f"{self.info.name} asks its model through skillgit only", hint=hint)

    async def _work(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> Reply:
        task = assignment(request)
        workspace.place_skills(self.folder, task.skills)
        pictures = workspace.place_pictures(task.pictures)
        end = AgentEnd()
        command = self._command(request, workspace, environment)
        text = _prompt(task, self.folder, pictures, offer(request.tools)).encode("utf-8", "replace")
        result, noise = await self._run(command, text, workspace, environment, lambda event: self._hear(event, end))
        if result.code or end.failure or not end.is_complete:
            words = (end.failure or result.errors or noise).replace(environment.get(TOKEN, ""), "[redacted]")
            if end.failure:
                raise failure(self.info.name, words, login=self.login)
            raise self._broken_off(result, words, None, sure=not end.answer, silence="it did not come to an end")
        if not end.answer.strip():
            raise UnusableAnswerError(f"{self.info.name} ended without an answer", hint=BY_HAND, usage=NO_TOKENS)
        reply = read_answer(end.answer, NO_TOKENS) if request.tools else Reply(text=end.answer, usage=NO_TOKENS)
        return replace(reply, loading=end.tools.loading(task.names, is_whole=True))

    @abstractmethod
    def _command(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> list[str]:
        """Return the command line, which reads its task from standard input; add to ``environment`` what it needs."""

    @abstractmethod
    def _hear(self, event: Event, end: AgentEnd) -> None:
        """Take in one event; kinds that are not known are passed over."""


def _prompt(task: Assignment, folder: str, pictures: Sequence[Path], tool_text: str) -> str:
    load = [
        f"Before you begin, load the skill {skill.name}, or read {folder}/{skill.name}/SKILL.md."
        for skill in task.to_load
    ]
    look = ["Look at the pictures that the task names by reading their files."] if pictures else []
    instructions = "\n\n".join(text for text in (task.instructions, tool_text, *load, *look) if text)
    parts = [f"<instructions>\n{instructions}\n</instructions>"] if instructions else []
    return "\n\n".join([*parts, f"<task>\n{task.task}\n</task>"]) + "\n"
