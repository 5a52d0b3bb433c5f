"""Owns one call of Claude Code, from the request to the reply or to the error that it is."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from skillgit.errors import ConfigError, FatalBackendError, RefusalError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import BackendInfo, Reply, Usage
from skillgit.plugin.redaction import redact
from skillgit_backends.agent_cli.backend import AgentBackend
from skillgit_backends.agent_cli.child_environment import child_environment, without_secrets
from skillgit_backends.agent_cli.emulated_tools import SCHEMA, offer, read_answer
from skillgit_backends.agent_cli.error_mapping import failure
from skillgit_backends.agent_cli.events import Event, EventLines, counts_at, event_at, number_at, text_at
from skillgit_backends.agent_cli.probe import ask
from skillgit_backends.agent_cli.process import ProcessLimits, run
from skillgit_backends.agent_cli.prompting import assignment
from skillgit_backends.agent_cli.token_estimate import estimate
from skillgit_backends.backend_settings import FreeKey, read_keys
from skillgit_backends.request_fields import refuse
from skillgit_backends.trusted_hosts import NO_KEY, gets_usual_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.plugin.backend import Request
    from skillgit_backends.agent_cli.process import Ended
    from skillgit_backends.agent_cli.prompting import Assignment
    from skillgit_backends.agent_cli.workspace import CallWorkspace


NAME = "claude_code_exec"
DEFAULT_TIMEOUT_S = 600.0
MODES = ("dontAsk", "default", "acceptEdits", "auto", "plan", "bypassPermissions")
_KEYS = {
    "path": FreeKey(default="claude"),
    "effort": FreeKey(default="", choices=("", "low", "medium", "high", "xhigh", "max")),
    "timeout_s": FreeKey(default=DEFAULT_TIMEOUT_S),
    "tools": FreeKey(default="Read,Skill"),
    "allowed_tools": FreeKey(default=""),
    "permission_mode": FreeKey(default="dontAsk", choices=MODES),
    "sandbox": FreeKey(default=True),
    "allow_root": FreeKey(default=False),
    "max_thinking_tokens": FreeKey(default=0.0),
    "request_retries": FreeKey(default=2.0),
    "base_url": FreeKey(default=""),
    "api_key_env": FreeKey(default="ANTHROPIC_API_KEY"),
    "pass_env": FreeKey(default=""),
    "use_sdk": FreeKey(default="cli", choices=("cli", "auto")),
    "profile": FreeKey(default="", choices=("",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCodeSettings:
    """The settings as given, or by default."""

    path: str
    effort: str
    timeout_s: float
    tools: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    permission_mode: str
    sandbox: bool
    allow_root: bool
    max_thinking_tokens: int
    request_retries: int
    base_url: str
    api_key_env: str
    key_named: bool
    pass_env: tuple[str, ...]


def read_settings(values: Mapping[str, object]) -> ClaudeCodeSettings:
    """Return the settings.

    Raises:
        ConfigError: There is no such setting, or its value is not allowed.
    """
    read = read_keys(NAME, _KEYS, values)
    if cast("float", read["timeout_s"]) <= 0:
        raise ConfigError(f"model.{NAME}_timeout_s is {read['timeout_s']}", hint="it must be more than 0")
    return ClaudeCodeSettings(
        path=str(read["path"]) or "claude",
        effort=str(read["effort"]),
        timeout_s=cast("float", read["timeout_s"]),
        tools=_names(read["tools"]),
        allowed_tools=_names(read["allowed_tools"]),
        permission_mode=str(read["permission_mode"]),
        sandbox=bool(read["sandbox"]),
        allow_root=bool(read["allow_root"]),
        max_thinking_tokens=max(int(cast("float", read["max_thinking_tokens"])), 0),
        request_retries=max(int(cast("float", read["request_retries"])), 0),
        base_url=str(read["base_url"]),
        api_key_env=str(read["api_key_env"]),
        key_named="api_key_env" in values,
        pass_env=_names(read["pass_env"]),
    )


def _names(value: object) -> tuple[str, ...]:
    return tuple(name.strip() for name in str(value).split(",") if name.strip())


_OUTPUT_TOKENS = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"


class ClaudeCodeExecBackend(AgentBackend):
    """Lets Claude Code work on each request in a workspace of its own."""

    info = BackendInfo(
        name=NAME,
        summary="The Claude Code command line program, the skill in its skill folder; a login is enough.",
        timeout_s=DEFAULT_TIMEOUT_S,
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = read_settings(settings)
        super().__init__(self._settings.path, self._settings.timeout_s)

    def _refuse(self, request: Request) -> None:
        refuse(request, "temperature", "top_p", "seed", "stop", answerer="Claude Code")
        if os.geteuid() == 0 and not self._settings.allow_root:
            raise FatalBackendError(
                f"{NAME} does not run as root",
                hint=f"run skillgit as another user, or set model.{NAME}_allow_root to true in a container",
            )

    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        return prepare(self._settings, environ, workspace)

    async def _login(self, workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        return await tell_login(self._settings, workspace, environment)

    async def _work(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> Reply:
        task = assignment(request)
        environment[_OUTPUT_TOKENS] = str(request.max_output_tokens)
        workspace.place_skills(SKILLS, task.skills)
        pictures = workspace.place_pictures(task.pictures)
        session = ClaudeSession()
        lines = EventLines(give=session.hear)
        guidance = instructions(task, pictures, offer(request.tools))
        result = await run(
            command(self._settings, request, workspace, guidance),
            stdin=prompt(task),
            folder=workspace.work,
            root=workspace.root,
            environment=environment,
            limits=ProcessLimits(timeout_s=self._settings.timeout_s),
            take=lines.take,
        )
        if result.code or session.is_failed or not session.result:
            raise self._failure(result, session, lines.noise, environment)
        return _reply(request, session)

    def _failure(self, result: Ended, session: ClaudeSession, noise: str, environment: Mapping[str, str]) -> Exception:
        secrets = (KEY, *TOKENS, *self._settings.pass_env)
        message = session.text or text_at(session.result, "subtype") if session.is_failed else ""
        # In some modes it tells on standard output, and as if it were its answer, that nobody is logged in.
        text = without_secrets(f"{session.trouble} {message or result.errors or noise}", environment, secrets)
        if session.is_failed:
            status = number_at(session.result, "api_error_status")
            return failure(NAME, text, status=status, login=HOW, usage=session.usage)
        if result.code > 0:
            return failure(
                NAME, f"exit code {result.code}: {text}", login=HOW, sure=not session.result, usage=session.usage
            )
        how = f"signal {-result.code}" if result.code else "it gave no result"
        return RetryableBackendError(
            f"{NAME} broke off: {how}: {redact(text)[:500]}",
            hint="run the agent by hand to see more",
            usage=session.usage,
        )


def _reply(request: Request, session: ClaudeSession) -> Reply:
    document = session.result.get("structured_output")
    text = json.dumps(document, ensure_ascii=False) if request.tools and document else session.text
    usage = session.usage or estimate(NAME, request, text)
    if not text.strip():
        raise UnusableAnswerError(
            f"{NAME} ended without an answer", hint="run the agent by hand to see more", usage=usage
        )
    reason = text_at(session.result, "stop_reason")
    if reason == "refusal":
        raise RefusalError(
            f"{NAME}: the model refuses the request by policy: {redact(session.text)[:500]}",
            hint="this item cannot be asked of this model",
            usage=usage,
        )
    if request.tools:
        return read_answer(text, usage)
    return Reply(text=text, usage=usage, finish_reason="length" if reason == "max_tokens" else "stop")


SKILLS = ".claude/skills"


def command(settings: ClaudeCodeSettings, request: Request, workspace: CallWorkspace, instructions: str) -> list[str]:
    """Return the command line; every option that takes a list is before another option."""
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


def instructions(task: Assignment, pictures: Sequence[Path], tool_text: str) -> str:
    """Return what is added to the agent's own system prompt."""
    parts = [task.instructions, tool_text]
    parts += [
        f"Before you begin, load the skill {skill.name} with the Skill tool, or read {SKILLS}/{skill.name}/SKILL.md."
        for skill in task.skills
    ]
    if pictures:
        parts.append("Look at the pictures that the task names with the Read tool.")
    return "\n\n".join(part for part in parts if part)


