"""Owns one call of Claude Code, from the request to the reply or to the error that it is."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from skillgit.errors import FatalBackendError, RefusalError, RetryableBackendError, UnusableAnswerError
from skillgit.plugin.backend import BackendInfo, Reply
from skillgit.plugin.redaction import redact
from skillgit_backends.agent_cli.backend import AgentBackend
from skillgit_backends.agent_cli.child_environment import without_secrets
from skillgit_backends.agent_cli.events import EventLines, number_at, text_at
from skillgit_backends.agent_cli.faults import failure
from skillgit_backends.agent_cli.process import Limits, run
from skillgit_backends.agent_cli.prompting import assignment
from skillgit_backends.agent_cli.reckoning import estimate
from skillgit_backends.agent_cli.tooling import offer, read_answer
from skillgit_backends.claude_code_exec import login
from skillgit_backends.claude_code_exec.command import SKILLS, command, instructions, prompt
from skillgit_backends.claude_code_exec.probing import tell_login
from skillgit_backends.claude_code_exec.protocol import Session
from skillgit_backends.claude_code_exec.settings import DEFAULT_TIMEOUT_S, NAME, read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Request
    from skillgit_backends.agent_cli.process import Ended
    from skillgit_backends.agent_cli.workspace import Workspace

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
        if request.temperature is not None:
            raise FatalBackendError("Claude Code takes no temperature", hint="set calls.temperature to null")
        if os.geteuid() == 0 and not self._settings.allow_root:
            raise FatalBackendError(
                f"{NAME} does not run as root",
                hint=f"run skillgit as another user, or set model.{NAME}_allow_root to true in a container",
            )

    def _prepare(self, environ: Mapping[str, str], workspace: Workspace) -> dict[str, str]:
        return login.prepare(self._settings, environ, workspace)

    async def _login(self, workspace: Workspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        return await tell_login(self._settings, workspace, environment)

    async def _work(self, request: Request, workspace: Workspace, environment: dict[str, str]) -> Reply:
        given = assignment(request)
        environment[_OUTPUT_TOKENS] = str(request.max_output_tokens)
        workspace.place_skills(SKILLS, given.skills)
        pictures = workspace.place_pictures(given.pictures)
        session = Session()
        lines = EventLines(give=session.hear)
        added = instructions(given, pictures, offer(request.tools))
        ended = await run(
            command(self._settings, request, workspace, added),
            given=prompt(given),
            folder=workspace.work,
            root=workspace.root,
            environment=environment,
            limits=Limits(timeout_s=self._settings.timeout_s),
            take=lines.take,
        )
        if ended.code or session.is_failed or not session.result:
            raise self._failure(ended, session, lines.noise, environment)
        return _reply(request, session)

    def _failure(self, ended: Ended, session: Session, noise: str, environment: Mapping[str, str]) -> Exception:
        secrets = (login.KEY, *login.TOKENS, *self._settings.pass_env)
        told = session.text or text_at(session.result, "subtype") if session.is_failed else ""
        # In some modes it tells on standard output, and as if it were its answer, that nobody is logged in.
        said = without_secrets(f"{session.trouble} {told or ended.errors or noise}", environment, secrets)
        if session.is_failed:
            status = number_at(session.result, "api_error_status")
            return failure(NAME, said, status=status, login=login.HOW, used=session.usage)
        if ended.code > 0:
            return failure(
                NAME, f"exit code {ended.code}: {said}", login=login.HOW, sure=not session.result, used=session.usage
            )
        how = f"signal {-ended.code}" if ended.code else "it gave no result"
        return RetryableBackendError(
            f"{NAME} broke off: {how}: {redact(said)[:500]}",
            hint="run the agent by hand to see more",
            usage=session.usage,
        )


def _reply(request: Request, session: Session) -> Reply:
    structured = session.result.get("structured_output")
    text = json.dumps(structured, ensure_ascii=False) if request.tools and structured else session.text
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
