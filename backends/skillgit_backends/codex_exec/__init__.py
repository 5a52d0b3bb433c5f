"""The ``codex_exec`` backend: the Codex command line program as target or as optimizer.

Each call is one ``codex exec --json`` in a home and a workspace of its own, both removed afterwards. The skill is put
into ``.agents/skills`` and mentioned by its name, upon which Codex reads it in. The task comes on standard input.
Commands of the agent run in Codex's sandbox, without network and without credentials in their environment; they are
never approved by anybody, so what the sandbox forbids fails.

| setting | default | meaning |
|---|---|---|
| `model.codex_exec_path` | "codex" | the program |
| `model.codex_exec_sandbox` | "workspace-write" | what commands may write: `workspace-write` or nothing, `read-only` |
| `model.codex_exec_profile` | "" | a profile: `<profile>.config.toml` of your own `CODEX_HOME` is copied |
| `model.codex_exec_reasoning_effort` | "" | `none` to `xhigh`; empty: `model.reasoning_effort` |
| `model.codex_exec_timeout_s` | 600.0 | seconds that one call may take, see below |
| `model.codex_exec_model_provider` | "" | a provider that Codex or the profile knows, or the name of the one below |
| `model.codex_exec_base_url` | "" | the address of another provider, which must speak the Responses API |
| `model.codex_exec_api_key_env` | "CODEX_API_KEY" | the environment variable that holds the key |
| `model.codex_exec_request_retries` | 2.0 | repeats of one request within a call, at the provider of `base_url` |
| `model.codex_exec_network_access` | false | whether commands may use the network |
| `model.codex_exec_web_search` | false | whether the agent may search the web |
| `model.codex_exec_pass_env` | "" | further variables to pass on, with commas between |
| `model.codex_exec_approval_policy` | "never" | accepted from the reference; there is no other |
| `model.codex_exec_use_sdk` | "cli" | accepted from the reference (`cli`, `auto`); the program is always used |

**Login.** The key in `api_key_env` comes first; then the account of `codex login`, whose `auth.json` is linked into
the home of the call, so that Codex can renew it; then `OPENAI_API_KEY`. With `base_url` only `api_key_env` counts, and
if it is not set, no key is sent. `CODEX_HOME` says where your own settings are, else `~/.codex`; nothing else of them
is used.

**Time.** `timeout_s` is the deadline of a call, unless `env.exec_timeout` for the target or `calls.timeout_s` for the
optimizer is set and ends it before. Raise it for long tasks.

Codex takes no temperature and no limit of a reply's length: `calls.temperature` must be null, and
`calls.max_output_tokens` has no effect. A sandbox keeps commands from writing, not from reading: they can read what you
can read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import FatalBackendError, RetryableBackendError, UnusableAnswerError
from skillgit.files import read_plain
from skillgit.plugin.backend import BackendInfo, Reply, Usage
from skillgit.plugin.redaction import redact
from skillgit_backends.agent_cli.backend import AgentBackend
from skillgit_backends.agent_cli.child_environment import child_environment, without_secrets
from skillgit_backends.agent_cli.emulated_tools import SCHEMA, offer, read_answer
from skillgit_backends.agent_cli.error_mapping import failure
from skillgit_backends.agent_cli.events import Event, EventLines, counts_at, event_at, text_at
from skillgit_backends.agent_cli.probe import ask
from skillgit_backends.agent_cli.process import ProcessLimits, run
from skillgit_backends.agent_cli.prompting import assignment
from skillgit_backends.agent_cli.token_estimate import estimate
from skillgit_backends.codex_exec.settings import DEFAULT_TIMEOUT_S, NAME, read_settings
from skillgit_backends.request_fields import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.plugin.backend import Request
    from skillgit_backends.agent_cli.process import Ended
    from skillgit_backends.agent_cli.prompting import Assignment
    from skillgit_backends.agent_cli.workspace import CallWorkspace
    from skillgit_backends.codex_exec.settings import CodexSettings


class CodexExecBackend(AgentBackend):
    """Lets Codex work on each request in a workspace of its own."""

    info = BackendInfo(
        name=NAME,
        summary="The Codex command line program in its sandbox, the skill in its skill folder; a login is enough.",
        timeout_s=DEFAULT_TIMEOUT_S,
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = read_settings(settings)
        super().__init__(self._settings.path, self._settings.timeout_s)

    def _refuse(self, request: Request) -> None:
        refuse(request, "temperature", "top_p", "seed", "stop", answerer="codex")
        if is_missing(self._settings, os.environ):
            raise FatalBackendError(f"{NAME} is not logged in", hint=HOW)

    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        return prepare(self._settings, environ, workspace)

    async def _login(self, workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        return await tell_login(self._settings, os.environ, workspace, environment)

    async def _work(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> Reply:
        task = assignment(request)
        workspace.place_skills(SKILLS, task.skills)
        pictures = workspace.place_pictures(task.pictures)
        turn = CodexTurn()
        lines = EventLines(give=turn.hear)
        result = await run(
            command(self._settings, request, workspace, pictures, environment),
            stdin=prompt(task, offer(request.tools)),
            folder=workspace.work,
            root=workspace.root,
            environment=environment,
            limits=ProcessLimits(timeout_s=self._settings.timeout_s),
            take=lines.take,
        )
        if result.code or turn.failure or not turn.completed:
            raise self._failure(result, turn, lines.noise, environment)
        return _reply(request, turn, _read(workspace) or turn.message)

    def _failure(self, result: Ended, turn: CodexTurn, noise: str, environment: Mapping[str, str]) -> Exception:
        secrets = (KEY, self._settings.api_key_env, *self._settings.pass_env)
        text = without_secrets(turn.failure or result.errors or noise, environment, secrets)
        if turn.failure:
            return failure(NAME, text, login=HOW, usage=turn.usage)
        if result.code > 0:
            # It did not even tell that its turn failed: its settings or its command line are not to its liking.
            return failure(NAME, f"exit code {result.code}: {text}", login=HOW, sure=not turn.thread, usage=turn.usage)
        how = f"signal {-result.code}" if result.code else "its turn did not complete"
        return RetryableBackendError(
            f"{NAME} broke off: {how}: {redact(text)[:500]}",
            hint="run the agent by hand to see more",
            usage=turn.usage,
        )


def _read(workspace: CallWorkspace) -> str:
    try:
        return read_plain(last_message(workspace)).decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:  # whatever the agent started could write there too
        raise UnusableAnswerError(
            f"{NAME}: the agent's last message cannot be read: {error.strerror}",
            hint="run the agent by hand to see more",
        ) from None


def _reply(request: Request, turn: CodexTurn, text: str) -> Reply:
    usage = turn.usage or estimate(NAME, request, text)
    if not text.strip():
        raise UnusableAnswerError(
            f"{NAME} ended without an answer", hint="run the agent by hand to see more", usage=usage
        )
    return read_answer(text, usage) if request.tools else Reply(text=text, usage=usage)


SKILLS = ".agents/skills"


def last_message(workspace: CallWorkspace) -> Path:
    """Return the file that the agent's last message goes to."""
    return workspace.outside / "last-message.txt"


