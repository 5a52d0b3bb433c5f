"""The ``claude_code_exec`` backend: the Claude Code command line program as target.

Each call is one ``claude -p --output-format stream-json --verbose`` in a home and a workspace of its own, both removed
afterwards: no settings, hooks, memory or servers of yours take part. The skill is placed in ``.claude/skills``; the
system prompt asks the agent to load it. The task comes on standard input.

**Login.** The key in `api_key_env` comes first, then `ANTHROPIC_AUTH_TOKEN`, then the token in
`CLAUDE_CODE_OAUTH_TOKEN` (`claude setup-token` makes one that lasts), then the account of `claude auth login` on this
machine, as far as it is in a file (`.credentials.json` in `CLAUDE_CONFIG_DIR`, else in `~/.claude`). The call gets a
copy that cannot be renewed: renewing it would end your own login. Use a token for runs that outlast the login.

**Metered.** The program asks at an address of skillgit's on the loopback, and each of its questions is a call: in the
ledger, under the caps, and at the price of the model. `model_backend` names the backend that answers, with any model;
`auto` is `claude_chat` if there is a key in `api_key_env` or a `base_url`. Without, or where `model_backend` is empty,
the program asks by itself with its login, and what it reports in the end is its cost.

**What it may do.** With the defaults it reads files of its workspace and skills; it cannot run commands or write.
`tools: Read,Skill,Bash` with `allowed_tools: Bash` lets it run commands, in the sandbox. Root is refused unless it is
allowed, because nothing then keeps a command from anything. Where it works in a folder for the strategy `agent`, it
writes and runs in a seal of skillgit's and not in its own sandbox.

**Time.** `timeout_s` is the deadline of a call, unless `env.exec_timeout` for the target or `calls.timeout_s` for the
optimizer is set and ends it before. Raise it for long tasks.

Claude Code takes no temperature: `calls.temperature` must be null. `calls.max_output_tokens` limits each of its
messages.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from skillgit.domain.evaluation import Loading
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import ANTHROPIC, BackendInfo, FinishReason, Request, Usage
from skillgit.plugin.backend_settings import Knob
from skillgit.wire.json_values import entries_at, fields_at, text_at
from skillgit_backends.agent_cli.backend import (
    MODEL_BACKEND,
    START_TIMEOUT,
    AgentBackend,
    AgentEnd,
    AgentSettings,
    child_environment,
    names,
    read_agent_settings,
)
from skillgit_backends.agent_cli.process import (
    Event,
    ask,
    counts_at,
    number_at,
)
from skillgit_backends.agent_cli.prompting import SCHEMA, Assignment, offer
from skillgit_backends.agent_cli.workspace import CallWorkspace
from skillgit_backends.backend_settings import NO_KEY, gets_usual_key

NAME = "claude_code_exec"
DEFAULT_TIMEOUT_S = 600.0
_WRITING = ("Read", "Glob", "Grep", "Edit", "Write", "Bash")
MODES = ("dontAsk", "default", "acceptEdits", "auto", "plan", "bypassPermissions")
_KEYS = {
    "path": Knob(default="claude", meaning="the program"),
    "effort": Knob(
        default="",
        meaning="low to max; empty: model.reasoning_effort",
        choices=("", "low", "medium", "high", "xhigh", "max"),
    ),
    "timeout_s": Knob(default=DEFAULT_TIMEOUT_S, meaning="seconds that one call may take"),
    "start_timeout_s": START_TIMEOUT,
    "tools": Knob(default="Read,Skill", meaning="the tools there are, with commas between"),
    "allowed_tools": Knob(default="", meaning="tools that may do what the permission mode would ask about"),
    "permission_mode": Knob(
        default="dontAsk", meaning="what happens to what it would ask about: denied", choices=MODES
    ),
    "sandbox": Knob(default=True, meaning="commands run without credentials and apart; needs bubblewrap"),
    "allow_root": Knob(default=False, meaning="whether it may run as root"),
    "max_thinking_tokens": Knob(default=0.0, meaning="tokens to think with; 0 leaves it to the program"),
    "request_retries": Knob(default=2.0, meaning="repeats of one request within a call"),
    "base_url": Knob(default="", meaning="another address of the API; empty: ANTHROPIC_BASE_URL, else Anthropic's"),
    "api_key_env": Knob(default="ANTHROPIC_API_KEY", meaning='the variable that holds the key; "" uses the account'),
    "pass_env": Knob(default="", meaning="further variables to pass on, with commas between"),
    "use_sdk": Knob(
        default="cli",
        meaning="accepted from the reference (cli, auto); the program is always used",
        choices=("cli", "auto"),
    ),
    "profile": Knob(default="", meaning="accepted from the reference, empty only", choices=("",)),
    "model_backend": MODEL_BACKEND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCodeSettings(AgentSettings):
    effort: str
    tools: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    permission_mode: str
    sandbox: bool
    allow_root: bool
    max_thinking_tokens: int


def read_settings(values: Mapping[str, object]) -> ClaudeCodeSettings:
    settings = read_agent_settings(NAME, _KEYS, values)
    del settings["use_sdk"], settings["profile"]
    settings |= {key: names(settings[key]) for key in ("tools", "allowed_tools")}
    return ClaudeCodeSettings(**settings | {"max_thinking_tokens": max(int(settings["max_thinking_tokens"]), 0)})


HOW = "type 'claude auth login', or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in the environment"
KEY = "ANTHROPIC_API_KEY"
TOKENS = ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
SKILLS = ".claude/skills"
_OUTPUT_TOKENS = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"


_OF_A_MODEL = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_OF_THE_MAIN_MODEL = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


_FINISH: Mapping[str, FinishReason] = {"max_tokens": "length", "refusal": "refusal"}


@dataclass(slots=True, kw_only=True)
class ClaudeSession(AgentEnd):
    result: Event = field(default_factory=dict)  # the last result event; empty if there was none
    spoke: bool = False  # whether there were messages of the agent among the events

    def hear(self, event: Event) -> None:
        match text_at(event, "type"):
            case "result":
                self.result, self.is_complete, self.answer = event, True, text_at(event, "result")
                self.status = number_at(event, "api_error_status")
                self.finish_reason = _FINISH.get(text_at(event, "stop_reason"), "stop")
                self.failure = (self.answer or text_at(event, "subtype")) if self.is_failed else ""
            case "assistant":
                self.trouble, self.spoke = text_at(event, "error"), True
                for block in entries_at(event, "message", "content"):
                    if text_at(block, "type") == "tool_use":
                        self.tools.begin(text_at(block, "id"), text_at(block, "name"), block.get("input"))
            case "user":
                for block in entries_at(event, "message", "content"):
                    self.tools.end(text_at(block, "tool_use_id"), is_success=block.get("is_error") is not True)

    @property
    def has_begun(self) -> bool:
        return bool(self.result)

    @property
    def is_failed(self) -> bool:
        """Whether it ended in an error."""
        subtype = text_at(self.result, "subtype")
        return bool(self.result.get("is_error")) or bool(self.trouble) or subtype not in ("", "success")

    @property
    def usage(self) -> Usage | None:
        """What it has used: that of all models that took part, or else of the main one; None if not reported."""
        models = [event for event in fields_at(self.result, "modelUsage").values() if isinstance(event, dict)]
        rows = [counts_at(model, *_OF_A_MODEL) for model in models]
        rows = rows or [counts_at(fields_at(self.result, "usage"), *_OF_THE_MAIN_MODEL)]
        counts = [each for each in rows if each is not None]
        fresh, out, cache_reads, cache_writes = map(sum, zip(*(counts or [(0,) * 4]), strict=True))
        usage = Usage(
            tokens_in=fresh + cache_reads + cache_writes, tokens_out=out, cached=cache_reads, cache_written=cache_writes
        )
        is_complete = len(counts) == len(rows) and (usage.tokens_in or usage.tokens_out)
        return usage if is_complete and usage.plausible else None


class ClaudeCodeExecBackend(AgentBackend[ClaudeCodeSettings]):
    info = BackendInfo(
        name=NAME,
        summary="The Claude Code command line program, the skill in its skill folder; a login is enough.",
        provider=ANTHROPIC,
        timeout_s=DEFAULT_TIMEOUT_S,
        installs_skills=True,
        settings=_KEYS,
    )
    login = HOW
    usual_model = "claude_chat"
    skill_folder = SKILLS
    end = ClaudeSession
    silence = "it gave no result"
    secrets = (KEY, *TOKENS)
    spoken_name = "Claude Code"
    url_variable = "ANTHROPIC_BASE_URL"
    provider_host = "api.anthropic.com"

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(read_settings(settings))

    def _passes(self, variable: str) -> bool:
        return variable == self.url_variable or super()._passes(variable)

    def _key_variable(self, environ: Mapping[str, str]) -> str:
        settings = self._settings
        if not settings.key_named and not gets_usual_key(settings.base_url, (_OWN, environ.get(_BASE_URL, ""))):
            return ""
        names = (settings.api_key_env, *(() if settings.key_named else TOKENS[:1]))
        return next((name for name in names if name and environ.get(name)), "")

    def _writing(self) -> Self:
        tools = tuple(dict.fromkeys((*self._settings.tools, *_WRITING)))
        return self._with(tools=tools, allowed_tools=tools, permission_mode="acceptEdits", sandbox=False)

    def _require_access(self, environ: Mapping[str, str]) -> None:
        del environ
        if os.geteuid() == 0 and not self._settings.allow_root:
            hint = f"run skillgit as another user, or set model.{NAME}_allow_root to true in a container"
            raise FatalBackendError(f"{NAME} does not run as root", hint=hint)

    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        settings = self._settings
        credential = _credential(settings, environ)
        if not credential:
            # the account without what renews it, as the program itself copies it for its helpers
            own = environ.get("CLAUDE_CONFIG_DIR")
            folder = Path(own) if own else Path(environ.get("HOME") or Path.home()) / ".claude"
            with suppress(OSError, ValueError, AttributeError, KeyError):
                account = json.loads((folder / _ACCOUNT).read_text(encoding="utf-8"))
                account["claudeAiOauth"].pop("refreshToken", None)
                workspace.place_private(workspace.home / ".claude" / _ACCOUNT, json.dumps(account))
        variables = {
            _BASE_URL: settings.base_url or environ.get(_BASE_URL, ""),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",  # a title is another request to the model
            "CLAUDE_CODE_MAX_RETRIES": str(settings.request_retries),
            "DISABLE_AUTOUPDATER": "1",
            "MAX_THINKING_TOKENS": str(settings.max_thinking_tokens or ""),
            "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1" if settings.sandbox and "Bash" in settings.tools else "",
            "IS_SANDBOX": "1" if settings.allow_root else "",  # else it refuses to bypass permissions as root
        }
        return child_environment(environ, workspace, names=settings.pass_env, **variables, **credential)

    async def _login(self, workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        settings = self._settings
        for name in (KEY, *TOKENS):
            if name in environment:
                return True, f"the credential in {settings.api_key_env if name == KEY else name}"
        code, output = await ask([settings.path, "auth", "status"], workspace, environment, self._start_limits)
        status = None
        with suppress(ValueError):
            status = json.loads(output)
        is_known = code == 0 and isinstance(status, dict) and status.get("loggedIn") is True
        return is_known, "the account of 'claude auth login'" if is_known else HOW

    def _ask(
        self,
        request: Request,
        task: Assignment,
        pictures: Sequence[Path],
        workspace: CallWorkspace,
        environment: dict[str, str],
    ) -> tuple[list[str], bytes]:
        environment[_OUTPUT_TOKENS] = str(request.max_output_tokens)
        words = command(self._settings, request, workspace, instructions(task, pictures, offer(request.tools)))
        return words, prompt(task)

    def _answer(self, end: AgentEnd, request: Request, workspace: CallWorkspace) -> str:
        del workspace
        document = end.result.get("structured_output") if isinstance(end, ClaudeSession) else None
        return json.dumps(document, ensure_ascii=False) if request.tools and document else end.answer

    def _loading(self, end: AgentEnd, names: Sequence[str], workspace: CallWorkspace) -> Loading | None:
        """Return whether one was loaded, which only messages of the agent show."""
        del workspace
        return end.tools.loading(names, is_whole=isinstance(end, ClaudeSession) and end.spoke)


def command(settings: ClaudeCodeSettings, request: Request, workspace: CallWorkspace, instructions: str) -> list[str]:
    """Return the command line; every option that takes a list is before another option."""
    words = [settings.path, "-p", "--output-format", "stream-json", "--tools", ",".join(settings.tools)]
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


def instructions(task: Assignment, pictures: Sequence[Path], tool_text: str) -> str:
    parts = [task.instructions, tool_text]
    parts += [
        f"Before you begin, load the skill {skill.name} with the Skill tool, or read {SKILLS}/{skill.name}/SKILL.md."
        for skill in task.to_load
    ]
    if pictures:
        parts.append("Look at the pictures that the task names with the Read tool.")
    return "\n\n".join(part for part in parts if part)


def prompt(task: Assignment) -> bytes:
    """Return what the agent reads; a task that begins with a slash must not be taken for a command."""
    return f"<task>\n{task.task}\n</task>\n".encode("utf-8", "replace")


_BASE_URL = ClaudeCodeExecBackend.url_variable
_OWN = f"https://{ClaudeCodeExecBackend.provider_host}"
_ACCOUNT = ".credentials.json"


def _credential(settings: ClaudeCodeSettings, environ: Mapping[str, str]) -> dict[str, str]:
    if not settings.key_named and not gets_usual_key(settings.base_url, (_OWN, environ.get(_BASE_URL, ""))):
        return {KEY: NO_KEY}
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if key:
        return {KEY: key}
    return next(({name: environ[name]} for name in TOKENS if environ.get(name)), {})


__all__ = ["ClaudeCodeExecBackend"]
