"""One question: what the target reads, how it searches the corpus, and what its answer is."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from skillgit.domain.trajectory import Trajectory
from skillgit.plugin.backend import system, user
from skillgit.plugin.splits import OPTIONS
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.tools import SandboxTools, read_arguments
from skillgit_envs.officeqa.pages import oracle, pages_of
from skillgit_envs.officeqa.scoring import final_answer
from skillgit_envs.officeqa.search import NAME, TOOL
from skillgit_envs.packaged import option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.trajectory import Item
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
            conversation = await converse(target, (system(prompt), user(question)), tools, self.max_turns)
        return Trajectory(item_id=item_id, turns=conversation.turns, answer=final_answer(conversation.text))


SCOPES = ("all", "item")

OFFICE_OPTIONS = (
    *OPTIONS,
    option("docs_dir", "", "Folder of the documents, *.txt or *.md; its transformed if any.", path=True),
    option("scope", "all", "Documents that the tools show: all, or those of the item."),
    option("oracle_pages", default=False, text="Give away the pages that the answer stands on (source_docs)."),
    option("use_local_tools", default=True, text="Offer the tools glob, grep and read over documents."),
    option("max_turns", 24, "Replies at most; the last one has to answer."),
    option("scorer", "official", "official (the reward) or skillopt (exact match and F1)."),
    option("tolerance", 0.0, "Relative error of a number that is still right: 0.01 is 1 %; for the official scorer."),
    option("search_url", "", "Search service for a further tool, search; https only."),
    option("search_auth_env", "", "Variable with the token of the search service."),
    option("search_provider", "", "Source that the search service is to ask."),
    option("search_max_num_results", 4, "Results of a search at most."),
    option("search_timeout_seconds", 20.0, "Seconds that a search may take."),
    option("sandbox", "auto", "How tools are isolated: auto, bubblewrap, landlock, none."),
)


def question(item: Item, *, documents: Sequence[str] = (), pages: str = "") -> str:
    """Return the task of ``item``.

    Args:
        documents: The documents that the target may look into, if they are to be named.
        pages: The pages on which the answer stands, if they are given away.
    """
    listing = ("<documents>", *documents, "</documents>") if documents else ()
    sections = ("\n".join(listing), pages, f"<question>\n{item.content['question']}\n</question>")
    return "\n\n".join(section for section in sections if section)


def sources(item: Item) -> tuple[str, ...]:
    """Return the documents that ``item`` names."""
    return tuple(cast("Sequence[str]", item.content["source_files"]))


def oracle_pages(item: Item, corpus: Corpus) -> str:
    """Return the pages on which the answer of ``item`` stands.

    Raises:
        DataError: The item does not tell them, or they are not there.
        EnvironmentFaultError: A document cannot be read.
    """
    where = f"item {item.id}"
    addresses = cast("Sequence[str]", item.content["source_docs"])
    return oracle(where, corpus, pages_of(where, sources(item), addresses))
