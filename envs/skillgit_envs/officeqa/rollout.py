"""What the target does on one question: it looks into documents, searches, and answers."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Trajectory
from skillgit.plugin.backend import system, user
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.tools import SandboxTools, read_arguments
from skillgit_envs.officeqa.scoring import final_answer
from skillgit_envs.officeqa.search import NAME, TOOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.plugin.backend import Tool, ToolCall
    from skillgit.plugin.environment import Target
    from skillgit.sandbox import Sandbox
    from skillgit.sandbox.tools import Name
    from skillgit_envs.officeqa.corpus import Corpus
    from skillgit_envs.officeqa.search import Search

LOOKING: tuple[Name, ...] = ("glob", "grep", "read")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeTools:
    """The tools of one rollout.

    Attributes:
        documents: The tools over documents, if they are on offer.
        search: The search service, if there is one.
    """

    documents: SandboxTools | None = None
    search: Search | None = None

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools on offer."""
        return (*(self.documents.tools if self.documents else ()), *((TOOL,) if self.search else ()))

    async def execute(self, call: ToolCall) -> str:
        """Carry out a call and return what the target reads.

        Raises:
            EnvironmentFaultError: The sandbox or the search service failed.
        """
        if self.documents and call.name in LOOKING:
            return await self.documents.execute(call)
        try:
            query = read_arguments(call, self.tools)["query"]
        except ValueError as error:
            return f"error: {error}"
        return await self.search.ask(query) if self.search and call.name == NAME else "error: there is no such tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the target works with.

    Attributes:
        corpus: The documents.
        sandbox: Where they are looked into; None if the target gets no tools over them.
        search: The search service, if there is one.
        max_turns: Replies at most.
    """

    corpus: Corpus
    sandbox: Sandbox | None
    search: Search | None
    max_turns: int

    async def work(
        self, target: Target, item_id: str, prompt: str, question: str, only: Sequence[str] | None
    ) -> Trajectory:
        """Let the target work on a question.

        Args:
            target: The target model.
            item_id: The item.
            prompt: The system prompt.
            question: The task.
            only: The documents that it may see; None for all.

        Raises:
            BackendError: A call of the target failed for good.
            EnvironmentFaultError: A tool failed.
        """
        async with AsyncExitStack() as stack:
            tools = OfficeTools(search=self.search)
            if self.sandbox:
                folder = self.corpus.folder
                if only is not None:
                    manager = self.corpus.shown(only)
                    folder = await asyncio.to_thread(manager.__enter__)
                    stack.push_async_callback(asyncio.to_thread, manager.__exit__, None, None, None)
                tools = replace(tools, documents=SandboxTools(sandbox=self.sandbox, documents=folder, offered=LOOKING))
            held = await converse(target, (system(prompt), user(question)), tools, self.max_turns)
        return Trajectory(item_id=item_id, turns=held.turns, answer=final_answer(held.text))