def command(
    settings: CodexSettings,
    request: Request,
    workspace: CallWorkspace,
    pictures: Sequence[Path],
    environment: Mapping[str, str],
) -> list[str]:
    """Return the command line; every option has its value attached or is before another option."""
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


def prompt(task: Assignment, tool_text: str) -> bytes:
    """Return what the agent reads; ``$name`` is how Codex is told to load a skill."""
    parts = [" ".join(f"${skill.name}" for skill in task.skills)]
    instructions = "\n\n".join(text for text in (task.instructions, tool_text) if text)
    parts += [f"<instructions>\n{instructions}\n</instructions>"] if instructions else []
    return "\n\n".join(part for part in (*parts, task.task) if part).encode("utf-8", "replace")


def _overrides(settings: CodexSettings, request: Request, environment: Mapping[str, str]) -> dict[str, str]:
    overrides = {
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
        overrides["model_reasoning_effort"] = _quoted(effort)
    if settings.provider:
        overrides["model_provider"] = _quoted(settings.provider)
    if settings.base_url:
        overrides[f"model_providers.{settings.provider}"] = _provider(settings, environment)
    return overrides


def _provider(settings: CodexSettings, environment: Mapping[str, str]) -> str:
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


async def tell_login(
    settings: CodexSettings, environ: Mapping[str, str], workspace: CallWorkspace, environment: Mapping[str, str]
) -> tuple[bool, str]:
    """Return whether Codex can get at its model in ``environment``, and how, or what to do about it.

    Raises:
        BackendError: It cannot be started, or does not end.
    """
    if settings.base_url:
        key = f"the key in {settings.api_key_env}" if settings.api_key_env in environment else "no key"
        return True, f"{key}, at {settings.base_url}"
    if KEY in environment:
        return True, f"the key in {key_name(settings, environ)}"
    if settings.provider not in ("", "openai"):
        return True, f"the provider {settings.provider}"
    code, _ = await ask([settings.path, "login", "status"], workspace, environment)
    return code == 0, HOW if code else "the account of 'codex login'"


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
)


