"""The ``codex_exec`` backend: the Codex command line program as target or as optimizer.

Each call is one ``codex exec --json`` in a home and a workspace of its own, both removed afterwards. The skill is put
into ``.agents/skills`` and mentioned by its name, upon which Codex reads it in. The task comes on standard input.
Commands of the agent run in Codex's sandbox, without network and without credentials in their environment; they are
never approved by anybody, so what the sandbox forbids fails.

**Login.** The key in `api_key_env` comes first; then the account of `codex login`, whose `auth.json` is linked into
the home of the call, so that Codex can renew it; then `OPENAI_API_KEY`. With `base_url` only `api_key_env` counts, and
if it is not set, no key is sent. `CODEX_HOME` says where your own settings are, else `~/.codex`; nothing else of them
is used.

**Metered.** Codex asks at an address of skillgit's on the loopback, and each of its questions is a call: in the ledger,
under the caps, and at the price of the model. `model_backend` names the backend that answers, with any model; `auto` is
`openai_chat` if there is a key in `api_key_env` or a `base_url`. Without, or where `model_backend` is empty, Codex asks
by itself with its login, and what it reports in the end is its cost.

**Time.** `timeout_s` is the deadline of a call, unless `env.exec_timeout` for the target or `calls.timeout_s` for the
optimizer is set and ends it before. Raise it for long tasks.

Codex takes no temperature and no limit of a reply's length: `calls.temperature` must be null, and
`calls.max_output_tokens` has no effect. A sandbox keeps commands from writing, not from reading: they can read what you
can read. In a folder, for the strategy `agent`, it works in a seal of skillgit's, where they cannot.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from skillgit.domain.evaluation import Loading
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.errors import ConfigError, FatalBackendError, UnusableAnswerError
from skillgit.files import read_plain
from skillgit.plugin.backend import NO_TOKENS, OPENAI, BackendInfo, Request, Usage
from skillgit.plugin.backend_settings import Knob
from skillgit.wire.json_values import entries_at, fields_at, text_at
from skillgit_backends.agent_cli.backend import (
    MODEL_BACKEND,
    START_TIMEOUT,
    AgentBackend,
    AgentEnd,
    AgentSettings,
    child_environment,
    read_agent_settings,
)
from skillgit_backends.agent_cli.error_mapping import BY_HAND
from skillgit_backends.agent_cli.process import (
    Event,
    ask,
    counts_at,
)
from skillgit_backends.agent_cli.prompting import SCHEMA, Assignment, offer
from skillgit_backends.agent_cli.workspace import CallWorkspace

NAME = "codex_exec"
DEFAULT_TIMEOUT_S = 600.0
EFFORTS = ("", "none", "minimal", "low", "medium", "high", "xhigh", "max")
_KEYS = {
    "path": Knob(default="codex", meaning="the program"),
    "sandbox": Knob(
        default="workspace-write",
        meaning="what commands may write: workspace-write or nothing, read-only",
        choices=("workspace-write", "read-only"),
    ),
    "profile": Knob(default="", meaning="a profile: <profile>.config.toml of your own CODEX_HOME is copied"),
    "reasoning_effort": Knob(default="", meaning="none to xhigh; empty: model.reasoning_effort", choices=EFFORTS),
    "timeout_s": Knob(default=DEFAULT_TIMEOUT_S, meaning="seconds that one call may take"),
    "start_timeout_s": START_TIMEOUT,
    "model_provider": Knob(
        default="", meaning="a provider that Codex or the profile knows, or the name of the one of base_url"
    ),
    "base_url": Knob(default="", meaning="the address of another provider, which must speak the Responses API"),
    "api_key_env": Knob(default="CODEX_API_KEY", meaning="the environment variable that holds the key"),
    "request_retries": Knob(default=2.0, meaning="repeats of one request within a call, at the provider of base_url"),
    "network_access": Knob(default=False, meaning="whether commands may use the network"),
    "web_search": Knob(default=False, meaning="whether the agent may search the web"),
    "pass_env": Knob(default="", meaning="further variables to pass on, with commas between"),
    "approval_policy": Knob(
        default="never", meaning="accepted from the reference; there is no other", choices=("never",)
    ),
    "use_sdk": Knob(
        default="cli",
        meaning="accepted from the reference (cli, auto); the program is always used",
        choices=("cli", "auto"),
    ),
    "model_backend": MODEL_BACKEND,
}
_PLAIN = re.compile(r"[A-Za-z0-9_-]*")
_OWN_PROVIDER = "skillgit"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexSettings(AgentSettings):
    sandbox: str
    profile: str
    reasoning_effort: str
    model_provider: str
    network_access: bool
    web_search: bool


def read_settings(values: Mapping[str, object]) -> CodexSettings:
    settings = read_agent_settings(NAME, _KEYS, values)
    for key in ("profile", "model_provider"):
        if not _PLAIN.fullmatch(settings[key]):
            hint = "a name has letters, digits, hyphens and underscores only"
            raise ConfigError(f"model.{NAME}_{key} is '{settings[key]}'", hint=hint)
    if settings["base_url"] and settings["model_provider"] == "openai":
        hint = f"give model.{NAME}_model_provider another name, or leave it empty"
        raise ConfigError(f"model.{NAME}_base_url has no effect on the provider 'openai'", hint=hint)
    del settings["approval_policy"], settings["use_sdk"]
    provider = settings["model_provider"] or (_OWN_PROVIDER if settings["base_url"] else "")
    return CodexSettings(**settings | {"model_provider": provider})


HOW = "type 'codex login', or set CODEX_API_KEY in the environment"
KEY = "CODEX_API_KEY"
OTHER_KEY = "OPENAI_API_KEY"


_COUNTS = {
    "tokens_in": "input_tokens",
    "tokens_out": "output_tokens",
    "cached": "cached_input_tokens",
    "cache_written": "cache_write_input_tokens",
    "reasoning": "reasoning_output_tokens",
}
"""A count of ours, and Codex's name for it."""


