"""Owns what backends share that start an agent's program for each call: settings, workspace, run, and a look at it.

Nothing else has used or will use the folders of a call. The home is not inside the temporary folder, because Codex puts
no helper programs there and then cannot sandbox.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from skillgit.domain.evaluation import Loading
from skillgit.errors import (
    BackendError,
    ConfigError,
    FatalBackendError,
    RefusalError,
    RetryableBackendError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import (
    NO_TOKENS,
    BackendInfo,
    FinishReason,
    ModelAccess,
    ModelBehind,
    ModelServer,
    Probe,
    Reply,
    Request,
    Usage,
)
from skillgit.plugin.backend_settings import Knob, read_settings
from skillgit.plugin.redaction import redact
from skillgit.plugin.seed_folder import write_files
from skillgit.plugin.skill_loads import ToolLog
from skillgit.plugin.work_folder import changes_in
from skillgit.wire.wire_format import refuse
from skillgit_backends.agent_cli.error_mapping import BY_HAND, LONGEST, failure
from skillgit_backends.agent_cli.process import (
    Ended,
    Event,
    EventLines,
    ProcessLimits,
    estimate,
    run,
    start_limits,
    version,
)
from skillgit_backends.agent_cli.prompting import (
    Assignment,
    assignment,
    read_answer,
    tool_turns,
)
from skillgit_backends.agent_cli.seal import Seal, seal_problem, sealed
from skillgit_backends.agent_cli.workspace import CallWorkspace, fresh_workspace
from skillgit_backends.backend_settings import server

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
ALLOWED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
)
"""What a program needs to be found, to write text and to reach its provider; credentials are not among it."""
_SHORTEST_SECRET = 8
TOKEN = "SKILLGIT_MODEL_TOKEN"  # noqa: S105 - the name of a variable
"""The variable that holds the token for the address that meters an agent's questions."""
MODEL_BACKEND = Knob(
    default="auto", meaning="the backend that answers its questions, metered; auto takes the usual one"
)
START_TIMEOUT = Knob(default=120.0, meaning="seconds that its start may take, such as --version")
"""The setting ``model_backend`` of every agent."""


def child_environment(
    environ: Mapping[str, str], workspace: CallWorkspace, *, names: Sequence[str] = (), **variables: str
) -> dict[str, str]:
    """Return the environment of an agent's process; an empty value of ``variables`` leaves one out."""
    base = {name: environ[name] for name in (*ALLOWED, *names) if name in environ}
    own = {"HOME": str(workspace.home), "TMPDIR": str(workspace.temporary), "TERM": "dumb", "NO_COLOR": "1"}
    return base | own | {name: value for name, value in variables.items() if value}


def without_secrets(text: str, environment: Mapping[str, str], secrets: Sequence[str]) -> str:
    """Return ``text`` without the values of the variables called ``secrets``."""
    for name in secrets:
        value = environment.get(name, "")
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "[redacted]")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings of every agent, as given, or by default."""

    path: str
    timeout_s: float
    start_timeout_s: float  # for what the program says of itself, such as its version
    request_retries: int
    base_url: str
    api_key_env: str
    key_named: bool
    pass_env: tuple[str, ...]
    model_backend: str  # who answers its questions, metered; `auto`, or empty to let it ask by itself


def read_agent_settings(backend: str, keys: Mapping[str, Knob], values: Mapping[str, object]) -> dict[str, Any]:
    """Return every setting of ``backend`` as its ``AgentSettings`` have it; a ConfigError for a wrong key or value."""
    settings: dict[str, Any] = {"request_retries": 0, "base_url": "", "api_key_env": ""}
    settings |= read_settings(backend, keys, values)
    for key in ("timeout_s", "start_timeout_s"):
        if settings[key] <= 0:
            raise ConfigError(f"model.{backend}_{key} is {settings[key]}", hint="it must be more than 0")
    return settings | {
        "path": settings["path"] or keys["path"].default,
        "request_retries": max(int(settings["request_retries"]), 0),
        "key_named": "api_key_env" in values,
        "pass_env": names(settings["pass_env"]),
    }


def names(text: str) -> tuple[str, ...]:
    """Return the names in ``text``, which has commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(slots=True, kw_only=True)
class AgentEnd:
    """What a program's events have said so far; a subclass hears them."""

    answer: str = ""
    failure: str = ""  # in the program's words
    trouble: str = ""  # the kind of the failure, where it is said apart from it
    status: int = 0  # of HTTP, where a failure has one
    is_complete: bool = False
    finish_reason: FinishReason = "stop"
    tools: ToolLog = field(default_factory=ToolLog)

    def hear(self, event: Event) -> None:
        """Take in one event; kinds that are not known are passed over."""
        raise NotImplementedError

    @property
    def is_failed(self) -> bool:
        return bool(self.failure)

    @property
    def has_begun(self) -> bool:
        """Whether settings and command line were to the program's liking."""
        return bool(self.answer)

    @property
    def usage(self) -> Usage | None:
        """What it has used; None if that was not reported. Where its questions are metered, it reports nothing."""
        return NO_TOKENS


