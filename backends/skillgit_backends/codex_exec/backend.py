"""Owns one call of Codex, from the request to the reply or to the error that it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillgit.errors import FatalBackendError, RetryableBackendError, UnusableAnswerError
from skillgit.files import read_plain
from skillgit.plugin.backend import BackendInfo, Reply
from skillgit.plugin.redaction import redact
from skillgit_backends.agent_cli.backend import AgentBackend
from skillgit_backends.agent_cli.child_environment import without_secrets
from skillgit_backends.agent_cli.events import EventLines
from skillgit_backends.agent_cli.faults import failure
from skillgit_backends.agent_cli.process import Limits, run
from skillgit_backends.agent_cli.prompting import assignment
from skillgit_backends.agent_cli.reckoning import estimate
from skillgit_backends.agent_cli.tooling import offer, read_answer
from skillgit_backends.codex_exec import login
from skillgit_backends.codex_exec.command import SKILLS, command, last_message, prompt
from skillgit_backends.codex_exec.probing import tell_login
from skillgit_backends.codex_exec.protocol import Turn
from skillgit_backends.codex_exec.settings import DEFAULT_TIMEOUT_S, NAME, read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Request
    from skillgit_backends.agent_cli.process import Ended
    from skillgit_backends.agent_cli.workspace import Workspace


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
        if request.temperature is not None:
            raise FatalBackendError("codex takes no temperature", hint="set calls.temperature to null")
        if login.is_missing(self._settings, os.environ):
            raise FatalBackendError(f"{NAME} is not logged in", hint=login.HOW)

    def _prepare(self, environ: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
        return login.prepare(self._settings, environ, workspace)

    async def _login(self, workspace: Workspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        return await tell_login(self._settings, os.environ, workspace, environment)

    async def _work(self, request: Request, workspace: Workspace, environment: dict[str, str]) -> Reply:
        given = assignment(request)
        workspace.place_skills(SKILLS, given.skills)
        pictures = workspace.place_pictures(given.pictures)
        turn = Turn()
        lines = EventLines(give=turn.hear)
        ended = await run(
            command(self._settings, request, workspace, pictures, environment),
            given=prompt(given, offer(request.tools)),
            folder=workspace.work,
            root=workspace.root,
            environment=environment,
            limits=Limits(timeout_s=self._settings.timeout_s),
            take=lines.take,
        )
        if ended.code or turn.failure or not turn.completed:
            raise self._failure(ended, turn, lines.noise, environment)
        return _reply(request, turn, _read(workspace) or turn.message)

    def _failure(self, ended: Ended, turn: Turn, noise: str, environment: Mapping[str, str]) -> Exception:
        secrets = (login.KEY, self._settings.api_key_env, *self._settings.pass_env)
        said = without_secrets(turn.failure or ended.errors or noise, environment, secrets)
        if turn.failure:
            return failure(NAME, said, login=login.HOW, used=turn.usage)
        if ended.code > 0:
            # It did not even tell that its turn failed: its settings or its command line are not to its liking.
            return failure(
                NAME, f"exit code {ended.code}: {said}", login=login.HOW, sure=not turn.thread, used=turn.usage
            )
        how = f"signal {-ended.code}" if ended.code else "its turn did not complete"
        return RetryableBackendError(
            f"{NAME} broke off: {how}: {redact(said)[:500]}",
            hint="run the agent by hand to see more",
            usage=turn.usage,
        )


def _read(workspace: Workspace) -> str:
    try:
        return read_plain(last_message(workspace)).decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:  # whatever the agent started could write there too
        raise UnusableAnswerError(
            f"{NAME}: the agent's last message cannot be read: {error.strerror}",
            hint="run the agent by hand to see more",
        ) from None


def _reply(request: Request, turn: Turn, text: str) -> Reply:
    usage = turn.usage or estimate(NAME, request, text)
    if not text.strip():
        raise UnusableAnswerError(
            f"{NAME} ended without an answer", hint="run the agent by hand to see more", usage=usage
        )
    return read_answer(text, usage) if request.tools else Reply(text=text, usage=usage)
