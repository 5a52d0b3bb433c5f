"""OfficeQA: answer a question from a collection of official reports."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, SourceKind
from skillgit.sandbox import Mode
from skillgit.sandbox.tools import TOOLS
from skillgit_envs.officeqa.corpus import Corpus
from skillgit_envs.officeqa.items import read_items
from skillgit_envs.officeqa.pages import ALL_CHARACTERS, PAGE_CHARACTERS
from skillgit_envs.officeqa.rollout import LOOKING, OFFICE_OPTIONS, SCOPES, Desk, oracle_pages, question, sources
from skillgit_envs.officeqa.scoring import SCORERS, feedback, score
from skillgit_envs.officeqa.search import LONGEST_RESULT, Search
from skillgit_envs.packaged import PackagedEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.evaluation import Scored
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.environment import Judge, Target
    from skillgit.plugin.splits import Splits
    from skillgit.sandbox import Sandbox


class OfficeQA(PackagedEnvironment):
    """Questions about figures in reports, which the target looks into with tools."""

    info = EnvironmentInfo(
        name="officeqa",
        summary="Answer a question from a collection of official reports, with tools to look into them.",
        fields={
            "question": "what is asked",
            "answer": "the accepted answer: a number, a list of numbers, a text or a text with numbers",
            "source_files": "the documents on which the answer rests",
            "source_docs": "addresses of these documents with the page, as ?page=15",
            "documents": "digest of the documents",
        },
        scorer="official: hard = soft = the reward of OfficeQA; skillopt: hard = exact match, soft = token F1",
        source="bulletins and questions written for skillgit; OfficeQA is read from env.data_path and env.docs_dir",
        options=OFFICE_OPTIONS,
        task_types=("easy", "hard"),
        licence="bulletins and questions that come with it: MIT, as skillgit; the questions of OfficeQA: CC BY-SA 4.0",
        public=PublicSource(
            kind=SourceKind.MANUAL,
            place="https://huggingface.co/datasets/databricks/officeqa",
            layout=(
                "ask its authors for access; name the CSV file of the questions with env.data_path and the folder of"
                " the documents as text, best the one with page marks, with env.docs_dir; keep the one out of the other"
            ),
        ),
    )

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._refuse_unknown(scope=SCOPES, scorer=SCORERS, sandbox=tuple(Mode))
        self._turns = self._replies()
        self._scorer, self._tolerance = str(self._options["scorer"]), float(self._options["tolerance"])
        if not 0 <= self._tolerance < 1:
            raise ConfigError(
                f"env.tolerance is {self._tolerance}; it must be at least 0 and below 1", hint="0.05 is 5 %"
            )
        self._own, self._oracle = self._options["scope"] == "item", bool(self._options["oracle_pages"])
        documents = str(self._options["docs_dir"])
        if not documents and self._brings_data:
            raise ConfigError("env.docs_dir is not set", hint="it names the folder of the documents of your data")
        self._corpus = Corpus(root / documents if documents else self._folder / "data" / "bulletins")
        self._search = self._made_search()

    def _made_search(self) -> Search | None:
        if not self._options["search_url"]:
            return None
        return Search(
            url=str(self._options["search_url"]),
            token_variable=str(self._options["search_auth_env"]),
            provider=str(self._options["search_provider"]),
            most=int(self._options["search_max_num_results"]),
            seconds=float(self._options["search_timeout_seconds"]),
        )

    @property
    def digest(self) -> str:
        """Identify prompts, tools, what is given away, and the scorer."""
        looking = [[TOOLS[name].description, TOOLS[name].parameters] for name in LOOKING]
        tools = looking if self._options["use_local_tools"] else []
        search = [self._search.url, self._search.provider, self._search.most, LONGEST_RESULT] if self._search else []
        pages = [PAGE_CHARACTERS, ALL_CHARACTERS] if self._oracle else []
        tolerance = self._tolerance if self._scorer == "official" else 0.0
        parts = [self._prompt_file("system"), self._own, pages, tools, search, self._turns]
        return short_digest([self.info.name, SCORERS[self._scorer], tolerance, *parts])

    def _load(self) -> Splits:
        """Return the items of all splits.

        Raises:
            ConfigError: The token of the search service is not set, or the tools could not read the documents.
            SandboxError: This machine cannot isolate the tools as it was asked to.
        """
        splits = self._load_with(self._read)
        self._check_machine()
        return splits

    def _check_machine(self) -> None:
        """Refuse before anything is spent, where tools could not do their work."""
        sandbox = self._desk_sandbox
        if sandbox and sandbox.kind is not Mode.NONE and not self._own and os.geteuid() == 0:
            self._corpus.refuse_closed()
        if self._search:
            self._search.token  # noqa: B018 - it says so if there is none

    def _read(self, files: Sequence[Path]) -> list[Item]:
        items = read_items(files, corpus=self._corpus)
        for item in items:
            if self._own and not sources(item):
                raise DataError(f"item {item.id} has no source_files", hint="env.scope: item shows only these")
            if self._oracle:
                oracle_pages(item, self._corpus)
        return items

    @property
    def _desk_sandbox(self) -> Sandbox | None:
        return self._sandbox if self._options["use_local_tools"] else None

    def secrets(self, item: Item) -> Secrets:
        """Return the accepted answer and the question."""
        return Secrets(answers=(str(item.content["answer"]),), inputs=(str(item.content["question"]),))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Let the target look into the documents, and answer."""
        only = sources(item) if self._own else None
        task = question(item, documents=only or (), pages=oracle_pages(item, self._corpus) if self._oracle else "")
        desk = Desk(corpus=self._corpus, sandbox=self._desk_sandbox, search=self._search, max_turns=self._turns)
        return await desk.work(target, item.id, self._system(skill), task, only)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Score the answer and say what was expected."""
        del judge
        arguments = (trajectory.answer, str(item.content["answer"]), self._scorer, self._tolerance)
        return score(*arguments), feedback(*arguments)