@dataclass(slots=True, kw_only=True)
class CodexTurn(AgentEnd):
    """What a turn has said so far; errors before its completion are those that Codex recovers from itself."""

    before: Usage = NO_TOKENS  # of the thread, which Codex counts from its beginning
    thread: str = ""
    _total: Usage | None = None

    def hear(self, event: Event) -> None:
        match text_at(event, "type"):
            case "thread.started":
                self.thread = text_at(event, "thread_id")
            case "item.completed":
                kind = text_at(event, "item", "type")
                if kind == "agent_message":
                    self.answer = text_at(event, "item", "text") or self.answer
                elif kind == "command_execution":
                    identity, item = text_at(event, "item", "id"), fields_at(event, "item")
                    self.tools.begin(identity, kind, text_at(item, "command"))
                    if item.get("exit_code") == 0:  # one that fails may have shown the skill before
                        self.tools.end(identity, is_success=True)
            case "turn.completed":
                self.is_complete, self.failure = True, ""
                self._total = _usage(fields_at(event, "usage")) or self._total
            case "turn.failed":
                self.is_complete = False
                self.failure = text_at(event, "error", "message") or self.failure or "the turn failed"
            case "error":
                self.failure = text_at(event, "message") or "an error without a message"

    @property
    def has_begun(self) -> bool:
        return bool(self.thread)

    @property
    def usage(self) -> Usage | None:
        """What this turn has used; None if that was not reported."""
        if self._total is None:
            return None
        return Usage(**{name: max(getattr(self._total, name) - getattr(self.before, name), 0) for name in _COUNTS})


def _usage(event: Event) -> Usage | None:
    counts = counts_at(event, *_COUNTS.values()) if event else None
    return None if counts is None else Usage(**dict(zip(_COUNTS, counts, strict=True)))


