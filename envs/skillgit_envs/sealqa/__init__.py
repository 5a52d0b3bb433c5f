"""SealQA: questions whose evidence is scarce, noisy or in conflict with itself."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, cast

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.plugin.backend import system, user
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, check_storable, text_field
from skillgit.plugin.environment import Judge, PublishedRow, Target
from skillgit.plugin.splits import Splits
from skillgit.sandbox.conversation import Toolbox, converse
from skillgit.sandbox.job import off_the_loop
from skillgit.sandbox.launcher.folder import place
from skillgit.sandbox.tools import TOOLS, Name, SandboxTools
from skillgit_envs.answers import ask_judge, extract, material, quoted, until_answered
from skillgit_envs.questions import Questions
from skillgit_envs.sealqa.search import LONGEST_PAGE, OPEN, Provider, SearchTools, provider_of
from skillgit_envs.search_service import LONGEST_RESULT, search_of
from skillgit_envs.search_service import TOOL as SEARCH
from skillgit_envs.shipped_environment import fields_hint

HAYSTACKS = (12, 20, 30)


def _documents(where: str, fields: Mapping[str, object], column: str) -> list[dict[str, str]]:
    """Return title, date and text of the documents in ``column``; in CSV its cell is JSON."""
    value = fields.get(column) or []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} has {column} that are not JSON", hint="make JSON lines of the table") from error
        check_storable(where, value)
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        raise DataError(f"{where} has no {column}", hint="only longseal has documents: env.subset=longseal")
    documents = [{name: text_field(where, entry, name) for name in ("title", "date", "text")} for entry in value]
    if not all(document["text"] for document in documents):
        raise DataError(f"{where} has a document without text in {column}", hint=fields_hint("sealqa"))
    return documents


LOOKING: tuple[Name, ...] = ("glob", "grep", "read")


class QuestionMode(StrEnum):
    """What the target has besides the question; scores of different modes measure different things."""

    CLOSED = "closed"
    DOCUMENTS = "documents"
    SEARCH = "search"


class AnswerGrade(StrEnum):
    CORRECT = "correct"
    INCORRECT = "incorrect"
    NOT_ATTEMPTED = "not attempted"


_VERDICTS = {
    **dict(zip("ABC", AnswerGrade, strict=True)),
    **{grade.upper().replace(" ", "_"): grade for grade in AnswerGrade},
}
_FIRST_PAIR = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)


def verdict(reply: str) -> AnswerGrade:
    """Read the judge's letter or word; a ValueError for any other reply, also for one that merely contains it.

    >>> verdict('INCORRECT')
    <AnswerGrade.INCORRECT: 'incorrect'>
    """
    word = reply.strip().upper()
    if word not in _VERDICTS:
        raise ValueError("it is none of the letters A, B and C")
    return _VERDICTS[word]


def published(table: Iterable[PublishedRow]) -> Iterator[dict[str, object]]:
    """Yield rows of a data file with all their columns; the data have no ids, so that the question makes one."""
    for row in table:
        yield {**row.fields, "id": short_digest(str(row.get("question")).strip())}


class SealQA(Questions):
    """Questions that need facts, scored by a judge."""

    info = read_card(Path(__file__).parent)
    scorers: ClassVar = {"official": "sealqa-judge/1", "skillopt": "sealqa-skillopt/1"}
    judges = ("official", "skillopt")

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._mode = QuestionMode(self._text("mode"))
        self._documents = int(self._options["documents"]) if self._mode is QuestionMode.DOCUMENTS else 0
        if self._documents not in {0, *HAYSTACKS}:
            raise ConfigError(f"env.documents is {self._documents}", hint=f"it is one of {HAYSTACKS}")
        self._provider: Provider | None = None
        if self._mode is QuestionMode.SEARCH:
            name, most = self._text("search_path"), int(self._options["search_max_num_results"])
            path = root / name if name else None if self._brings_data else self._folder / "data" / "pages"
            self._provider = provider_of(self._text("search"), path, search_of(self._options), most)
        self._in_folder = self._mode is QuestionMode.DOCUMENTS and self._options["documents_in"] == "folder"

    @property
    def _has_tools(self) -> bool:
        return self._in_folder or self._provider is not None

    @property
    def _most_replies(self) -> int:
        return self._turns if self._has_tools else 1

    def target_prompt(self) -> str:
        return self._prompt_file(self._mode)

    @property
    def digest(self) -> str:
        on_offer = [TOOLS[name] for name in LOOKING] if self._in_folder else [SEARCH, OPEN] if self._provider else []
        tools = [[tool.description, tool.parameters] for tool in on_offer]
        finder = [*self._provider.identity, LONGEST_RESULT, LONGEST_PAGE] if self._provider else []
        display = [self._mode, self._documents, self.target_prompt()]
        grading = [self.scorers[self._scorer], self._prompt_file(f"judge_{self._scorer}"), self._options["revision"]]
        return short_digest([self.info.name, *grading, *display, tools, finder, self._most_replies])

    def _load(self) -> Splits:
        """Return the items of all splits; refuse before anything is spent, where tools could not do their work."""
        splits = super()._load()
        if self._in_folder:
            self._sandbox  # noqa: B018 - it says so if there is none
        if self._provider:
            self._provider.check()
        return splits

    def _read(self, files: Sequence[Path]) -> Sequence[Item]:
        """Return the items of data files, or of those named after ``env.subset``."""
        subset = self._text("subset")
        names = {path: {name.lower().replace("-", "_") for name in (path.stem, path.parent.name)} for path in files}
        own = [path for path in files if not subset or subset in names[path]]
        if not own:
            problem = f"none of the data files in {files[0].parent} is named after {subset}"
            raise DataError(problem, hint=f"call one {subset}.jsonl, or leave env.subset empty")
        return super()._read(own)

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        if self._documents:
            content["documents"] = _documents(row.where, row.fields, f"{self._documents}_docs")
        return super().item(row, {**content, "id": short_digest(content["question"])}, folder)

    def secrets(self, item: Item) -> Secrets:
        texts = (document["text"] for document in documents_of(item))
        return Secrets(answers=(str(item.content["answer"]),), inputs=(str(item.content["question"]), *texts))

    def task(self, item: Item) -> str:
        """Return what the target is asked, behind the documents where the prompt holds them."""
        shown = () if self._in_folder else documents_of(item)
        documents = (material({"document": written(document)}) for document in shown)
        return "\n\n".join((*documents, material({"question": item.content["question"]})))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        prompt, task = self._system(skill), self._turn(self.task(item))
        if not self._has_tools:
            trajectory = await until_answered(target, item.id, prompt, task)
            return replace(trajectory, answer=self._answer(trajectory.turns[-1].content))
        async with self._toolbox(item) as toolbox:
            conversation = await converse(target, (system(prompt), user(task)), toolbox, self._turns)
        return Trajectory(item_id=item.id, turns=conversation.turns, answer=self._answer(conversation.text))

    @asynccontextmanager
    async def _toolbox(self, item: Item) -> AsyncIterator[Toolbox]:
        if self._provider:
            yield SearchTools(provider=self._provider)
            return
        async with off_the_loop(laid_out(documents_of(item))) as folder:
            yield SandboxTools(sandbox=self._sandbox, documents=folder, names=LOOKING)

    def _answer(self, reply: str) -> str:
        """Return the answer in a reply; the reference takes the first pair of tags, and nothing where there is none."""
        if self._scorer == "official":
            return extract(reply)
        match = _FIRST_PAIR.search(reply)
        return match[1].strip() if match else ""

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        answer, gold = trajectory.answer.strip(), str(item.content["answer"])
        grade = AnswerGrade.NOT_ATTEMPTED
        if answer:
            texts = {"question": item.content["question"], "right-answer": gold, "given-answer": answer}
            instructions = self._prompt_file(f"judge_{self._scorer}")
            read = verdict if self._scorer == "official" else reference_verdict
            grade = await ask_judge(judge, instructions, material(texts), read, form="A, B or C")
        is_right = float(grade is AnswerGrade.CORRECT)
        # The reference distinguishes right from wrong and no more.
        grades = AnswerGrade if self._scorer == "official" else ()
        parts = tuple((each.value, float(each is grade)) for each in grades)
        sentence = quoted(gold) if is_right else f"expected {quoted(gold)}; the answer is {quoted(answer)}"
        return Scored(hard=is_right, soft=is_right, parts=parts), f"{grade}: {sentence}"


def reference_verdict(reply: str) -> AnswerGrade:
    """Read a reply as the reference does: what begins with an A is right, everything else is wrong."""
    return AnswerGrade.CORRECT if reply.strip().upper().startswith("A") else AnswerGrade.INCORRECT


def documents_of(item: Item) -> Sequence[Mapping[str, str]]:
    return cast("Sequence[Mapping[str, str]]", item.content.get("documents", ()))


def written(document: Mapping[str, str]) -> str:
    """Return a document as the target reads it; its address is left out, for it may be that of a gold page."""
    head = "\n".join(filter(None, (document["title"], document["date"])))
    return "\n\n".join(filter(None, (head, document["text"])))


@contextmanager
def laid_out(documents: Sequence[Mapping[str, str]]) -> Iterator[Path]:
    """Make a folder with a file for each of ``documents``, for as long as it is looked into."""
    with TemporaryDirectory(prefix="skillgit-documents-") as scratch:
        folder = Path(scratch).resolve()
        folder.chmod(0o755)  # who looks into it is another user
        try:
            place(
                folder, {f"{n:02}.txt": written(text).encode() for n, text in enumerate(documents, start=1)}, {}, None
            )
        except OSError as error:
            problem = f"the documents cannot be written: {error.strerror}"
            raise EnvironmentFaultError(problem, hint="check the disk") from error
        yield folder
