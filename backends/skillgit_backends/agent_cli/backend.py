"""Owns what backends share that start an agent's program for each call: settings, workspace, run, and a look at it.

Nothing else has used or will use the folders of a call. The home is not inside the temporary folder, because Codex puts
no helper programs there and then cannot sandbox.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from skillgit.domain.untrusted.file_names import file_name
from skillgit.errors import BackendError, ConfigError, FatalBackendError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import BackendInfo, ModelAccess, ModelBehind, ModelServer, Probe, Reply, Request, Usage
from skillgit.plugin.backend_settings import Knob, read_settings
from skillgit.plugin.redaction import redact
from skillgit.plugin.seed_folder import write_files
from skillgit.plugin.work_folder import changes_in
from skillgit_backends.agent_cli.error_mapping import BY_HAND, LONGEST, failure
from skillgit_backends.agent_cli.process import Ended, Event, EventLines, ProcessLimits, run, start_limits, version
from skillgit_backends.agent_cli.prompting import DeliveredSkill, PictureFile
from skillgit_backends.agent_cli.seal import Seal, seal_problem, sealed
from skillgit_backends.backend_settings import server

_PRIVATE = 0o600
_FOLDER = 0o700
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWorkspace:
    root: Path  # holds the others; its path is in the environment of every process of the call

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def outside(self) -> Path:
        """Files of the call that a sandboxed agent cannot write."""
        return self.root / "call"

    def place_skills(self, folder: str, skills: Sequence[DeliveredSkill]) -> None:
        """Write each skill as ``<folder>/<name>/SKILL.md``, with its other files, into the workspace."""
        for skill in skills:
            texts = {"SKILL.md": skill.document, **skill.files}
            path = self.work / folder / file_name(skill.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_files(path, {name: text.encode(errors="replace") for name, text in texts.items()})

    def place_pictures(self, pictures: Sequence[PictureFile]) -> list[Path]:
        paths = [self.work / picture.name for picture in pictures]
        for path, picture in zip(paths, pictures, strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(picture.data)
        return paths

    def place_private(self, path: Path, text: str) -> Path:
        """Write a file that only this user may read."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w", encoding="utf-8", errors="replace"
        ) as file:
            file.write(text)
        return path


@contextmanager
def fresh_workspace() -> Iterator[CallWorkspace]:
    """Give the folders for one call, and remove them with all that is inside."""
    root = Path(tempfile.mkdtemp(prefix="skillgit-agent-")).resolve()
    workspace = CallWorkspace(root=root)
    try:
        for folder in (workspace.home, workspace.work, workspace.temporary, workspace.outside):
            folder.mkdir(mode=_FOLDER)
        yield workspace
    finally:
        _remove(root)


def _remove(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():  # an agent may have taken its own right to write into a folder
        for folder, names, _ in os.walk(root):
            for path in (Path(folder, name) for name in names):
                if not path.is_symlink():
                    path.chmod(_FOLDER)
        shutil.rmtree(root, ignore_errors=True)


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
    settings = cast("dict[str, Any]", read_settings(backend, keys, values))
    check_times(backend, settings)
    return settings | {
        "path": settings["path"] or keys["path"].default,
        "request_retries": max(int(settings["request_retries"]), 0),
        "key_named": "api_key_env" in values,
        "pass_env": names(settings["pass_env"]),
    }


def check_times(backend: str, settings: Mapping[str, Any]) -> None:
    for key in ("timeout_s", "start_timeout_s"):
        if settings[key] <= 0:
            raise ConfigError(f"model.{backend}_{key} is {settings[key]}", hint="it must be more than 0")


def names(text: str) -> tuple[str, ...]:
    """Return the names in ``text``, which has commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


class AgentBackend(ABC):
    """Lets an agent's program do each request in a workspace; subclasses have ``info`` and ``login``, a hint how to."""

    info: BackendInfo
    login: str
    usual_model: ClassVar[str]  # the backend that asks the same models by itself
    url_variable: ClassVar[str] = ""  # of the environment, which names the address that the program asks by itself
    provider_host: ClassVar[str] = ""  # the host of the provider that it asks without an address
    _seal: Seal | None = None  # around the program of the call in progress; None where it is trusted with less

    def __init__(self, settings: AgentSettings) -> None:
        self._agent = settings
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
        settings = self._agent
        if settings.model_backend not in ("", "auto"):
            return ModelBehind(backend=settings.model_backend)
        variable = self._key_variable(os.environ)
        if not settings.model_backend or not (variable or settings.base_url):
            return None
        account = {"base_url": settings.base_url, "api_key_env": variable}
        return ModelBehind(backend=self.usual_model, settings={name: value for name, value in account.items() if value})

    def server(self) -> ModelServer | None:
        """Return the address at which the program asks by itself; None where that is its provider's, by any login."""
        variable = "" if self._agent.base_url or not self._passes(self.url_variable) else self.url_variable
        url = self._agent.base_url or os.environ.get(variable, "").strip()
        return ModelServer(url=url, variable=variable, is_pinned=server(url) == self.provider_host) if url else None

    def _passes(self, variable: str) -> bool:
        """Say whether the program gets ``variable`` of the environment."""
        return variable in self._agent.pass_env

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

    async def aclose(self) -> None:  # noqa: B027 - there is nothing to release
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

    def _broken_off(self, result: Ended, words: str, usage: Usage | None, *, sure: bool, silence: str) -> BackendError:
        """Return the error of a call whose end the agent did not announce, with its words.

        ``sure`` says that it had not even begun: its settings or its command line are not to its liking. ``silence``
        is what is missing where the program ended without an error.
        """
        name = self.info.name
        if result.code > 0:
            return failure(name, f"exit code {result.code}: {words}", login=self.login, sure=sure, usage=usage)
        how = f"signal {-result.code}" if result.code else silence
        return RetryableBackendError(f"{name} broke off: {how}: {redact(words)[:LONGEST]}", hint=BY_HAND, usage=usage)

    def _check_said(self, text: str, usage: Usage) -> None:
        if not text.strip():
            raise UnusableAnswerError(f"{self.info.name} ended without an answer", hint=BY_HAND, usage=usage)

    @abstractmethod
    def _key_variable(self, environ: Mapping[str, str]) -> str:
        """Return the variable whose key its model would be asked with; empty where it is another login, or none."""

    @abstractmethod
    def _at(self, url: str) -> Self:
        """Return this agent as it asks at ``url``, each question once, with the key in the variable :data:`TOKEN`."""

    def _writing(self) -> Self:
        """Return this agent with tools that write and run, for a seal keeps them from everything else."""
        return copy(self)

    @abstractmethod
    def _refuse(self, request: Request, environ: Mapping[str, str]) -> None:
        """Refuse what cannot be asked of this agent, or by this user."""

    @abstractmethod
    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        """Furnish the home of a call and return the environment of its process."""

    @abstractmethod
    async def _work(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> Reply:
        """Answer a request in its workspace."""

    async def _login(self, workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        """Return whether the agent can get at its model by itself, and how, or what to do about it."""
        del workspace, environment
        return False, self.login