class CodexExecBackend(AgentBackend[CodexSettings]):
    info = BackendInfo(
        name=NAME,
        summary="The Codex command line program in its sandbox, the skill in its skill folder; a login is enough.",
        provider=OPENAI,
        timeout_s=DEFAULT_TIMEOUT_S,
        installs_skills=True,
        settings=_KEYS,
    )
    login = HOW
    usual_model = "openai_chat"
    skill_folder = ".agents/skills"
    end = CodexTurn
    silence = "its turn did not complete"
    secrets = (KEY,)
    spoken_name = "codex"
    api_path = "/v1"
    metered_settings: ClassVar = {"model_provider": _OWN_PROVIDER}
    url_variable = "OPENAI_BASE_URL"
    provider_host = "api.openai.com"

    def __init__(self, settings: Mapping[str, object]) -> None:
        super().__init__(read_settings(settings))

    def _key_variable(self, environ: Mapping[str, str]) -> str:
        settings = self._settings
        keys = _keys(settings, environ, users_home(environ) / "auth.json")
        return key_name(settings, environ) if KEY in keys else next(iter(keys), "")

    def _writing(self) -> Self:
        # a sandbox of its own would not start in the seal, and is not needed there
        return self._with(sandbox="danger-full-access", web_search=False)

    def _require_access(self, environ: Mapping[str, str]) -> None:
        settings = self._settings
        account = users_home(environ) / "auth.json"
        has_provider = settings.model_provider not in ("", "openai") or settings.profile
        if not has_provider and not account.is_file() and not _keys(settings, environ, account):
            raise FatalBackendError(f"{NAME} is not logged in", hint=HOW)

    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        settings = self._settings
        home, users = workspace.home / ".codex", users_home(environ)
        home.mkdir()
        account = users / "auth.json"
        keys = _keys(settings, environ, account)
        if not keys and not settings.base_url and account.is_file():
            (home / "auth.json").symlink_to(account.resolve())
        if settings.profile:
            profile = users / f"{settings.profile}.config.toml"
            if not profile.is_file():
                hint = "check model.codex_exec_profile and CODEX_HOME"
                raise FatalBackendError(f"there is no profile {profile}", hint=hint)
            workspace.place_private(home / profile.name, profile.read_text(encoding="utf-8"))
        return child_environment(environ, workspace, names=settings.pass_env, CODEX_HOME=str(home), **keys)

    async def _login(self, workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        settings = self._settings
        if settings.base_url:
            key = f"the key in {settings.api_key_env}" if settings.api_key_env in environment else "no key"
            return True, f"{key}, at {settings.base_url}"
        if KEY in environment:
            return True, f"the key in {key_name(settings, os.environ)}"
        if settings.model_provider not in ("", "openai"):
            return True, f"the provider {settings.model_provider}"
        code, _ = await ask([settings.path, "login", "status"], workspace, environment, self._start_limits)
        return code == 0, HOW if code else "the account of 'codex login'"

    def _ask(
        self,
        request: Request,
        task: Assignment,
        pictures: Sequence[Path],
        workspace: CallWorkspace,
        environment: dict[str, str],
    ) -> tuple[list[str], bytes]:
        words = command(self._settings, request, workspace, pictures, environment)
        return words, prompt(task, offer(request.tools))

    def _answer(self, end: AgentEnd, request: Request, workspace: CallWorkspace) -> str:
        del request
        try:
            return read_plain(last_message(workspace)).decode(errors="replace") or end.answer
        except FileNotFoundError:
            return end.answer
        except OSError as error:  # any program that the agent started could write there too
            sentence = f"{NAME}: the agent's last message cannot be read: {error.strerror}"
            raise UnusableAnswerError(sentence, hint=BY_HAND) from None

    def _loading(self, end: AgentEnd, names: Sequence[str], workspace: CallWorkspace) -> Loading | None:
        """Return whether Codex loaded a skill: by a command, or by itself where the prompt mentions it.

        Only its record of the session shows the second.
        """
        texts = list(_shown(workspace)) if names else []
        if any(text.startswith(f"<skill>\n<name>{name}</name>") for text in texts for name in names):
            return Loading.LOADED
        return end.tools.loading(names, is_whole=bool(texts))


_LONGEST_SESSION = 1 << 28


def _shown(workspace: CallWorkspace) -> Iterator[str]:
    """Yield the texts that Codex showed its model in the user's name, as far as it recorded them."""
    for path in (workspace.home / ".codex" / "sessions").rglob("rollout-*.jsonl"):
        with suppress(OSError, DocumentError):
            for line in read_plain(path, most=_LONGEST_SESSION).splitlines():
                payload = fields_at({"record": read_document(line)}, "record", "payload")
                if text_at(payload, "type") == "message" and text_at(payload, "role") == "user":
                    yield from (text_at(part, "text") for part in entries_at(payload, "content"))


def last_message(workspace: CallWorkspace) -> Path:
    return workspace.outside / "last-message.txt"


def command(
    settings: CodexSettings,
    request: Request,
    workspace: CallWorkspace,
    pictures: Sequence[Path],
    environment: Mapping[str, str],
) -> list[str]:
    """Return the command line; every option has its value attached or is before another option."""
    words = [settings.path, "exec", "--json", "--color=never", "--skip-git-repo-check", "--ignore-rules"]
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
    """Return what the agent reads; ``$name`` makes Codex load a skill."""
    parts = [" ".join(f"${skill.name}" for skill in task.to_load)]
    instructions = "\n\n".join(text for text in (task.instructions, tool_text) if text)
    parts += [f"<instructions>\n{instructions}\n</instructions>"] if instructions else []
    return "\n\n".join(part for part in (*parts, task.task) if part).encode("utf-8", "replace")


def _overrides(settings: CodexSettings, request: Request, environment: Mapping[str, str]) -> dict[str, str]:
    """Return keys of Codex's configuration and their values in TOML, as which JSON's texts and truths will do."""
    provider = settings.model_provider
    overrides = {
        "analytics.enabled": False,  # else every run waits for it at its end
        "approval_policy": "never",
        "web_search": "live" if settings.web_search else "disabled",
        "sandbox_workspace_write.network_access": settings.network_access,
        "sandbox_workspace_write.exclude_slash_tmp": True,  # the folders of other calls are there
        "shell_environment_policy.inherit": "core",  # without it commands see the key
    }
    if effort := settings.reasoning_effort or request.reasoning_effort:
        overrides["model_reasoning_effort"] = effort
    if provider:
        overrides["model_provider"] = provider
    entries = {
        "name": provider,
        "base_url": settings.base_url,
        "wire_api": "responses",
        "request_max_retries": settings.request_retries,
        "stream_max_retries": settings.request_retries,
        **({"env_key": settings.api_key_env} if settings.api_key_env in environment else {}),
    }
    table = ",".join(f"{name}={json.dumps(value)}" for name, value in entries.items())
    words = {name: json.dumps(value) for name, value in overrides.items()}
    return words | ({f"model_providers.{provider}": f"{{{table}}}"} if settings.base_url else {})


def key_name(settings: CodexSettings, environ: Mapping[str, str]) -> str:
    """Return the variable that OpenAI's key comes from, where it comes from one."""
    return settings.api_key_env if environ.get(settings.api_key_env) else OTHER_KEY


def users_home(environ: Mapping[str, str]) -> Path:
    own = environ.get("CODEX_HOME")
    return Path(own) if own else Path(environ.get("HOME") or Path.home()) / ".codex"


def _keys(settings: CodexSettings, environ: Mapping[str, str], account: Path) -> dict[str, str]:
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if settings.model_provider not in ("", "openai"):
        # To a host that a configuration names goes only the key whose variable it names too.
        return {settings.api_key_env: key} if key and (settings.key_named or not settings.base_url) else {}
    if key:
        return {KEY: key}
    fallback = environ.get(OTHER_KEY, "")
    return {KEY: fallback} if fallback and not account.is_file() else {}


__all__ = ["CodexExecBackend"]