@dataclass(slots=True, kw_only=True)
class CodexTurn:
    """What was heard of a turn.

    Attributes:
        before: What the thread had used before this turn: Codex counts a thread from its beginning.
        actions: Kind of an item to how many the agent has completed: commands, searches, changes of files.
        failure: Why it failed; empty if it has not. An error that is told before the turn completes is none: Codex
            tells of lost connections that it mends itself.
        completed: Whether it has come to its end.
    """

    before: Usage = field(default_factory=lambda: Usage(tokens_in=0, tokens_out=0))
    thread: str = ""
    message: str = ""
    actions: dict[str, int] = field(default_factory=dict)
    failure: str = ""
    completed: bool = False
    _total: Usage | None = None

    def hear(self, event: Event) -> None:
        """Take in one event; kinds that are not known are passed over."""
        match text_at(event, "type"):
            case "thread.started":
                self.thread = text_at(event, "thread_id")
            case "item.completed":
                self._item(event)
            case "turn.completed":
                self.completed, self.failure = True, ""
                self._total = _usage(event_at(event, "usage")) or self._total
            case "turn.failed":
                self.completed = False
                self.failure = text_at(event, "error", "message") or self.failure or "the turn failed"
            case "error":
                self.failure = text_at(event, "message") or "an error without a message"

    @property
    def usage(self) -> Usage | None:
        """What this turn has used; None if that was not told."""
        if self._total is None:
            return None
        return Usage(
            tokens_in=max(self._total.tokens_in - self.before.tokens_in, 0),
            tokens_out=max(self._total.tokens_out - self.before.tokens_out, 0),
            cached=max(self._total.cached - self.before.cached, 0),
            cache_written=max(self._total.cache_written - self.before.cache_written, 0),
            reasoning=max(self._total.reasoning - self.before.reasoning, 0),
        )

    def _item(self, event: Event) -> None:
        kind = text_at(event, "item", "type")
        if kind == "agent_message":
            self.message = text_at(event, "item", "text") or self.message
        elif kind not in ("", "reasoning", "error"):  # an error among the items is a warning
            self.actions[kind] = self.actions.get(kind, 0) + 1


def _usage(event: Event) -> Usage | None:
    counts = counts_at(event, *_COUNTS) if event else None
    if counts is None:
        return None
    tokens_in, tokens_out, cache_reads, cache_writes, reasoning = counts
    return Usage(
        tokens_in=tokens_in, tokens_out=tokens_out, cached=cache_reads, cache_written=cache_writes, reasoning=reasoning
    )


HOW = "type 'codex login', or set CODEX_API_KEY in the environment"
KEY = "CODEX_API_KEY"
OTHER_KEY = "OPENAI_API_KEY"


def codex_home(workspace: CallWorkspace) -> Path:
    """Return the call's own ``CODEX_HOME``."""
    return workspace.home / ".codex"


def prepare(settings: CodexSettings, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
    """Furnish the home of a call and return the environment of its process.

    Raises:
        FatalBackendError: The profile does not exist.
    """
    home, users = codex_home(workspace), users_home(environ)
    home.mkdir()
    account = users / "auth.json"
    keys = _keys(settings, environ, account)
    if not keys and not settings.base_url and account.is_file():
        (home / "auth.json").symlink_to(account.resolve())
    if settings.profile:
        profile = users / f"{settings.profile}.config.toml"
        if not profile.is_file():
            raise FatalBackendError(
                f"there is no profile {profile}", hint="check model.codex_exec_profile and CODEX_HOME"
            )
        workspace.place_private(home / profile.name, profile.read_text(encoding="utf-8"))
    return child_environment(environ, workspace, names=settings.pass_env, CODEX_HOME=str(home), **keys)


def is_missing(settings: CodexSettings, environ: Mapping[str, str]) -> bool:
    """Say whether Codex would call OpenAI with neither a key nor an account."""
    account = users_home(environ) / "auth.json"
    has_provider = settings.provider not in ("", "openai") or settings.profile
    return not has_provider and not account.is_file() and not _keys(settings, environ, account)


def key_name(settings: CodexSettings, environ: Mapping[str, str]) -> str:
    """Return the variable that OpenAI's key comes from, where it comes from one."""
    return settings.api_key_env if environ.get(settings.api_key_env) else OTHER_KEY


def users_home(environ: Mapping[str, str]) -> Path:
    """Return the user's own ``CODEX_HOME``."""
    own = environ.get("CODEX_HOME")
    return Path(own) if own else Path(environ.get("HOME") or Path.home()) / ".codex"


def _keys(settings: CodexSettings, environ: Mapping[str, str], account: Path) -> dict[str, str]:
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if settings.provider not in ("", "openai"):
        # To a host that a configuration names goes only the key whose variable it names too.
        return {settings.api_key_env: key} if key and (settings.key_named or not settings.base_url) else {}
    if key:
        return {KEY: key}
    fallback = environ.get(OTHER_KEY, "")
    return {KEY: fallback} if fallback and not account.is_file() else {}


__all__ = ["CodexExecBackend"]
