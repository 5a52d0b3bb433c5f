"""The ``opencode_exec`` backend: the OpenCode command line program as target.

Each call is one ``opencode run --format json`` in a home and a workspace of its own, both removed afterwards. The skill
is placed in ``.opencode/skills``; the task comes on standard input. OpenCode asks its model at an address of skillgit's
on the loopback, so that each of its questions is a call: in the ledger, under the caps, and at the price of the model.

**What it may do.** It reads files of its workspace. Commands, edits and the web are denied, since OpenCode has
no sandbox; where it works in a folder, sealed off, for the strategy `agent`, it may edit and run.

It takes no temperature: `calls.temperature` must be null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from skillgit.plugin.backend import BackendInfo, Request
from skillgit.wire.json_values import fields_at, text_at
from skillgit_backends.agent_cli.backend import TOKEN, AgentEnd, child_environment
from skillgit_backends.agent_cli.metered_agent import MeteredAgent, metered_settings
from skillgit_backends.agent_cli.process import Event
from skillgit_backends.agent_cli.workspace import CallWorkspace

_CONTEXT = 200_000  # tokens after which it would shorten a conversation by itself
_DENIED = ("edit", "bash", "webfetch", "websearch", "task")
_WRITING = frozenset({"edit", "bash"})


class OpenCodeEnd(AgentEnd):
    def hear(self, event: Event) -> None:
        match text_at(event, "type"):
            case "step_start":
                self.answer = ""
            case "text":
                self.answer += text_at(event, "part", "text")
            case "tool_use":
                part, identity = fields_at(event, "part"), text_at(event, "part", "callID")
                status = text_at(part, "state", "status")
                self.tools.begin(identity, text_at(part, "tool"), fields_at(part, "state", "input"))
                if status in ("completed", "error"):
                    self.tools.end(identity, is_success=status == "completed")
            case "step_finish":
                self.is_complete = text_at(event, "part", "reason") in ("stop", "length")
            case "error":
                message = text_at(event, "error", "data", "message") or text_at(event, "error", "message")
                self.failure = message or "an error without a message"


class OpenCodeExecBackend(MeteredAgent):
    info = BackendInfo(
        name="opencode_exec",
        summary="The OpenCode command line program, the skill in its skill folder; its model is any other backend's.",
        timeout_s=600.0,
        installs_skills=True,
        settings=metered_settings("opencode"),
    )
    skill_folder = ".opencode/skills"
    end = OpenCodeEnd
    program = "opencode"

    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        variables = {
            "OPENCODE_CONFIG": str(workspace.outside / "opencode.json"),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "XDG_DATA_HOME": str(workspace.home / "data"),
            TOKEN: environ.get(TOKEN, ""),
        }
        return child_environment(environ, workspace, names=self._settings.pass_env, **variables)

    def _command(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> list[str]:
        del environment
        limit = {"context": _CONTEXT, "output": request.max_output_tokens}
        options = {"baseURL": f"{self._settings.base_url}/v1", "apiKey": f"{{env:{TOKEN}}}"}
        models = {request.model: {"name": request.model, "limit": limit, "attachment": True}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "skillgit", "options": options, "models": models}
        model = f"skillgit/{request.model}"
        document = {
            "provider": {"skillgit": provider},
            "model": model,
            "small_model": model,
            "share": "disabled",
            "autoupdate": False,
            "permission": {name: "allow" if self._seal and name in _WRITING else "deny" for name in _DENIED},
        }
        workspace.place_private(workspace.outside / "opencode.json", json.dumps(document))
        # A title of its own saves the request that would ask for one.
        return [self._path, "run", "--format", "json", "--pure", "--title", "skillgit", "--model", model]


__all__ = ["OpenCodeExecBackend"]
