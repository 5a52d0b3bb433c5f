"""Owns what every environment promises: about its items, its seed skill, a rollout and its scores."""

from __future__ import annotations

import asyncio
import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import frontmatter
from skillgit.plugin.conformance import setup
from skillgit.plugin.conformance.promises import Promises, described
from skillgit.plugin.conformance.rehearsal import Rehearsal
from skillgit.plugin.conformance.rollouts import check_rollouts
from skillgit.plugin.environment import Environment, EnvironmentInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.conformance.rehearsal import Value

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024


def check_environment(
    cls: type[Environment],
    options: Mapping[str, Value] | None = None,
    root: Path | None = None,
    *,
    answers: Callable[[Item], str | Sequence[str]] | None = None,
    wrong: Callable[[Item], str] | None = None,
    scoring_options: Mapping[str, Value] | None = None,
    verdict: str = "",
    rollouts: int = 5,
) -> None:
    """Examine an environment without a model, a script plays the target; call it where no event loop runs.

    Args:
        cls: The environment's class.
        options: Options that it works with.
        root: The folder that relative paths refer to; the working directory if there is none.
        answers: Returns what a target would have to say to solve an item, in one reply or in several. Without it,
            nothing is said of right answers.
        wrong: Returns what does not solve an item, where "I do not know." might.
        scoring_options: Options that change how items are scored, so that the digest has to change with them. Switches
            and numbers among the options are tried without being named here.
        verdict: What the judge says, where the scorer asks one.
        rollouts: Items of each split that are rolled out.

    Raises:
        ConformanceError: It breaks promises of the contract.
    """
    promises = Promises(cls.__name__)
    case = Rehearsal(
        cls=cls,
        options=dict(options or {}),
        root=root or Path(),
        answers=answers,
        wrong=wrong,
        verdict=verdict,
        rollouts=rollouts,
    )
    _check_info(case, promises)
    try:
        one, other = case.made(), case.made()
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
        promises.hold(kept=False, sentence=f"it cannot be made with its options: {described(error)}")
    else:
        promises.hold(isinstance(one, Environment), "it lacks a method of the contract")
        setup.check_digest(case, one, other, scoring_options or {}, promises)
        setup.check_source(case, one, promises)
        skill = _check_skill(one, promises)
        items = _check_items(one, other, promises)
        if skill is not None:
            asyncio.run(_check_work(case, one, skill, items, promises))
    promises.settle()


async def _check_work(
    case: Rehearsal, environment: Environment, skill: Skill, items: Mapping[Split, Sequence[Item]], promises: Promises
) -> None:
    await check_rollouts(case, environment, skill, items, promises)
    await setup.check_options(case, environment, skill, items, promises)


def _check_info(case: Rehearsal, promises: Promises) -> None:
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


def _check_skill(environment: Environment, promises: Promises) -> Skill | None:
    """Return the seed skill, if there is one."""
    skill = None
    with promises.during("taxonomy"):
        promises.hold(environment.taxonomy().strip(), "taxonomy is empty")
    with promises.during("seed_skill"):
        skill = environment.seed_skill()
        block = frontmatter(skill.document)
        if not promises.hold(block, "the seed skill's SKILL.md has no frontmatter"):
            return skill
        name, description = _value(block, "name"), _value(block, "description")
        valid = _NAME.fullmatch(name) and len(name) <= _LONGEST_NAME
        promises.hold(valid, f"the seed skill's name is '{name}', not lower case, digits and single hyphens")
        promises.hold(name == skill.name, f"the seed skill's name is '{name}', its folder is '{skill.name}'")
        promises.hold(0 < len(description) <= _LONGEST_DESCRIPTION, "the seed skill's description is empty or too long")
    return skill


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
