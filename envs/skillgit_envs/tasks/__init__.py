"""Tasks: items, checks and files of one's own, without code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.backend import Message, Text, system
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import raise_all
from skillgit.plugin.environment import CallBounds, Judge, JudgedPart, Target
from skillgit.plugin.groups import related
from skillgit.plugin.seed_folder import write_files
from skillgit.plugin.splits import Splits, check, data_files, near_duplicates
from skillgit.sandbox import Limits
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.tools import DOCUMENTS, NAMES, SandboxTools
from skillgit_envs.shipped_environment import PackagedEnvironment, in_turns, prompt_file, with_skill
from skillgit_envs.tasks.checks.catalogue import EXTRACTORS, KINDS, graded, part_names, scorers
from skillgit_envs.tasks.checks.comparisons import Fields, Sheet
from skillgit_envs.tasks.checks.graders import graded_by
from skillgit_envs.tasks.reading import PROGRAMS, Reader

if TYPE_CHECKING:
    from skillgit_envs.tasks.attachments import Attachments, Listed

FORMS: Mapping[str, str] = {
    "whole": "Your whole reply is taken as the result.",
    "tag": "Give the final answer between <answer> and </answer>.",
    "last_line": "Give the final answer on the last line of your reply.",
    "json": "Give the final answer as JSON in a block of code at the end of your reply.",
    "code": "Give the final answer in a block of code at the end of your reply.",
}
"""How a result is taken out of a reply, to what the prompt says of it."""
LOOK = "Use the tools to look into these files: {}"
RUN = "Python finds them in the folder {}. Files that you write beside it are handed in with your result."


def messages(item: Item, skill: Skill, attachments: Attachments, tools: str) -> tuple[Message, ...]:
    prompt, turn = in_turns(prompt_file(__package__, "system"))
    pictures = [attachments.picture(entry) for entry in listed(item, "images")]
    texts = [*_about_files(item, attachments, tools), str(item.content["prompt"])]
    request = turn.replace("{form}", FORMS[str(item.content["extract"])]).replace("{question}", "\n\n".join(texts))
    question = Message(role="user", parts=(Text(text=request), *pictures))
    return system(with_skill(prompt, skill)), question


def listed(item: Item, name: str) -> Listed:
    return cast("Listed", item.content[name])


def _about_files(item: Item, attachments: Attachments, tools: str) -> list[str]:
    files = listed(item, "files")
    if tools == "none":
        return [f'<file name="{entry["name"]}">\n{attachments.read(entry).decode()}\n</file>' for entry in files]
    look = LOOK.format(", ".join(entry["name"] for entry in files)) if files else ""
    return list(filter(None, (look, RUN.format(DOCUMENTS) if tools == "python" else "")))


def check_readable(items: Sequence[Item], attachments: Attachments) -> None:
    for item in items:
        for entry in listed(item, "files"):
            try:
                attachments.read(entry).decode()
            except UnicodeDecodeError as error:
                problem = f"item {item.id}: {entry['name']} is not text, so that the target cannot read it"
                raise DataError(problem, hint="list pictures under 'images', or set env.tools to python") from error


TOOLS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "read": tuple(name for name in NAMES if name != "python"),
    "python": NAMES,
}
"""What ``env.tools`` says, to the tools on offer."""


class NoTools:
    tools = ()

    async def execute(self, call: object) -> str:
        del call
        return "error: there are no tools"


@asynccontextmanager
async def _laid_out(item: Item, attachments: Attachments) -> AsyncIterator[Path | None]:
    """Put the files of an item into a folder of their own; None if it has none."""
    files = listed(item, "files")
    if not files:
        yield None
        return
    with TemporaryDirectory(prefix="skillgit-task-") as name:
        folder = Path(name) / "files"
        yield await asyncio.to_thread(_write, folder, {entry["name"]: attachments.read(entry) for entry in files})


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write ``files`` into the new folder ``folder`` and return its real path."""
    write_files(folder, files)
    # The user that jobs run as has to be able to look.
    for path in (folder.parent, folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder.resolve()


def _answers(check: Fields) -> Iterator[str]:
    if check["type"] == "choice":
        yield from (check["choices"][label] for label in check["answers"])
        return
    yield from check.get("answers", ())
    yield from (value if isinstance(value, str) else json.dumps(value) for value in check.get("fields", {}).values())
    if "against" in check:
        yield check["against"]


def _criteria(check: Fields) -> Iterator[str]:
    yield from check.get("criteria", ())
    yield from (check[name] for name in ("pattern", "function") if name in check)
    if "command" in check:
        yield " ".join(check["command"])


def _texts(entries: Sequence[Any], attachments: Attachments) -> Iterator[str]:
    for entry in entries:
        try:
            yield attachments.read(entry).decode()
        except UnicodeDecodeError:
            continue


class Tasks(PackagedEnvironment):
    """Tasks from a file, scored by the checks that each of them names."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._tools, self._turns = self._text("tools"), int(self._options["max_turns"])
        if self._text("extract") not in {"", *EXTRACTORS}:
            raise ConfigError(f"env.extract is '{self._options['extract']}'", hint=f"known are {', '.join(EXTRACTORS)}")
        for name in ("max_turns", "check_timeout", "tool_timeout"):
            if float(self._options[name]) <= 0:
                raise ConfigError(f"env.{name} is {self._options[name]}; it must be positive", hint="leave it out")
        self._reader = self._new_reader()

    def _new_reader(self, *, drafts: bool = False) -> Reader:
        field, scorer, extract = (str(self._options[name]) for name in ("prompt_field", "scorer", "extract"))
        return Reader(prompt_field=field, scorer=scorer, extract=extract, drafts=drafts)

    @property
    def digest(self) -> str:
        texts = [self._prompt_file("system"), *sorted(FORMS.values()), LOOK, RUN]
        working = [self._tools, self._turns, self._options["tool_timeout"]] if self._tools != "none" else []
        return short_digest([self.info.name, *scorers(), *texts, *working, self._options["check_timeout"]])

    @property
    def asks_judge(self) -> bool:
        return any(check["type"] == "judge" for split in Split for item in self.items(split) for check in _checks(item))

    def _load(self) -> Splits:
        """Return the items of all splits; without a sandbox there are none that need one."""
        splits = self._by_column() or super()._load()
        if self._is_divided:
            raise_all([*near_duplicates(splits, self._question)])
        every = [item for items in splits.values() for item in items]
        if self._tools == "none":
            check_readable(every, self._reader.attachments)
        if self._tools != "none" or any(check["type"] in PROGRAMS for item in every for check in _checks(item)):
            _ = self._sandbox
        return splits

    def _by_column(self) -> Splits:
        """Return the items divided by their rows' ``split``, at any ratio; nothing if no row has one."""
        whole, limit = self._text("data_path"), int(self._options["limit"])
        if not whole or self._options["split_mode"] != "ratio" or limit < 0:
            return {}
        items, assignment = self._read(data_files(self._root / whole)), self._reader.splits
        without = next((item.id for item in items if item.id not in assignment), "")
        if not assignment:
            return {}
        if without:
            raise DataError(f"item {without} has no split, though others have", hint="give every row a split, or none")
        parts = {split: tuple(item for item in items if assignment[item.id] is split) for split in Split}
        return {split: part[: limit or None] for split, part in check(parts).items()}

    @property
    def _is_divided(self) -> bool:
        """Whether the data say which split a task is in."""
        mode = self._options["split_mode"]
        return mode == "split_dir" or (mode == "ratio" and bool(self._reader.splits))

    def _question(self, item: Item) -> str:
        """Return what is asked without its context, which many tasks of one origin have in common."""
        return self._reader.questions[item.id]

    def _read(self, files: Sequence[Path]) -> list[Item]:
        items = self._reader.read(files)
        return items if self._is_divided else related(items, self._question)

    def task(self, where: str, row: Mapping[str, object], path: Path) -> Item:
        """Return the item that a row of a task file stands for, be it a draft or not: what commands on files need."""
        return self._new_reader(drafts=True).item(where, row, path)

    def description(self) -> tuple[str, str]:
        """Return that each task says what it wants, and what the checks of the items look for."""
        kinds = dict.fromkeys(check["type"] for item in self._every for check in _checks(item))
        looks = " ".join(f"{kind}: {KINDS[kind].help}" for kind in kinds)
        return (
            "Each task says what is wanted; the skill says how it is done.",
            f"A task is solved if its result passes. {looks}",
        )

    def target_prompt(self) -> str:
        """Return the prompt, ``{skill}`` and ``{question}`` in their places, with the forms of results that occur."""
        forms = dict.fromkeys(FORMS[str(item.content["extract"])] for item in self._every)
        return super().target_prompt().replace("{form}", " Or: ".join(forms))

    @property
    def _every(self) -> Iterator[Item]:
        return (item for split in Split for item in self.items(split))

    def answer_choices(self, item: Item) -> Mapping[str, str] | None:
        """Return the choices of a task; None if a program or a model checks it."""
        checks = _checks(item)
        if any(check["type"] in {*PROGRAMS, "judge"} for check in checks):
            return None
        return next((check["choices"] for check in checks if check["type"] == "choice"), {})

    def secrets(self, item: Item) -> Secrets:
        attachments, checks, prompt = self._reader.attachments, _checks(item), str(item.content["prompt"])
        sources = [entry for check in checks if check["type"] in PROGRAMS for entry in check["files"]]
        return Secrets(
            answers=tuple(answer for check in checks for answer in _answers(check)),
            inputs=tuple(dict.fromkeys((self._question(item), prompt, *_texts(listed(item, "files"), attachments)))),
            checks=(*(text for check in checks for text in _criteria(check)), *_texts(sources, attachments)),
        )

    def call_bounds(self, item: Item) -> CallBounds:
        """Return how many calls a task takes: the judge is asked by some checks only, and once more if need be."""
        # One that compares asks twice, with the places swapped.
        questions = sum(1 + ("against" in check) for check in _checks(item) if check["type"] == "judge")
        return CallBounds(target=(1, self._most_replies), judge=(questions, questions), repairs=questions)

    @property
    def leaves_files(self) -> bool:
        """Whether rollouts may make files: only Python does."""
        return "python" in TOOLS[self._tools]

    def judged_parts(self, item: Item) -> list[JudgedPart]:
        """Return what judges decide: each criterion, and of a comparison each of its two orders."""
        checks = _checks(item)
        groups = part_names(checks)
        is_single = sum(map(len, groups)) == 1
        return [
            JudgedPart(name="" if is_single else name, criterion=criterion, position=order)
            for check, names in zip(checks, groups, strict=True)
            if check["type"] == "judge"
            for name, (criterion, order) in zip(names, graded_by(check), strict=True)
        ]

    @property
    def _most_replies(self) -> int:
        return 1 if self._tools == "none" else self._turns

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Ask once, or let the target work with tools over the item's files; what Python writes are the products."""
        attachments, products = self._reader.attachments, dict[str, bytes]()
        request = messages(item, skill, attachments, self._tools)
        if self._tools == "none":
            conversation = await converse(target, request, NoTools(), 1)
        else:
            async with _laid_out(item, attachments) as folder:
                limits, names = self._limits("tool_timeout"), TOOLS[self._tools]
                toolbox = SandboxTools(sandbox=self._sandbox, documents=folder, names=names, limits=limits)  # type: ignore[arg-type]
                conversation = await converse(target, request, toolbox, self._turns)
            products = toolbox.files
        answer = EXTRACTORS[str(item.content["extract"])](conversation.text)
        return Trajectory(item_id=item.id, turns=conversation.turns, answer=answer, products=products)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        sheet = Sheet(
            prompt=str(item.content["prompt"]),
            answer=trajectory.answer,
            row=cast("Mapping[str, object]", item.content.get("row", {})),
            products=trajectory.products,
            attachments=self._reader.attachments,
            judge=judge,
            sandbox=lambda: self._sandbox,
            limits=self._limits("check_timeout"),
        )
        return await graded(_checks(item), sheet)

    def _limits(self, name: str) -> Limits:
        seconds = float(self._options[name])
        return Limits(wall_s=seconds, cpu_s=max(1, round(seconds)))


def _checks(item: Item) -> Sequence[Fields]:
    return cast("Sequence[Fields]", item.content["checks"])
