"""Tasks: items, checks and files of one's own, without code."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from skillgit.domain.evaluation import Split
from skillgit.domain.ids import short_digest
from skillgit.errors import ConfigError
from skillgit.plugin.environment import CallBounds, EnvironmentInfo
from skillgit.plugin.splits import OPTIONS
from skillgit.sandbox import Limits, Mode
from skillgit_envs.packaged import PackagedEnvironment, option
from skillgit_envs.tasks import prompt, rollout
from skillgit_envs.tasks.checks import judging
from skillgit_envs.tasks.checks.catalogue import KINDS, scorers
from skillgit_envs.tasks.checks.check import Sheet
from skillgit_envs.tasks.checks.grading import graded
from skillgit_envs.tasks.extraction import EXTRACTORS
from skillgit_envs.tasks.items import load
from skillgit_envs.tasks.reading import Reader
from skillgit_envs.tasks.secrets import secrets_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.evaluation import Scored
    from skillgit.domain.leaks import Secrets
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item, Trajectory
    from skillgit.plugin.environment import Judge, Target
    from skillgit.plugin.splits import Splits
    from skillgit_envs.tasks.checks.check import Fields

_PROGRAMS = ("python", "command")


class Tasks(PackagedEnvironment):
    """Tasks from a file, scored by the checks that each of them names."""

    info = EnvironmentInfo(
        name="tasks",
        summary="Your own tasks: a file of prompts with answers, checks, or criteria for a judge.",
        fields={
            "prompt": "what to do; in the file also question, input or task, with context before it and choices behind",
            "files": "files, or a folder, beside the data: shown as text, or looked into with tools",
            "images": "pictures beside the data",
            "checks": "how the result is scored; in the file also answer or answers, check, rubric or criteria",
            "extract": "how the result is taken out of a reply",
        },
        scorer="soft = weighted mean of the checks, hard = whether each reaches what it takes to pass",
        source="tasks written for skillgit; your own are read from env.data_path: its README says what a row may hold",
        options=(
            *OPTIONS,
            option("prompt_field", "", "Field with the task; empty looks for the usual names."),
            option("scorer", "normalized", "Check of tasks that have an answer and no check."),
            option(
                "extract",
                "",
                f"How a result is taken out of a reply: {', '.join(EXTRACTORS)}; empty is as the checks need it.",
            ),
            option("tools", "none", "Tools of the target: none, read, or python."),
            option("max_turns", 12, "Replies of a rollout with tools at most."),
            option("check_timeout", 60.0, "Seconds that a program may take that checks."),
            option("tool_timeout", 60.0, "Seconds that one call of Python may take."),
            option("sandbox", "auto", f"Isolation of programs: {', '.join(Mode)}."),
        ),
        task_types=("default",),
    )

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._tools, self._turns = str(self._options["tools"]), int(self._options["max_turns"])
        self._refuse_unknown(tools=rollout.TOOLS, scorer=KINDS, sandbox=tuple(Mode))
        if str(self._options["extract"]) not in {"", *EXTRACTORS}:
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
        """Identify prompts, tools and checks; what a judge grades by is part of its item."""
        texts = [self._prompt_file("system"), *sorted(prompt.FORMS.values()), prompt.LOOK, prompt.RUN]
        working = [self._tools, self._turns, self._options["tool_timeout"]] if self._tools != "none" else []
        return short_digest([self.info.name, *scorers(), *texts, *working, self._options["check_timeout"]])

    @property
    def asks_judge(self) -> bool:
        """Whether a model grades any item."""
        return any(check["type"] == "judge" for split in Split for item in self.items(split) for check in _checks(item))

    def _load(self) -> Splits:
        """Return the items of all splits; without a sandbox there are none that need one."""
        splits = load(self._options, self._root, self._reader)
        every = [item for items in splits.values() for item in items]
        if self._tools == "none":
            prompt.check_readable(every, self._reader.attachments)
        if self._tools != "none" or any(check["type"] in _PROGRAMS for item in every for check in _checks(item)):
            _ = self._sandbox
        return splits

    def task(self, where: str, row: Mapping[str, object], path: Path) -> Item:
        """Return the item that a row of a task file stands for, be it a draft or not: what commands on files need.

        Raises:
            DataError: It is no task; the message begins with ``where``.
        """
        return self._new_reader(drafts=True).item(where, row, path)

    def secrets(self, item: Item) -> Secrets:
        """Return answers, the task and its files, and what the checks look for."""
        return secrets_in(item, self._reader.attachments)

    def call_bounds(self, item: Item) -> CallBounds:
        """Return how many calls a task takes: the judge is asked by some checks only, and once more if need be."""
        questions = sum(judging.QUESTIONS["against" in check] for check in _checks(item) if check["type"] == "judge")
        target = (1, 1 if self._tools == "none" else self._turns)
        return CallBounds(target=target, judge=(questions, questions), repairs=questions)

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Let the target do the task."""
        attachments = self._reader.attachments
        if self._tools == "none":
            return await rollout.ask(item, skill, target, attachments)
        limits = self._limits("tool_timeout")
        return await rollout.work(
            item,
            skill,
            target,
            attachments,
            tools=self._tools,
            max_turns=self._turns,
            sandbox=self._sandbox,
            limits=limits,
        )

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Carry out the checks of the item."""
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