def prompt(task: Assignment) -> bytes:
    """Return what the agent reads; a task that begins with a slash must not be taken for a command."""
    return f"<task>\n{task.task}\n</task>\n".encode("utf-8", "replace")


async def tell_login(
    settings: ClaudeCodeSettings, workspace: CallWorkspace, environment: Mapping[str, str]
) -> tuple[bool, str]:
    """Return whether Claude Code can get at its model in ``environment``, and how, or what to do about it.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    for name in (KEY, *TOKENS):
        if name in environment:
            return True, f"the credential in {settings.api_key_env if name == KEY else name}"
    code, output = await ask([settings.path, "auth", "status"], workspace, environment)
    logged_in = code == 0 and _tells_login(output)
    return logged_in, "the account of 'claude auth login'" if logged_in else HOW


def _tells_login(output: str) -> bool:
    try:
        status = json.loads(output)
    except ValueError:
        return False
    return isinstance(status, dict) and status.get("loggedIn") is True


_OF_A_MODEL = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_OF_THE_MAIN_MODEL = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(slots=True, kw_only=True)
class ClaudeSession:
    """What was heard of a session.

    Attributes:
        result: The last result event; empty if there was none.
        actions: Tool to how often the agent has used it.
        trouble: The kind of error that a message of the agent carried; empty if none did.
    """

    result: Event = field(default_factory=dict)
    actions: dict[str, int] = field(default_factory=dict)
    trouble: str = ""

    def hear(self, event: Event) -> None:
        """Take in one event; kinds that are not known are passed over."""
        match text_at(event, "type"):
            case "result":
                self.result = event
            case "assistant":
                self.trouble = text_at(event, "error")
                for block in _blocks(event):
                    if text_at(block, "type") == "tool_use":
                        name = text_at(block, "name")
                        self.actions[name] = self.actions.get(name, 0) + 1

    @property
    def text(self) -> str:
        """What the agent said at the end."""
        return text_at(self.result, "result")

    @property
    def is_failed(self) -> bool:
        """Whether it ended in an error, whatever else it says."""
        subtype = text_at(self.result, "subtype")
        return bool(self.result.get("is_error")) or bool(self.trouble) or subtype not in ("", "success")

    @property
    def usage(self) -> Usage | None:
        """What it has used: that of all models that took part, or else of the main one; None if that was not told."""
        models = [event for event in event_at(self.result, "modelUsage").values() if isinstance(event, dict)]
        rows = [counts_at(model, *_OF_A_MODEL) for model in models]
        rows = rows or [counts_at(event_at(self.result, "usage"), *_OF_THE_MAIN_MODEL)]
        counts = [each for each in rows if each is not None]
        fresh, out, cache_reads, cache_writes = (
            (sum(column) for column in zip(*counts, strict=True)) if counts else (0,) * 4
        )
        usage = Usage(
            tokens_in=fresh + cache_reads + cache_writes, tokens_out=out, cached=cache_reads, cache_written=cache_writes
        )
        is_complete = len(counts) == len(rows) and (usage.tokens_in or usage.tokens_out)
        return usage if is_complete and usage.plausible else None


def _blocks(event: Event) -> Iterator[Event]:
    content = event_at(event, "message").get("content")
    return (block for block in (content if isinstance(content, list) else []) if isinstance(block, dict))


HOW = "type 'claude auth login', or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in the environment"
KEY = "ANTHROPIC_API_KEY"
TOKENS = ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_BASE_URL = "ANTHROPIC_BASE_URL"
_OWN = "https://api.anthropic.com"
_ACCOUNT = ".credentials.json"


def prepare(settings: ClaudeCodeSettings, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
    """Furnish the home of a call and return the environment of its process."""
    credential = _credential(settings, environ)
    if not credential:
        _copy_account(environ, workspace)
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


def _credential(settings: ClaudeCodeSettings, environ: Mapping[str, str]) -> dict[str, str]:
    if not settings.key_named and not gets_usual_key(settings.base_url, (_OWN, environ.get(_BASE_URL, ""))):
        return {KEY: NO_KEY}
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if key:
        return {KEY: key}
    return next(({name: environ[name]} for name in TOKENS if environ.get(name)), {})


def _copy_account(environ: Mapping[str, str], workspace: CallWorkspace) -> None:
    """Copy the account without what renews it, as the program does itself for its helpers."""
    own = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(own) if own else Path(environ.get("HOME") or Path.home()) / ".claude"
    with suppress(OSError, ValueError, AttributeError, KeyError):
        account = json.loads((folder / _ACCOUNT).read_text(encoding="utf-8"))
        account["claudeAiOauth"].pop("refreshToken", None)
        workspace.place_private(workspace.home / ".claude" / _ACCOUNT, json.dumps(account))
