"""The ``copilot_exec`` backend: the GitHub Copilot command line program as target.

Each call is one ``copilot --output-format json`` in a home and a workspace of its own, both removed afterwards. The
skill is placed in ``.github/skills``; the task comes on standard input. Copilot asks its model at an address of
skillgit's on the loopback, so that each of its questions is a call: in the ledger, under the caps, and at the price of
the model. It needs no account, and works offline but for that.

**What it may do.** It reads files of its workspace and loads skills. It has no tools that write or run commands,
but where it works in a folder, sealed off, for the strategy `agent`.

It takes no temperature: `calls.temperature` must be null.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillgit.plugin.backend import BackendInfo, Request
from skillgit.wire.json_values import fields_at, text_at
from skillgit_backends.agent_cli.backend import TOKEN, AgentEnd, child_environment
from skillgit_backends.agent_cli.metered_agent import MeteredAgent, metered_settings
from skillgit_backends.agent_cli.process import Event, number_at
from skillgit_backends.agent_cli.workspace import CallWorkspace

_TOOLS = ("view", "skill", "grep", "glob")
_WRITING = ("edit", "create", "bash")
_KEY = "COPILOT_PROVIDER_API_KEY"


class CopilotEnd(AgentEnd):
    def hear(self, event: Event) -> None:
        match text_at(event, "type"):
            case "assistant.message":
                self.answer = text_at(event, "data", "content")
            case "tool.execution_start":
                data = fields_at(event, "data")
                self.tools.begin(text_at(data, "toolCallId"), text_at(data, "toolName"), data.get("arguments"))
            case "tool.execution_complete":
                is_success = fields_at(event, "data").get("success") is True
                self.tools.end(text_at(event, "data", "toolCallId"), is_success=is_success)
            case "session.error":
                self.failure = text_at(event, "data", "message") or "an error without a message"
            case "result":
                self.is_complete = number_at(event, "exitCode") == 0


class CopilotExecBackend(MeteredAgent):
    info = BackendInfo(
        name="copilot_exec",
        summary="The GitHub Copilot command line program, the skill in its folder; its model is any other backend's.",
        timeout_s=600.0,
        installs_skills=True,
        settings=metered_settings("copilot"),
    )
    skill_folder = ".github/skills"
    end = CopilotEnd
    program = "copilot"

    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        variables = {
            "COPILOT_HOME": str(workspace.home / ".copilot"),
            "COPILOT_OFFLINE": "true",  # no sign-in, no telemetry, no update
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_WIRE_API": "completions",
            _KEY: environ.get(TOKEN, ""),
            TOKEN: environ.get(TOKEN, ""),
        }
        return child_environment(environ, workspace, names=self._settings.pass_env, **variables)

    def _command(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> list[str]:
        del workspace
        environment |= {"COPILOT_PROVIDER_BASE_URL": f"{self._settings.base_url}/v1", "COPILOT_MODEL": request.model}
        words = [self._path, "--output-format", "json", "--stream", "off", "--no-color", "--log-level", "none"]
        words += ["--disable-builtin-mcps", "--no-custom-instructions", "--no-ask-user"]
        words += [f"--secret-env-vars={_KEY},{TOKEN}"]
        if self._seal is not None:
            return [*words, "--allow-all-tools", "--available-tools", *_TOOLS, *_WRITING]
        return [*words, "--available-tools", *_TOOLS]


__all__ = ["CopilotExecBackend"]
