"""Owns what every environment promises: about its items, its seed skill, a rollout and its scores."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import frontmatter
from skillgit.domain.trajectory import Trajectory
from skillgit.errors import BackendError, EnvironmentFaultError, RetryableBackendError
from skillgit.plugin.backend import Reply, Usage
from skillgit.plugin.conformance.promises import Promises, described
from skillgit.plugin.environment import Environment, EnvironmentInfo, KeepsSecrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillgit.domain.trajectory import Item
    from skillgit.plugin.backend import Message, Tool

Value = str | int | float | bool
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024


@dataclass(slots=True)
class _Scripted:
    """A model that says what it is told to, or fails."""

    says: str
    fails: bool = False
    asked: int = 0

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
        """Answer."""
        del messages, tools
        self.asked += 1
        if self.fails:
            raise RetryableBackendError("the provider is down", hint="this is a test")
        return Reply(text=self.says, usage=Usage(tokens_in=1, tokens_out=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """An environment with its circumstances; see ``check_environment``."""

    cls: type[Environment]
    options: Mapping[str, Value]
    root: Path
    answers: Callable[[Item], str] | None
    verdict: str
    rollouts: int

    def made(self, options: Mapping[str, Value] | None = None) -> Environment:
        return self.cls({**self.options, **(options or {})}, self.root)


def check_environment(
    cls: type[Environment],
    options: Mapping[str, Value] | None = None,
    root: Path | None = None,
    *,
    answers: Callable[[Item], str] | None = None,
    scoring_options: Mapping[str, Value] | None = None,
    verdict: str = "",
    rollouts: int = 5,
) -> None:
    """Examine an environment without a model, a script plays the target; call it where no event loop runs.

    Args:
        cls: The environment's class.
        options: Options that it works with.
        root: The folder that relative paths refer to; the working directory if there is none.
        answers: Returns what a target would have to say to solve an item. Without it, nothing is said of right answers.
        scoring_options: Options that change how items are scored, so that the digest has to change with them.
        verdict: What the judge says, where the scorer asks one.
        rollouts: Items of each split that are rolled out.

    Raises:
        ConformanceError: It breaks promises of the contract.
    """
    promises = Promises(cls.__name__)
    case = _Case(
        cls=cls, options=dict(options or {}), root=root or Path(), answers=answers, verdict=verdict, rollouts=rollouts
    )
    _check_info(case, promises)
    try:
        one, other = case.made(), case.made()
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
        promises.hold(kept=False, sentence=f"it cannot be made with its options: {described(error)}")
    else:
        promises.hold(isinstance(one, Environment), "it lacks a method of the contract")
        _check_digest(case, one, other, scoring_options or {}, promises)
        _check_skill(one, promises)
        items = _check_items(one, other, promises)
        asyncio.run(_check_rollouts(case, one, items, promises))
    promises.settle()


def _check_info(case: _Case, promises: Promises) -> None:
    info = getattr(case.cls, "info", None)
    if not promises.hold(isinstance(info, EnvironmentInfo), "its class has no info, which is an EnvironmentInfo"):
        return
    assert isinstance(info, EnvironmentInfo)  # noqa: S101 - for the type checker
    for name in ("name", "summary", "fields", "scorer", "source"):
        promises.hold(getattr(info, name), f"info.{name} is empty")
    for option in info.options:
        fits = isinstance(option.default, option.type) or (option.type is float and isinstance(option.default, int))
        promises.hold(fits, f"the default of option '{option.name}' is no {option.type.__name__}")
        promises.hold(option.help.strip(), f"option '{option.name}' does not say what it means")


def _check_digest(
    case: _Case, one: Environment, other: Environment, scoring_options: Mapping[str, Value], promises: Promises
) -> None:
    with promises.during("digest"):
        promises.hold(isinstance(one.digest, str) and one.digest, "digest is empty")
        promises.hold(one.digest == other.digest, "digest is another one each time that the environment is made")
    for name, value in scoring_options.items():
        with promises.during(f"digest with option '{name}'"):
            changed = case.made({name: value}).digest != one.digest
            promises.hold(changed, f"digest does not change with option '{name}', which changes scores")


def _check_skill(environment: Environment, promises: Promises) -> None:
    with promises.during("taxonomy"):
        promises.hold(environment.taxonomy().strip(), "taxonomy is empty")
    with promises.during("seed_skill"):
        skill = environment.seed_skill()
        block = frontmatter(skill.document)
        if not promises.hold(block, "the seed skill's SKILL.md has no frontmatter"):
            return
        name, description = _value(block, "name"), _value(block, "description")
        valid = _NAME.fullmatch(name) and len(name) <= _LONGEST_NAME
        promises.hold(valid, f"the seed skill's name is '{name}', not lower case, digits and single hyphens")
        promises.hold(name == skill.name, f"the seed skill's name is '{name}', its folder is '{skill.name}'")
        promises.hold(0 < len(description) <= _LONGEST_DESCRIPTION, "the seed skill's description is empty or too long")


def _value(block: str, key: str) -> str:
    found = re.search(rf"^{key}:[ \t]*(.*(?:\n[ \t]+.*)*)", block, re.MULTILINE)
    return " ".join(found.group(1).split()).strip("\"'>|- ") if found else ""


def _check_items(one: Environment, other: Environment, promises: Promises) -> dict[Split, Sequence[Item]]:
    found: dict[Split, Sequence[Item]] = {}
    for split in Split:
        with promises.during(f"items of the {split} split"):
            items = tuple(one.items(split))
            promises.hold(items, f"the {split} split has no items")
            ids = [item.id for item in items]
            promises.hold(len(set(ids)) == len(ids), f"an id occurs twice in the {split} split")
            again = [(item.id, item.digest) for item in other.items(split)]
            same = again == [(item.id, item.digest) for item in items]
            promises.hold(same, f"the {split} split has other items, or another order, when it is made again")
            found[split] = items
    for first, second in combinations(found, 2):
        for what in ("id", "digest"):
            shared = {getattr(item, what) for item in found[first]} & {getattr(item, what) for item in found[second]}
            promises.hold(not shared, f"the {first} and the {second} split share an item by its {what}")
    return found


async def _check_rollouts(
    case: _Case, environment: Environment, items: Mapping[Split, Sequence[Item]], promises: Promises
) -> None:
    for item in (item for split in items.values() for item in split[: case.rollouts]):
        with promises.during("a rollout"):
            await _check_rollout(case, environment, item, promises)
        with promises.during("secrets"):
            secrets = environment.secrets(item) if isinstance(environment, KeepsSecrets) else Secrets()
            promises.hold(isinstance(secrets, Secrets), f"secrets returns {type(secrets).__name__}, not Secrets")
    for item in next(iter(items.values()), ())[:1]:
        await _check_outage(environment, item, promises)


async def _check_rollout(case: _Case, environment: Environment, item: Item, promises: Promises) -> None:
    target = _Scripted(case.answers(item) if case.answers else "I do not know.")
    trajectory = await environment.rollout(item, environment.seed_skill(), target)
    if not promises.hold(isinstance(trajectory, Trajectory), "rollout does not return a Trajectory"):
        return
    promises.hold(target.asked, "a rollout does not ask the target")
    promises.hold(trajectory.item_id == item.id, "a trajectory's item_id is not that of its item")
    promises.hold(trajectory.turns, "a trajectory has no turns, so that the optimizer sees nothing")
    twice = [await environment.score(item, trajectory, _Scripted(case.verdict)) for _ in range(2)]
    promises.hold(twice[0] == twice[1], "the same trajectory gets another score or feedback when it is scored again")
    scored, feedback = twice[0]
    if not promises.hold(isinstance(scored, Scored), "score does not return a Scored first"):
        return
    promises.hold(isinstance(feedback, str), "score does not return the feedback second")
    promises.hold(not case.answers or scored.passed, "the right answer does not pass")


async def _check_outage(environment: Environment, item: Item, promises: Promises) -> None:
    """Let the target fail for good: that is no answer, and no score."""
    try:
        await environment.rollout(item, environment.seed_skill(), _Scripted("", fails=True))
    except (BackendError, EnvironmentFaultError):
        return
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
        promises.hold(kept=False, sentence=f"a failed call of the target becomes {described(error)}")
        return
    promises.hold(kept=False, sentence="a failed call of the target becomes a trajectory, which would be scored")
