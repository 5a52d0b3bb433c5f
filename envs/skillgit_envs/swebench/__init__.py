"""SWE-bench: change a project so that an issue is settled, as its tests show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError
from skillgit.plugin.backend import Tool, ToolCall, system, user
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row
from skillgit.plugin.environment import Judge, Target
from skillgit.plugin.splits import Splits
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.tools import declared, read_arguments
from skillgit_envs.answers import material
from skillgit_envs.questions import Questions
from skillgit_envs.shipped_environment import PromptWording, sections
from skillgit_envs.swebench.engines import PATCH, BoxJob, ContainerEngine, EngineName, SandboxEngine, Workbench, answers
from skillgit_envs.swebench.grading import F2P, OWN_RULES, P2P, Grader, LogReport, package_version
from skillgit_envs.swebench.instances import Instance, completed, own_files
from skillgit_envs.swebench.repositories import Clones, Shipped

if TYPE_CHECKING:
    from skillgit_envs.swebench.engines import Engine

TOOL = declared(
    "bash",
    "Run a command in the project's folder. Changes to its files stay; variables and folders do not.",
    {"command": ("string", "What bash shall run.")},
)
_LONGEST = 10_000  # characters of what a command writes that are shown: its beginning and its end


@dataclass(slots=True, kw_only=True)
class Shell:
    """The tool of one rollout; what has been changed so far is ``patch``."""

    workbench: Workbench
    seconds: float
    patch: bytes = b""

    @property
    def tools(self) -> Sequence[Tool]:
        return (TOOL,)

    async def execute(self, call: ToolCall) -> str:
        try:
            command = read_arguments(call, self.tools)["command"]
        except ValueError as error:
            return f"error: {error}"
        files = {"command.sh": command.encode(errors="replace"), PATCH: self.patch}
        result = await self.workbench(BoxJob(script="turn", files=files, seconds=self.seconds))
        if result.breach:
            return f"[stopped by a limit: {result.breach}; nothing of it was kept]"
        code = result.text("exit").strip()
        end = f"stopped after {self.seconds:g} seconds" if result.is_late else f"exit code {code}"
        if PATCH in result.files:
            self.patch = result.files[PATCH]
        else:
            end += f"; its changes were not kept: {_shortened(result.text('trouble').strip())}"
        return "\n".join(filter(None, (_shortened(result.text("output").rstrip("\n")), f"[{end}]")))


def _shortened(text: str) -> str:
    rest = len(text) - _LONGEST
    return text if rest <= 0 else f"{text[: _LONGEST // 2]}\n[{rest} characters left out]\n{text[-_LONGEST // 2 :]}"


class SWEBench(Questions):
    """Issues of projects, which the target settles with a shell; tests decide."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._seconds, self._test_seconds = (float(self._options[name]) for name in ("tool_timeout", "test_timeout"))
        if self._seconds <= 0 or self._test_seconds <= 0:
            hint = "the defaults are 120 and 1800"
            raise ConfigError("env.tool_timeout and env.test_timeout must be above 0", hint=hint)
        self._grader = Grader(python=self._python, seconds=self._test_seconds, network=bool(self._options["network"]))

    @property
    def _python(self) -> str:
        """The Python that has the package; empty for the one that runs this."""
        folder = self._text("grader_environment")
        return str(self._root / folder / "bin" / "python") if folder else ""

    @cached_property
    def _engine(self) -> Engine:
        """Where this environment runs; the tasks that come with it have no image, so that ``auto`` is the sandbox."""
        name = EngineName(self._text("engine"))
        if name is EngineName.AUTO:
            programs = (EngineName.DOCKER, EngineName.PODMAN) if self._brings_data else ()
            name = next(filter(answers, programs), EngineName.SANDBOX)
        if name is not EngineName.SANDBOX:
            return ContainerEngine(program=name)
        return SandboxEngine(
            sandbox=self._sandbox, repositories=self._repositories(), environments=self._folder_of("environments")
        )

    def _repositories(self) -> Clones | Shipped:
        folder = self._folder_of("repositories")
        return Clones(folder) if folder else Shipped(self._folder / "data" / "repositories")

    def _folder_of(self, name: str) -> Path | None:
        """Return the folder that an option names; None where the tasks that come with skillgit need none."""
        if not self._brings_data:
            return None
        if not self._options[name]:
            raise ConfigError(
                f"without images, env.{name} has to name a folder",
                hint="the README of the environment swebench says what is in it; or start docker, or podman",
            )
        return self._root / str(self._options[name])

    def _load(self) -> Splits:
        """Return the items of all splits; refuse before anything is spent, where they could not be run or graded."""
        splits = super()._load()
        instances = [Instance(item) for items in splits.values() for item in items]
        self._grader.check(instances)
        self._engine.check(instances)
        return splits

    def _read(self, files: Sequence[Path]) -> Sequence[Item]:
        return super()._read(own_files(files, self._text("dataset_name")))

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        return super().item(row, completed(row, content), folder)

    @property
    def digest(self) -> str:
        engine = "images" if self._engine.is_official else "sandbox"
        version = package_version(self._python) if self._brings_data else ""
        limits = [self._most_replies, self._seconds, self._test_seconds, bool(self._options["network"]), _LONGEST]
        prompts = [self.target_prompt(), self._wording, TOOL.description, TOOL.parameters]
        return short_digest([self.info.name, OWN_RULES, version, engine, *prompts, *limits])

    def secrets(self, item: Item) -> Secrets:
        issue, patch, tests = (str(item.content[name]) for name in ("problem_statement", "patch", "test_patch"))
        return Secrets(answers=(patch,), inputs=(issue,), checks=(tests,))

    def task(self, item: Item) -> str:
        issue = str(item.content["problem_statement"])
        return sections(issue=issue) if self._wording is PromptWording.REFERENCE else material({"issue": issue})

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        async with self._engine.opened(Instance(item)) as workbench:
            shell = Shell(workbench=workbench, seconds=self._seconds)
            messages = (system(self._system(skill)), user(self._turn(self.task(item))))
            conversation = await converse(target, messages, shell, self._turns)
        text = shell.patch.decode(errors="replace")
        return Trajectory(item_id=item.id, turns=conversation.turns, answer=text, products={PATCH: shell.patch})

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        instance, patch = Instance(item), trajectory.products.get(PATCH, trajectory.answer.encode())
        if not patch.strip():
            return _scored(instance, LogReport()), "nothing was changed"
        async with self._engine.opened(instance) as workbench:
            report = await self._grader.graded(self._engine, workbench, instance, patch)
        return _scored(instance, report), _feedback(instance, report)


def _scored(instance: Instance, report: LogReport) -> Scored:
    """Return 1 for what is resolved, with the shares of both kinds of tests."""
    totals = {kind: len(instance.tests(kind)) for kind in (F2P, P2P)}
    parts = tuple((kind, len(report.passed.get(kind, ())) / total if total else 1.0) for kind, total in totals.items())
    return Scored(hard=float(report.is_resolved), soft=float(report.is_resolved), parts=parts)


def _feedback(instance: Instance, report: LogReport) -> str:
    words = {F2P: "tests of the issue", P2P: "tests that passed before"}
    failures = (
        f"{len(report.failed[kind])} of {len(instance.tests(kind))} {words[kind]} fail"
        for kind in words
        if report.failed.get(kind)
    )
    verdict = "resolved: all tests pass" if report.is_resolved else report.reason or "; ".join(failures)
    return "\n".join([verdict, *(f"- {error}" for error in report.errors)])
