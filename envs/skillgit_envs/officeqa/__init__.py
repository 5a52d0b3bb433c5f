"""OfficeQA: answer a question from a collection of official reports."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.backend import Tool, ToolCall, system, user
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, check_storable
from skillgit.plugin.environment import Judge, Target
from skillgit.plugin.splits import Splits
from skillgit.sandbox import Mode, Sandbox
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.job import off_the_loop
from skillgit.sandbox.tools import TOOLS, Name, SandboxTools, read_arguments
from skillgit_envs.officeqa.corpus import ALL_CHARACTERS, PAGE_CHARACTERS, Corpus, oracle, pages_of
from skillgit_envs.officeqa.scoring import SCORERS, feedback, final_answer, score
from skillgit_envs.questions import Questions
from skillgit_envs.search_service import LONGEST_RESULT, NAME, TOOL, SearchService, search_of
from skillgit_envs.shipped_environment import PromptWording, fields_hint, require, sections

_BETWEEN_FILES = re.compile(r"[\r\n,;]+")
_BETWEEN_ADDRESSES = re.compile(r"\s+|[,;](?=\s*https?:)")


def _first(fields: Mapping[str, object], *names: str) -> str:
    """Return the first of the fields ``names`` that is not empty; a list as it is written."""
    values = (fields.get(name) for name in names)
    cells = (value for value in values if value is not None)
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in cells)
    return next((text.strip() for text in texts if text.strip()), "")


def _several(where: str, fields: Mapping[str, object], name: str, between: re.Pattern[str]) -> list[str]:
    value = fields.get(name) or []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            listing = json.loads(value)
        except ValueError as error:
            problem = f"{where} has {name} that are not a list: {value[:60]}"
            raise DataError(problem, hint='write ["one", "two"]') from error
        check_storable(where, listing)
        value = listing
    elif isinstance(value, str):
        value = between.split(value)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f"{where} has {name} that are not texts", hint=fields_hint("officeqa"))
    return [text.strip() for text in value if text.strip()]


LOOKING: tuple[Name, ...] = ("glob", "grep", "read")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeTools:
    documents: SandboxTools | None = None
    search: SearchService | None = None

    @property
    def tools(self) -> Sequence[Tool]:
        return (*(self.documents.tools if self.documents else ()), *((TOOL,) if self.search else ()))

    async def execute(self, call: ToolCall) -> str:
        if self.documents and call.name in LOOKING:
            return await self.documents.execute(call)
        try:
            query = read_arguments(call, self.tools)["query"]
        except ValueError as error:
            return f"error: {error}"
        return await self.search.ask(query) if self.search and call.name == NAME else "error: there is no such tool"


def question(
    item: Item, *, documents: Sequence[str] = (), pages: str = "", wording: PromptWording = PromptWording.OWN
) -> str:
    """Return the task of ``item``, with the names of documents and the pages that hold the answer, if shown."""
    if wording is PromptWording.REFERENCE:
        return sections(documents="\n".join(documents), pages=pages, question=str(item.content["question"]))
    listing = ("<documents>", *documents, "</documents>") if documents else ()
    parts = ("\n".join(listing), pages, f"<question>\n{item.content['question']}\n</question>")
    return "\n\n".join(part for part in parts if part)


_EXAMPLE = Item(id="example", content={"question": "question"})
"""An item whose prompt identifies how prompts are written."""


def sources(item: Item) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", item.content["source_files"]))


def oracle_pages(item: Item, corpus: Corpus) -> str:
    where = f"item {item.id}"
    addresses = cast("Sequence[str]", item.content["source_docs"])
    return oracle(where, corpus, pages_of(where, sources(item), addresses))


class OfficeQA(Questions):
    """Questions about figures in reports, which the target looks into with tools."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._scorer, self._tolerance = self._text("scorer"), float(self._options["tolerance"])
        if not 0 <= self._tolerance < 1:
            problem = f"env.tolerance is {self._tolerance}; it must be at least 0 and below 1"
            raise ConfigError(problem, hint="0.05 is 5 %")
        self._own, self._oracle = self._options["scope"] == "item", bool(self._options["oracle_pages"])
        documents = self._text("docs_dir")
        if not documents and self._brings_data:
            raise ConfigError("env.docs_dir is not set", hint="it names the folder of the documents of your data")
        self._corpus = Corpus(root / documents if documents else self._folder / "data" / "bulletins")
        self._search = search_of(self._options)

    @property
    def digest(self) -> str:
        looking = [[TOOLS[name].description, TOOLS[name].parameters] for name in LOOKING]
        tools = looking if self._options["use_local_tools"] else []
        search = [self._search.url, self._search.provider, self._search.most, LONGEST_RESULT] if self._search else []
        pages = [PAGE_CHARACTERS, ALL_CHARACTERS] if self._oracle else []
        tolerance = self._tolerance if self._scorer == "official" else 0.0
        parts = [self.target_prompt(), self._own, pages, tools, search, self._turns]
        parts += [] if self._wording is PromptWording.OWN else [question(_EXAMPLE, wording=self._wording)]
        return short_digest([self.info.name, SCORERS[self._scorer], tolerance, *parts])

    def _load(self) -> Splits:
        """Return the items of all splits; refuse before anything is spent, where tools could not do their work."""
        splits, sandbox = super()._load(), self._desk_sandbox
        if sandbox and sandbox.kind is not Mode.NONE and not self._own and os.geteuid() == 0:
            self._corpus.refuse_closed()
        if self._search:
            self._search.token  # noqa: B018 - it says so if there is none
        return splits

    def _read(self, files: Sequence[Path]) -> Sequence[Item]:
        self._corpus.refuse_keys(files)
        return super()._read(files)

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        content["answer"] = _first(row.fields, "answer", "ground_truth")
        require(row.where, "officeqa", {"answer": content["answer"]})
        names = _several(row.where, row.fields, "source_files", _BETWEEN_FILES)
        content["source_files"] = list(dict.fromkeys(self._corpus.find(row.where, name) for name in names))
        content["source_docs"] = _several(row.where, row.fields, "source_docs", _BETWEEN_ADDRESSES)
        content["documents"] = self._corpus.digest(content["source_files"])
        if (item := super().item(row, content, folder)) is not None:
            if self._own and not sources(item):
                raise DataError(f"item {item.id} has no source_files", hint="env.scope: item shows only these")
            if self._oracle:
                oracle_pages(item, self._corpus)
        return item

    @property
    def _desk_sandbox(self) -> Sandbox | None:
        return self._sandbox if self._options["use_local_tools"] else None

    def answer_choices(self, item: Item) -> Mapping[str, str]:
        del item
        return {}

    def secrets(self, item: Item) -> Secrets:
        return Secrets(answers=(str(item.content["answer"]),), inputs=(str(item.content["question"]),))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        only = sources(item) if self._own else None
        pages = oracle_pages(item, self._corpus) if self._oracle else ""
        task = question(item, documents=only or (), pages=pages, wording=self._wording)
        messages, tools = (system(self._system(skill)), user(self._turn(task))), OfficeTools(search=self._search)
        async with AsyncExitStack() as stack:
            if sandbox := self._desk_sandbox:
                folder = self._corpus.folder
                if only is not None:
                    folder = await stack.enter_async_context(off_the_loop(self._corpus.shown(only)))
                tools = replace(tools, documents=SandboxTools(sandbox=sandbox, documents=folder, names=LOOKING))
            conversation = await converse(target, messages, tools, self._turns)
        answer = final_answer(conversation.text, self._scorer)
        return Trajectory(item_id=item.id, turns=conversation.turns, answer=answer)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        arguments = (trajectory.answer, str(item.content["answer"]), self._scorer, self._tolerance)
        return score(*arguments), feedback(*arguments)
