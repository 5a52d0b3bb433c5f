"""SWE-bench: change a project so that an issue is settled, as its tests show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError
from skillgit.plugin.backend import Tool, ToolCall, system, user
from skillgit.plugin.environment import EnvironmentInfo, Judge, Need, NeedKind, Target
from skillgit.plugin.splits import OPTIONS, Splits
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.option import OPTION as SANDBOX
from skillgit.sandbox.tools import declared, read_arguments
from skillgit_envs.answers import material
from skillgit_envs.public_sources import SWEBENCH
from skillgit_envs.shipped_environment import PROMPTS, PromptWording, Questions, option, sections
from skillgit_envs.swebench.engines import PATCH, BoxJob, ContainerEngine, EngineName, SandboxEngine, Workbench, answers
from skillgit_envs.swebench.grading import F2P, OWN_RULES, P2P, Grader, LogReport, package_version
from skillgit_envs.swebench.instances import DATASETS, Instance, read_instances
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

    info = EnvironmentInfo(
        name="swebench",
        summary="Change the code of a project so that an issue is settled.",
        fields={
            "repo": "the project, as owner/name",
            "base_commit": "where the work begins",
            "version": "the project's version, which names its environment",
            "problem_statement": "the issue; the target is shown nothing else of the item",
            "patch": "what settled it",
            "test_patch": "the tests that came with it",
            "FAIL_TO_PASS": "tests that have to pass afterwards",
            "PASS_TO_PASS": "tests that still have to pass",
            "image": "the image of its environment",
            "eval_script": "what runs the tests",
            "log_parser": "who reads what they print: a parser of the package swebench, or unittest, which is ours",
            "eval_type": "pass_and_fail or fail_only",
        },
        scorer="hard = soft = whether all tests of FAIL_TO_PASS and PASS_TO_PASS pass (swebench 5, RESOLVED_FULL)",
        source="a small project invented for skillgit; the public rows are read from env.data_path or env.split_dir",
        options=(
            *OPTIONS,
            PROMPTS,
            option(
                "dataset_name",
                "lite",
                "Which of several data files: lite, verified or full, by their names.",
                values={name: f"the file or folder that is called {name}" for name in DATASETS},
            ),
            option("repositories", "", "Folder of clones called owner__name; for the sandbox.", path=True),
            option("environments", "", "Folder of virtual environments owner__name/version; for it.", path=True),
            option(
                "engine",
                "auto",
                "Where tests and commands run: docker, podman, sandbox (unofficial), or auto.",
                values={
                    EngineName.AUTO.value: "the first of docker and podman that answers, else the sandbox",
                    EngineName.DOCKER.value: "the benchmark's images",
                    EngineName.PODMAN.value: "the benchmark's images",
                    EngineName.SANDBOX.value: "virtual environments of your own, unofficially",
                },
            ),
            option("network", default=False, text="Whether containers have a network while tests run."),
            option("max_turns", 50, "Replies at most; the last one cannot use the tool."),
            option("tool_timeout", 120.0, "Seconds that a command of the target may run."),
            option("test_timeout", 1800.0, "Seconds that the tests of an item may run."),
            option(
                "scorer",
                "official",
                "official or skillopt; both count an item that is resolved, and nothing else.",
                values={
                    "official": "RESOLVED_FULL of swebench 5, harness/grading.py",
                    "skillopt": "the same; a report that is missing is a fault and not a 0",
                },
            ),
            option("grader_environment", "", "Virtual environment that has the package swebench.", path=True),
            option(
                "sandbox", "auto", "How the sandbox isolates: auto, bubblewrap, landlock, none.", values=SANDBOX.values
            ),
        ),
        task_types=(
            *("astropy/astropy", "django/django", "matplotlib/matplotlib", "mwaskom/seaborn", "pallets/flask"),
            *("psf/requests", "pydata/xarray", "pylint-dev/pylint", "pytest-dev/pytest"),
            *("scikit-learn/scikit-learn", "sphinx-doc/sphinx", "sympy/sympy", "hearthside/larder"),
        ),
        licence="items that come with it: MIT, as skillgit; SWE-bench: MIT, its patches and issues as their projects",
        public=SWEBENCH,
        needs=(
            Need(
                kind=NeedKind.PROGRAM,
                name="containers",
                looked_for=(EngineName.DOCKER.value, EngineName.PODMAN.value),
                purpose="runs commands and tests in the benchmark's images; without it, the sandbox does unofficially",
            ),
            Need(
                kind=NeedKind.EXTRA,
                name="swebench",
                looked_for=("swebench",),
                purpose="reads the logs of tests of public rows; it may be in env.grader_environment instead",
            ),
        ),
    )

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
        folder = str(self._options["grader_environment"])
        return str(self._root / folder / "bin" / "python") if folder else ""

    @cached_property
    def _engine(self) -> Engine:
        """Where this environment runs; the tasks that come with it have no image, so that ``auto`` is the sandbox."""
        name = EngineName(str(self._options["engine"]))
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

    def _read(self, files: Sequence[Path]) -> list[Item]:
        return read_instances(files, str(self._options["dataset_name"]))

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
