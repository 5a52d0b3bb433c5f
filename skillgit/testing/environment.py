"""Owns what every environment promises: about its items, its seed skill, a rollout and its scores."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.leaks import Secrets
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import BackendError, EnvironmentFaultError
from skillgit.plugin.environment import (
    Environment,
    EnvironmentInfo,
    LongLived,
    ShowsPictures,
    asks_judge,
    is_processor_bound,
    secrets_of,
)
from skillgit.testing import rehearsal
from skillgit.testing.answers import (
    ShownPrompts,
    check_bounds,
    check_calls,
    check_feedback,
    check_golds,
    check_nothing,
)
from skillgit.testing.case import BLOCKED_S, Promises, described, lived
from skillgit.testing.rehearsal import Rehearsal, RehearsalOutcome, Scripted, Value, watched, with_sentence

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
    partial_answers: bool = False,
) -> None:
    """Examine an environment without a model, a script plays the target; call it where no event loop runs.

    What it breaks of the contract is a ConformanceError.

    Args:
        root: The folder that relative paths refer to; the working directory if there is none.
        answers: Returns what a target would have to say to solve an item, in one reply or in several. Without it,
            nothing is said of right answers.
        wrong: Returns what does not solve an item, where "I do not know." might.
        scoring_options: Options that change how items are scored, so that the digest has to change with them. Switches
            and numbers among the options are tried without being named here.
        verdict: What the judge says, where the scorer asks one.
        rollouts: Items of each split that are rolled out.
        partial_answers: Whether the answers among an item's secrets are parts of what is right, like fields of JSON.
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
        partial_answers=partial_answers,
    )
    _check_info(case, promises)
    try:
        environment, twin = case.made(), case.made()
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
        promises.note(f"it cannot be made with its options: {described(error)}")
    else:
        promises.hold(isinstance(environment, Environment), "it lacks a method of the contract")
        rehearsal.check_digest(case, environment, twin, scoring_options or {}, promises)
        rehearsal.check_source(case, environment, promises)
        rehearsal.check_processor_bound(case, environment, promises)
        rehearsal.check_moved(case, environment, promises)
        rehearsal.check_values(case, promises)
        skill = _check_skill(environment, promises)
        items = _check_items(environment, twin, promises)
        if skill is not None:
            asyncio.run(_check_life(case, environment, skill, items, promises))
    promises.settle()


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
    match = re.search(rf"^{key}:[ \t]*(.*(?:\n[ \t]+.*)*)", block, re.MULTILINE)
    return " ".join(match.group(1).split()).strip("\"'>|- ") if match else ""


def _check_items(env: Environment, twin: Environment, promises: Promises) -> dict[Split, Sequence[Item]]:
    parts: dict[Split, Sequence[Item]] = {}
    for split in Split:
        with promises.during(f"items of the {split} split"):
            items = tuple(env.items(split))
            promises.hold(items, f"the {split} split has no items")
            ids = [item.id for item in items]
            promises.hold(len(set(ids)) == len(ids), f"an id occurs twice in the {split} split")
            again = [(item.id, item.digest) for item in twin.items(split)]
            same = again == [(item.id, item.digest) for item in items]
            promises.hold(same, f"the {split} split has other items, or another order, when it is made again")
            parts[split] = items
    for first, second in combinations(parts, 2):
        for key in ("id", "digest"):
            common = {getattr(item, key) for item in parts[first]} & {getattr(item, key) for item in parts[second]}
            promises.hold(not common, f"the {first} and the {second} split share an item by its {key}")
    return parts


_SENTENCES = ("Mind the amber falcon.", "Mind the silver heron.")