S = TypeVar("S", bound=AgentSettings)


class AgentBackend(ABC, Generic[S]):
    """Lets an agent's program do each request in a workspace; a subclass says what differs between programs."""

    info: BackendInfo
    login: str  # a hint how to log in
    usual_model: ClassVar[str]  # the backend that asks the same models by itself
    skill_folder: ClassVar[str]  # where the program looks for skills, in its workspace
    end: ClassVar[type[AgentEnd]]  # which hears the program's events
    silence: ClassVar[str] = "it did not come to an end"  # what is missing where it ends without an error
    secrets: ClassVar[tuple[str, ...]] = (TOKEN,)  # variables that it is given keys and tokens in
    spoken_name: ClassVar[str] = ""  # what its program is called in a refusal, if not as the backend
    api_path: ClassVar[str] = ""  # behind an address of ours, in its setting
    metered_settings: ClassVar[Mapping[str, object]] = {}  # further settings that it has there
    url_variable: ClassVar[str] = ""  # of the environment, which names the address that the program asks by itself
    provider_host: ClassVar[str] = ""  # the host of the provider that it asks without an address
    _seal: Seal | None = None  # around the program of the call in progress; None where it is trusted with less

    def __init__(self, settings: S) -> None:
        self._settings = settings
        self._path = settings.path
        name = self.info.name
        self._limits = ProcessLimits(timeout_s=settings.timeout_s, setting=f"model.{name}_timeout_s")
        self._start_limits = start_limits(name, settings.start_timeout_s)
        self.info = replace(type(self).info, timeout_s=settings.timeout_s)

    async def complete(self, request: Request) -> Reply:
        if request.folder is not None:
            hint = f"name who answers its questions as model.{self.info.name}_model_backend"
            raise FatalBackendError(f"{self.info.name} works in a folder only where it is metered", hint=hint)
        return await self._complete(request, os.environ)

    def model_behind(self) -> ModelBehind | None:
        """Return the backend of ``model_backend``; ``auto`` is the usual one, if it has a key or an address."""
        settings = self._settings
        if settings.model_backend not in ("", "auto"):
            return ModelBehind(backend=settings.model_backend)
        variable = self._key_variable(os.environ)
        if not settings.model_backend or not (variable or settings.base_url):
            return None
        account = {"base_url": settings.base_url, "api_key_env": variable}
        return ModelBehind(backend=self.usual_model, settings={name: value for name, value in account.items() if value})

    def server(self) -> ModelServer | None:
        """Return the address at which the program asks by itself; None where that is its provider's, by any login."""
        variable = "" if self._settings.base_url or not self._passes(self.url_variable) else self.url_variable
        url = self._settings.base_url or os.environ.get(variable, "").strip()
        return ModelServer(url=url, variable=variable, is_pinned=server(url) == self.provider_host) if url else None

    def _passes(self, variable: str) -> bool:
        """Say whether the program gets ``variable`` of the environment."""
        return variable in self._settings.pass_env

    async def served_facts(self, model: str) -> Mapping[str, object]:
        """Return nothing: only the program knows how the address is asked."""
        del model
        return {}

    async def complete_through(self, request: Request, access: ModelAccess) -> Reply:
        """Let the program ask at ``access`` alone: it gets the token in place of every credential of the user."""
        metered, environ = self._at(access.url), {**os.environ, TOKEN: access.token}
        if request.folder is not None:
            return await metered._writing()._work_in_folder(request, environ, access.url)  # noqa: SLF001 - one of its own
        return await metered._complete(request, environ)  # noqa: SLF001 - one of its own

    def folder_problem(self) -> str:
        return seal_problem()

    async def _work_in_folder(self, request: Request, environ: Mapping[str, str], url: str) -> Reply:
        """Let the program work on the files of ``request`` in a seal; this agent is a copy for the one call."""
        assert request.folder is not None  # noqa: S101 - by who calls it
        self._refuse(request, environ)
        with fresh_workspace() as workspace:
            workspace.work.rmdir()
            write_files(workspace.work, request.folder.files, request.folder.executable)
            reachable = {name: value for name, value in environ.items() if name.upper() not in _PROXIES}
            environment = self._prepare(reachable, workspace)
            async with sealed(workspace, url) as self._seal:
                reply = await self._work(request, workspace, environment)
            changes = changes_in(workspace.work, request.folder, reply.text)
        return replace(reply, text=changes.reply, finish_reason="stop", tool_calls=())

    async def _complete(self, request: Request, environ: Mapping[str, str]) -> Reply:
        self._refuse(request, environ)
        with fresh_workspace() as workspace:
            return await self._work(request, workspace, self._prepare(environ, workspace))

    async def probe(self) -> Probe:
        """Return the program's version and whether its model can be asked, without asking it anything."""
        with fresh_workspace() as workspace:
            environment = self._prepare(os.environ, workspace)
            number = await version(self._path, workspace, environment, self._start_limits)
            behind = self.model_behind()
            ready, detail = (
                await self._login(workspace, environment)
                if behind is None
                else (True, f"{behind.backend} answers its questions")
            )
            return Probe(place=self._path, version=number, ready=ready, detail=detail)

    async def aclose(self) -> None:
        """Do nothing: every process ended with its call."""

    async def _run(
        self,
        command: list[str],
        stdin: bytes,
        workspace: CallWorkspace,
        environment: Mapping[str, str],
        hear: Callable[[Event], None],
    ) -> tuple[Ended, str]:
        """Run the program; return how it ended, and what it wrote besides events."""
        lines = EventLines(give=hear)
        if self._seal is not None:
            command = self._seal.around(command, environment)
        result = await run(
            command, workspace, environment, stdin=stdin, limits=self._limits, take=lines.take, called=self._path
        )
        return result, lines.noise

    async def _work(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> Reply:
        """Answer a request in its workspace."""
        name, task, end = self.info.name, assignment(request), self.end()
        workspace.place_skills(self.skill_folder, task.skills)
        pictures = workspace.place_pictures(task.pictures)
        words, stdin = self._ask(request, task, pictures, workspace, environment)
        result, noise = await self._run(words, stdin, workspace, environment, end.hear)
        if result.code or end.is_failed or not end.is_complete:
            words_said = f"{end.trouble} {end.failure or result.errors or noise}".strip()
            secrets = (*self.secrets, self._settings.api_key_env, *self._settings.pass_env)
            raise self._failed(result, end, without_secrets(words_said, environment, secrets))
        text = self._answer(end, request, workspace)
        usage = end.usage or estimate(name, request, text)
        if not text.strip():
            raise UnusableAnswerError(f"{name} ended without an answer", hint=BY_HAND, usage=usage)
        if end.finish_reason == "refusal":
            sentence = f"{name}: the model refuses the request by policy: {redact(text)[:LONGEST]}"
            raise RefusalError(sentence, hint="this item cannot be asked of this model", usage=usage)
        plain = Reply(text=text, usage=usage, finish_reason=end.finish_reason, counted=end.usage is not None)
        reply = read_answer(text, usage) if request.tools else plain
        turns = tool_turns(end.tools.uses) if task.offers else ()
        return replace(reply, turns=turns, loading=self._loading(end, task.names, workspace))

    def _failed(self, result: Ended, end: AgentEnd, words: str) -> BackendError:
        """Return the error of a call that ended with a failure, or whose end the agent did not announce."""
        name, usage = self.info.name, None if end.usage == NO_TOKENS else end.usage
        if end.is_failed:
            return failure(name, words, status=end.status, login=self.login, usage=usage)
        if result.code > 0:
            words = f"exit code {result.code}: {words}"
            return failure(name, words, login=self.login, sure=not end.has_begun, usage=usage)
        how = f"signal {-result.code}" if result.code else self.silence
        return RetryableBackendError(f"{name} broke off: {how}: {redact(words)[:LONGEST]}", hint=BY_HAND, usage=usage)

    def _with(self, **changes: object) -> Self:
        """Return this agent with other settings."""
        agent = copy(self)
        agent._settings = replace(self._settings, **changes)  # type: ignore[arg-type]  # noqa: SLF001 - a copy of this one
        return agent

    def _at(self, url: str) -> Self:
        """Return this agent as it asks at ``url``, each question once, with the key in the variable :data:`TOKEN`."""
        own = {"base_url": f"{url}{self.api_path}", "api_key_env": TOKEN, "key_named": True, "request_retries": 0}
        return self._with(**own, **self.metered_settings)

    def _writing(self) -> Self:
        """Return this agent with tools that write and run, for a seal keeps them from everything else."""
        return self._with()

    def _refuse(self, request: Request, environ: Mapping[str, str]) -> None:
        """Refuse what cannot be asked of this agent, or by this user."""
        refuse(request, "temperature", "top_p", "seed", "stop", answerer=self.spoken_name or self.info.name)
        self._require_access(environ)

    def _answer(self, end: AgentEnd, request: Request, workspace: CallWorkspace) -> str:
        """Return what the agent answers."""
        del request, workspace
        return end.answer

    def _loading(self, end: AgentEnd, names: Sequence[str], workspace: CallWorkspace) -> Loading | None:
        """Return whether the agent loaded one of the skills ``names``."""
        del workspace
        return end.tools.loading(names, is_whole=True)

    async def _login(self, workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        """Return whether the agent can get at its model by itself, and how, or what to do about it."""
        del workspace, environment
        return False, self.login

    @abstractmethod
    def _key_variable(self, environ: Mapping[str, str]) -> str:
        """Return the variable whose key its model would be asked with; empty where it is another login, or none."""

    @abstractmethod
    def _require_access(self, environ: Mapping[str, str]) -> None:
        """Refuse a call that the program would not carry out here."""

    @abstractmethod
    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        """Furnish the home of a call and return the environment of its process."""

    @abstractmethod
    def _ask(
        self,
        request: Request,
        task: Assignment,
        pictures: Sequence[Path],
        workspace: CallWorkspace,
        environment: dict[str, str],
    ) -> tuple[list[str], bytes]:
        """Return the command line and what the program reads; add to ``environment`` what it needs."""
