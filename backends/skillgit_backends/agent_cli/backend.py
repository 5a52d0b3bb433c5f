"""Owns what backends share that start an agent's program for each call: its workspace, and a look at the program."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.plugin.backend import Probe
from skillgit_backends.agent_cli.probe import version
from skillgit_backends.agent_cli.workspace import fresh_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import BackendInfo, Reply, Request
    from skillgit_backends.agent_cli.workspace import CallWorkspace


class AgentBackend(ABC):
    """Lets an agent's program work on each request in a workspace of its own.

    A subclass has ``info``, which is what it says before it has read its settings.
    """

    info: BackendInfo

    def __init__(self, path: str, timeout_s: float) -> None:
        self._path = path
        self.info = replace(type(self).info, timeout_s=timeout_s)

    async def complete(self, request: Request) -> Reply:
        """Answer ``request``.

        Raises:
            RetryableBackendError: The call may succeed if it is repeated.
            FatalBackendError: It will not: the agent is not installed, not logged in, or may not run like this, or the
                request is refused.
        """
        self._refuse(request)
        with fresh_workspace() as workspace:
            return await self._work(request, workspace, self._prepare(os.environ, workspace))

    async def probe(self) -> Probe:
        """Return the program's version and whether it is logged in, without asking its model anything.

        Raises:
            BackendError: It cannot be started, or does not end.
        """
        with fresh_workspace() as workspace:
            environment = self._prepare(os.environ, workspace)
            number = await version(self._path, workspace, environment)
            ready, detail = await self._login(workspace, environment)
            return Probe(place=self._path, version=number, ready=ready, detail=detail)

    async def aclose(self) -> None:  # noqa: B027 - there is nothing to release
        """Do nothing: every process ended with its call."""

    @abstractmethod
    def _refuse(self, request: Request) -> None:
        """Refuse what cannot be asked of this agent, or by this user."""

    @abstractmethod
    def _prepare(self, environ: Mapping[str, str], workspace: CallWorkspace) -> dict[str, str]:
        """Furnish the home of a call and return the environment of its process."""

    @abstractmethod
    async def _work(self, request: Request, workspace: CallWorkspace, environment: dict[str, str]) -> Reply:
        """Answer a request in its workspace."""

    @abstractmethod
    async def _login(self, workspace: CallWorkspace, environment: Mapping[str, str]) -> tuple[bool, str]:
        """Return whether the agent can get at its model, and how, or what to do about it."""