@dataclass(slots=True, kw_only=True)
class _Examination:
    case: Rehearsal
    environment: Environment
    skill: Skill
    promises: Promises
    prompts: ShownPrompts = field(default_factory=ShownPrompts)
    full_scores: list[bool] = field(default_factory=list)  # for each wrong answer, whether it got the full score
    blocks: bool = False  # whether it was found to block the event loop

    async def attempt(self, item: Item, skill: Skill, says: str | Sequence[str]) -> RehearsalOutcome:
        """Attempt ``item``; where the event loop was blocked, once more, for a first use may load a lot."""
        attempt = await self.case.attempt(self.environment, item, skill, says)
        if attempt.blocker and not self.blocks:
            again = await self.case.attempt(self.environment, item, skill, says)
            self.blocks = bool(again.blocker) and not is_processor_bound(self.environment)
            self.promises.hold(
                not self.blocks,
                f"rollout or score blocks the event loop for {BLOCKED_S:g} s or longer at {again.blocker}: await what "
                "takes time, or hand it to asyncio.to_thread",
            )
        check_calls(self.environment, item, attempt, self.promises)
        return attempt


async def _check_life(
    case: Rehearsal, environment: Environment, skill: Skill, items: Mapping[Split, Sequence[Item]], promises: Promises
) -> None:
    """Let the environment work from its opening to its end, as in a run that is stopped in the middle of a rollout."""
    async with lived(environment, promises):
        await check_rollouts(case, environment, skill, items, promises)
        for item in next(iter(items.values()), ())[: isinstance(environment, LongLived)]:
            await rehearsal.cancel_one(environment, item, skill)


async def check_rollouts(
    case: Rehearsal, environment: Environment, skill: Skill, items: Mapping[Split, Sequence[Item]], promises: Promises
) -> None:
    """Let a scripted target work on items of each split, with right and wrong answers and with skills that differ."""
    examination = _Examination(case=case, environment=environment, skill=skill, promises=promises)
    for split in items.values():
        for item in split:
            with promises.during("secrets"):
                secrets = secrets_of(environment, item)
                promises.hold(isinstance(secrets, Secrets), f"secrets returns {type(secrets).__name__}, not Secrets")
            with promises.during("call_bounds"):
                check_bounds(environment, item, promises)
        for item in split[: case.rollouts]:
            with promises.during("a rollout"):
                await _check_item(examination, item)
        for item in split[:1]:
            with promises.during("a rollout with another skill"):
                await _attempt_with_sentence(examination, item, *reversed(_SENTENCES))
    passes = examination.full_scores and (any(examination.full_scores) if case.wrong else all(examination.full_scores))
    promises.hold(
        not passes,
        "a wrong answer passes: score has to compare trajectory.answer with the item, and give less than 1.0 to what "
        "does not solve it (wrong= says what that is)",
    )
    examination.prompts.check(promises)
    for item in next(iter(items.values()), ())[:1]:
        await _check_outages(case, environment, item, skill, promises)
    await rehearsal.check_options(case, environment, skill, items, promises)


async def _check_item(examination: _Examination, item: Item) -> None:
    case, promises = examination.case, examination.promises
    wrong = await _attempt_with_sentence(examination, item, *_SENTENCES)
    if not _is_whole(wrong, item, promises):
        return
    secrets = secrets_of(examination.environment, item)
    examination.prompts.add(item, wrong, secrets, examination.skill)
    check_feedback(wrong, secrets, promises)
    if not wrong.passed:
        check_nothing(await examination.attempt(item, examination.skill, ""), promises)
    if not case.partial_answers:
        await check_golds(case, examination.environment, item, wrong.trajectory, promises)
    _check_pictures(examination.environment, item, wrong.trajectory, promises)
    right = None
    if case.answers:
        right = await examination.attempt(item, examination.skill, case.answers(item))
        if not _is_whole(right, item, promises):
            return
        promises.hold(right.passed, "the right answer does not pass")
    again = await examination.environment.score(item, wrong.trajectory, Scripted((case.verdict,)))
    same = again == (wrong.score, wrong.feedback)
    promises.hold(same, "the same trajectory gets another score or feedback when it is scored again")
    has_verdict = bool(case.verdict and wrong.judge.requests)
    if has_verdict or (right is not None and right.target.says == wrong.target.says):
        return
    golden = wrong.passed and _is_golden(examination.environment, item, wrong, right)
    promises.hold(
        not golden,
        "a rollout returns the gold answer though the target said something else: trajectory.answer has to be what the "
        "target said",
    )
    examination.full_scores.append(wrong.passed and not golden)


