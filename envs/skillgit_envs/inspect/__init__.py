"""Inspect: any task of inspect_ai, with its own solver or agent, tools, sandbox and scorer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from weakref import finalize

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.plugin.card import read_card
from skillgit.plugin.environment import CallBounds, Judge, Target
from skillgit.plugin.seed_folder import write_files
from skillgit.plugin.splits import Splits, first_items, split_items
from skillgit_envs.inspect.asked_roles import asked_roles, is_grader
from skillgit_envs.inspect.attempt import JUDGE, PLAYER, SampleRun, entered, register
from skillgit_envs.inspect.conversion import check_config, section
from skillgit_envs.inspect.evaluation import Feed, OpenEvaluation, feeding, new_number
from skillgit_envs.inspect.task import (
    InspectTask,
    ValueScale,
    has_dictionary,
    make_task,
    scored,
    task_arguments,
)
from skillgit_envs.shipped_environment import ShippedEnvironment

if TYPE_CHECKING:
    from inspect_ai.scorer import Scorer

SCORER = 1  # raised whenever the same work may get another score
EXAMPLE = "example.py@weekdays"
_LONGEST_EXPLANATION = 4000
_PLAYERS = {"judge": JUDGE, "target": PLAYER}


class InspectEnvironment(ShippedEnvironment):
    """Samples of a task as items; each rollout is a sample of one open evaluation (:mod:`.evaluation`)."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._scale = ValueScale.parse(self._text("scale"))
        self._arguments = task_arguments(self._text("task_args"))
        self._roles = _roles(self._text("roles"))
        self._evaluation: OpenEvaluation | None = None
        self._feed: Feed | None = None
        if int(self._options["limit"]) < 0:
            raise ConfigError(f"env.limit is {self._options['limit']}", hint="0 uses all items")

    @cached_property
    def _task(self) -> InspectTask:
        """The task, made once; a ConfigError if it cannot be, or if it asks for what is not there."""
        name, root = self._text("task_file") or self._text("task"), self._root
        if not name:
            name, root = EXAMPLE, Path(__file__).parent
        task = make_task(name, self._arguments, root, self._text("type_field"))
        scorer = task.scorer(self._text("scorer"))
        if has_dictionary(scorer) and not self._text("score_key"):
            hint = "name the value that counts: env.score_key"
            raise ConfigError(f"the scores of {task.name} are dictionaries", hint=hint)
        try:
            check_config(task.task.config, task.name)
        except EnvironmentFaultError as error:
            raise ConfigError(error.message, hint=error.hint) from error
        if task.combines_tries() and not self._options["one_try"]:
            message = f"{task.name} makes one score of {task.task.epochs} tries of a sample"
            raise ConfigError(message, hint="env.one_try: true scores each rollout for itself")
        if "local" in task.sandboxes() and not self._options["local_sandbox"]:
            message = f"the sandbox of {task.name} is local, which confines nothing"
            raise ConfigError(message, hint="env.local_sandbox: true lets models run programs here, as you")
        if self._text("delivery") == "tool" and "" in task.sandboxes():
            hint = "use env.delivery: inline"
            raise ConfigError(f"{task.name} has no sandbox, where a tool could lay the skill out", hint=hint)
        if unplayed := sorted(asked_roles(scorer) - {"user"} - self._players_of(scorer).keys()):
            role = unplayed[0]
            message = f"the scorer asks a model{f' as {role}' if role else ''}, and env.roles does not say which"
            hint = f"name who answers: env.roles: {role}=judge, or {role}=target"
            own = "have it ask get_model(role='grader'), and name who answers: env.roles: grader=judge"
            raise ConfigError(message, hint=hint if role else own)
        return task

    @cached_property
    def _scorer(self) -> Scorer:
        return self._task.scorer(self._text("scorer"))

    @cached_property
    def _players(self) -> Mapping[str, str]:
        """Model role to who plays it; without a word, the judge grades for Inspect's own graders."""
        return self._players_of(self._scorer)

    def _players_of(self, scorer: Scorer) -> Mapping[str, str]:
        default = {"grader": "judge"} if is_grader(scorer) else {}
        return {**default, **self._roles}

    @property
    def asks_judge(self) -> bool:
        return "judge" in self._players.values()

    @property
    def digest(self) -> str:
        """Identify all that decides a score: the task, its code and arguments, and how its scores are read."""
        texts = [self._text(name) for name in ("scorer", "score_key", "delivery")]
        scale = [self._scale.least, self._scale.most]
        return short_digest(["inspect", SCORER, self._task.identity, scale, dict(self._players), *texts])

    def _load(self) -> Splits:
        if self._text("split_field"):
            return first_items(self._by_field(self._task.items), int(self._options["limit"]))
        return split_items(lambda: self._task.items, self._options, self._root, source=self._task.name)

    def _by_field(self, items: Sequence[Item]) -> Splits:
        name, parts = self._text("split_field"), {split: list[Item]() for split in Split}
        for item in items:
            metadata = self._task.samples[item.id].metadata or {}
            if name not in metadata:
                raise DataError(f"the metadata of {item.id} has no {name}", hint="leave env.split_field empty")
            parts[Split.parse(str(metadata[name]))].append(item)
        return {split: tuple(part) for split, part in parts.items()}

    def description(self) -> tuple[str, str]:
        """Return what the task says of itself, and which scorer decides."""
        words = (self._task.task.description or "").strip()
        return f"{words or 'Each sample says what is wanted.'} (Inspect task {self._task.name})", self.info.scorer

    def secrets(self, item: Item) -> Secrets:
        target = item.content.get("target", "")
        answers = [str(text) for text in (target if isinstance(target, list) else [target]) if text]
        choices = item.content.get("choices")
        if isinstance(choices, list):
            # A letter is not secret, what it means is.
            numbers = {chr(ord("A") + index): str(text) for index, text in enumerate(choices)}
            answers = [numbers.get(answer, answer) for answer in answers]
        question = item.content["input"]
        messages = question if isinstance(question, list) else [{"content": question}]
        return Secrets(answers=tuple(answers), inputs=tuple(str(entry.get("content", "")) for entry in messages))

    def call_bounds(self, item: Item) -> CallBounds | None:
        """Return how many calls a sample takes; None where the task's own code decides."""
        del item
        count = self._task.generations()
        if count is None or self._text("delivery") == "tool" or (self.asks_judge and not is_grader(self._scorer)):
            return None
        return CallBounds(target=(count, count), judge=(0, int(self.asks_judge)))

    async def open(self) -> None:
        """Have Inspect begin with the task; a ConfigError if it cannot."""
        if self._feed is not None and not self._feed.closing:
            await asyncio.shield(self._feed.ready)
            return
        register()
        self._feed = feed = Feed()
        self._skill_folder = TemporaryDirectory(prefix="skillgit-inspect-skill-")
        players = {role: _PLAYERS[player] for role, player in self._players.items()}
        task = feeding(self._task, self._scorer, players, feed)
        self._evaluation = await OpenEvaluation.join(task, feed)

    async def close(self) -> None:
        """End what is in progress; with the last environment of the process, end Inspect."""
        evaluation, feed, self._evaluation, self._feed = self._evaluation, self._feed, None, None
        if evaluation is not None and feed is not None:
            await evaluation.leave(feed)
            self._skill_folder.cleanup()

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Let the task's solver or agent work on a sample, whose model is ``target``."""
        await self.open()
        feed = self._feed
        if feed is None:
            raise EnvironmentFaultError("Inspect's evaluation has ended", hint="try again")
        is_tool = self._text("delivery") == "tool"
        attempt = SampleRun(
            number=new_number(),
            target=target,
            section="" if is_tool else section(skill),
            skill_tool=self._skill_tool(skill) if is_tool else None,
            asks_judge=self.asks_judge,
        )
        entered(attempt)
        feed.add(self._task.sample(item), attempt)
        try:
            work = await attempt.work
        except BaseException:
            attempt.cancel()
            raise
        products = _Sandboxed(attempt)
        return Trajectory(item_id=item.id, turns=work.turns, answer=work.answer, products=products)

    def _skill_tool(self, skill: Skill) -> Any:  # noqa: ANN401 - of the extra
        from inspect_ai.tool import skill as skill_tool  # noqa: PLC0415 - of the extra

        folder = Path(self._skill_folder.name, skill.digest, skill.name)
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            write_files(folder, skill.files, skill.executable)
        return skill_tool([folder])

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Let the task's scorer look at the work where it was done; once only, for the sandbox is gone then."""
        products = trajectory.products
        if not isinstance(products, _Sandboxed):
            raise EnvironmentFaultError(f"what was done on {item.id} is not there any more", hint="roll it out again")
        attempt = products.attempt
        attempt.begin_scoring(judge)
        try:
            await attempt.over
        except BaseException:
            attempt.cancel()
            raise
        if attempt.failure is not None:
            raise attempt.failure
        if attempt.score is None:
            raise EnvironmentFaultError(f"Inspect did not score {item.id}", hint="look at the scorer of the task")
        feedback = [attempt.limit, f"the scorer says {attempt.score.value}", attempt.score.explanation or ""]
        text = ": ".join(filter(None, feedback))[:_LONGEST_EXPLANATION]
        return scored(attempt.score, self._text("score_key"), self._scale), text


class _Sandboxed(dict[str, bytes]):
    """The work of a sample that waits to be scored; if no one wants that any more, the sample ends."""

    def __init__(self, attempt: SampleRun) -> None:
        super().__init__()
        self.attempt = attempt
        finalize(self, attempt.cancel).atexit = False


def _roles(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    roles = {role.strip(): player.strip() for role, _, player in pairs}
    if not all(roles) or not set(roles.values()) <= set(_PLAYERS):
        raise ConfigError(f"env.roles is '{text}'", hint="write it like grader=judge,user=target")
    return roles