async def _attempt_with_sentence(
    examination: _Examination, item: Item, sentence: str, old_sentence: str
) -> RehearsalOutcome:
    """Attempt ``item`` with a skill that holds ``sentence``, by a target that gives a wrong answer."""
    reads: list[str] = []
    skill = watched(with_sentence(examination.skill, sentence), reads)
    attempt = await examination.attempt(item, skill, examination.case.wrong_answer(item))
    transcript = "\n".join(text for messages in attempt.target.requests for text in messages)
    # With tools the target may fetch the text itself, which no script can know how to do.
    is_shown = sentence in transcript or (attempt.target.tools and bool(reads))
    own = examination.promises.hold(
        old_sentence not in transcript,
        "the target sees the skill of an earlier rollout: a rollout has to show it the skill that it is given",
    )
    examination.promises.hold(
        is_shown or not own or not attempt.target.requests,
        "the target never sees the skill: a sentence that is added to SKILL.md is in no message to it; a rollout has "
        "to show it skill.document",
    )
    return attempt


def _is_whole(attempt: RehearsalOutcome, item: Item, promises: Promises) -> bool:
    """Say whether trajectory and score are what the contract wants, so that there is something to compare."""
    trajectory = attempt.trajectory
    if not promises.hold(isinstance(trajectory, Trajectory), "rollout does not return a Trajectory"):
        return False
    promises.hold(attempt.target.requests, "a rollout does not ask the target")
    promises.hold(trajectory.item_id == item.id, "a trajectory's item_id is not that of its item")
    promises.hold(trajectory.turns, "a trajectory has no turns, so that the optimizer sees nothing")
    has_score = promises.hold(isinstance(attempt.score, Scored), "score does not return a Scored first")
    return promises.hold(isinstance(attempt.feedback, str), "score does not return the feedback second") and has_score


def _check_pictures(environment: Environment, item: Item, trajectory: Trajectory, promises: Promises) -> None:
    target_pictures = {picture for turn in trajectory.turns for picture in turn.pictures}
    pictures = environment.pictures(item) if isinstance(environment, ShowsPictures) else ()
    promises.hold(
        target_pictures >= {image.picture for image in pictures},
        "pictures returns one that the rollout does not show, so that the optimizer would see more than the target",
    )
    promises.hold(
        not pictures or target_pictures <= {image.picture for image in pictures},
        "pictures lacks one that the rollout shows, so that the optimizer never sees it",
    )


def _is_golden(environment: Environment, item: Item, wrong: RehearsalOutcome, right: RehearsalOutcome | None) -> bool:
    """Say whether the answer of an attempt is the right one although the target gave a wrong one."""
    answer = wrong.trajectory.answer.strip()
    if right is not None and answer and answer == right.trajectory.answer.strip():
        return True
    golds = {gold.strip() for gold in secrets_of(environment, item).answers}
    return bool(answer) and answer in golds and answer not in "\n".join(wrong.target.says)


async def _check_outages(
    case: Rehearsal, environment: Environment, item: Item, skill: Skill, promises: Promises
) -> None:
    """Let the target fail for good, at once and after a reply, and the judge: that is neither an answer nor a score."""
    trajectory: Trajectory | None = None
    for first in (1, 2):
        target = Scripted((case.wrong_answer(item),), fails_from=first)
        try:
            trajectory = await environment.rollout(item, skill, target)
        except (BackendError, EnvironmentFaultError):
            continue
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
            promises.note(f"a failed call of the target becomes {described(error)}")
        else:
            failed = len(target.requests) >= first
            promises.hold(not failed, "a failed call of the target becomes a trajectory, which would be scored")
    if trajectory is None or not asks_judge(environment):
        return
    judge = Scripted(fails_from=1)
    try:
        await environment.score(item, trajectory, judge)
    except (BackendError, EnvironmentFaultError):
        pass
    except Exception as error:  # noqa: BLE001 - as above
        promises.note(f"a failed call of the judge becomes {described(error)}")
    else:
        promises.hold(not judge.requests, "a failed call of the judge becomes a score")
