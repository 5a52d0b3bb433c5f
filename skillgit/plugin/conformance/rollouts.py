"""Owns what a rollout and a score promise: the skill is read, answers decide, nothing else has to wait for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Trajectory
from skillgit.errors import BackendError, EnvironmentFaultError
from skillgit.plugin.conformance.loop import BLOCKED_S
from skillgit.plugin.conformance.promises import described
from skillgit.plugin.conformance.rehearsal import Scripted, watched, with_sentence
from skillgit.plugin.environment import KeepsSecrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.evaluation import Split
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.conformance.promises import Promises
    from skillgit.plugin.conformance.rehearsal import Attempt, Rehearsal
    from skillgit.plugin.environment import Environment

_SENTENCES = ("Mind the amber falcon.", "Mind the silver heron.")


@dataclass(slots=True, kw_only=True)
class _Examination:
    """The environment, and what was seen of it so far.

    Attributes:
        passed: For each wrong answer, whether it got the full score.
        blocks: Whether it was found to block the event loop.
    """

    case: Rehearsal
    environment: Environment
    skill: Skill
    promises: Promises
    passed: list[bool] = field(default_factory=list)
    blocks: bool = False

    async def attempt(self, item: Item, skill: Skill, says: str | Sequence[str]) -> Attempt:
        """Attempt ``item``; where the event loop was blocked, once more, for a first use may load a lot."""
        attempt = await self.case.attempt(self.environment, item, skill, says)
        if attempt.blocked and not self.blocks:
            again = await self.case.attempt(self.environment, item, skill, says)
            self.blocks = bool(again.blocked)
            self.promises.hold(
                not self.blocks,
                f"rollout or score blocks the event loop for {BLOCKED_S:g} s or longer at {again.blocked}: await what "
                "takes time, or hand it to asyncio.to_thread",
            )
        return attempt


async def check_rollouts(
    case: Rehearsal,
    environment: Environment,
    skill: Skill,
    items: Mapping[Split, Sequence[Item]],
    promises: Promises,
) -> None:
    """Let a scripted target work on items of each split, with right and wrong answers and with skills that differ."""
    seen = _Examination(case=case, environment=environment, skill=skill, promises=promises)
    for split in items.values():
        for item in split[: case.rollouts]:
            with promises.during("a rollout"):
                await _check_item(seen, item)
            with promises.during("secrets"):
                secrets = environment.secrets(item) if isinstance(environment, KeepsSecrets) else Secrets()
                promises.hold(isinstance(secrets, Secrets), f"secrets returns {type(secrets).__name__}, not Secrets")
        for item in split[:1]:
            with promises.during("a rollout with another skill"):
                await _check_skill(seen, item, *reversed(_SENTENCES))
    passes = seen.passed and (any(seen.passed) if case.wrong else all(seen.passed))
    promises.hold(
        not passes,
        "a wrong answer passes: score has to compare trajectory.answer with the item, and give less than 1.0 to what "
        "does not solve it (wrong= says what that is)",
    )
    for item in next(iter(items.values()), ())[:1]:
        await _check_outage(environment, item, skill, promises)


async def _check_item(seen: _Examination, item: Item) -> None:
    case, promises = seen.case, seen.promises
    wrong = await _check_skill(seen, item, *_SENTENCES)
    if not _is_whole(wrong, item, promises):
        return
    right = None
    if case.answers:
        right = await seen.attempt(item, seen.skill, case.answers(item))
        if not _is_whole(right, item, promises):
            return
        promises.hold(right.passed, "the right answer does not pass")
    again = await seen.environment.score(item, wrong.trajectory, Scripted((case.verdict,)))
    same = again == (wrong.scored, wrong.feedback)
    promises.hold(same, "the same trajectory gets another score or feedback when it is scored again")
    judged = bool(case.verdict and wrong.judge.heard)
    if judged or (right is not None and right.target.says == wrong.target.says):
        return
    golden = wrong.passed and _is_golden(seen.environment, item, wrong, right)
    promises.hold(
        not golden,
        "a rollout returns the gold answer though the target said something else: trajectory.answer has to be what the "
        "target said",
    )
    seen.passed.append(wrong.passed and not golden)


async def _check_skill(seen: _Examination, item: Item, sentence: str, other: str) -> Attempt:
    """Attempt ``item`` with a skill that holds ``sentence``, by a target that gives a wrong answer."""
    reads: list[str] = []
    skill = watched(with_sentence(seen.skill, sentence), reads)
    attempt = await seen.attempt(item, skill, seen.case.wrong_answer(item))
    heard = "\n".join(text for messages in attempt.target.heard for text in messages)
    # With tools the target may fetch the text itself, which no script can know how to do.
    shown = sentence in heard or (attempt.target.tools and bool(reads))
    own = seen.promises.hold(
        other not in heard,
        "the target sees the skill of an earlier rollout: a rollout has to show it the skill that it is given",
    )
    seen.promises.hold(
        shown or not own or not attempt.target.heard,
        "the target never sees the skill: a sentence that is added to SKILL.md is in no message to it; a rollout has "
        "to show it skill.document",
    )
    return attempt


def _is_whole(attempt: Attempt, item: Item, promises: Promises) -> bool:
    """Say whether trajectory and score are what the contract wants, so that there is something to compare."""
    trajectory = attempt.trajectory
    if not promises.hold(isinstance(trajectory, Trajectory), "rollout does not return a Trajectory"):
        return False
    promises.hold(attempt.target.heard, "a rollout does not ask the target")
    promises.hold(trajectory.item_id == item.id, "a trajectory's item_id is not that of its item")
    promises.hold(trajectory.turns, "a trajectory has no turns, so that the optimizer sees nothing")
    scored = promises.hold(isinstance(attempt.scored, Scored), "score does not return a Scored first")
    return promises.hold(isinstance(attempt.feedback, str), "score does not return the feedback second") and scored


def _is_golden(environment: Environment, item: Item, wrong: Attempt, right: Attempt | None) -> bool:
    """Say whether the answer of an attempt is the right one although the target gave a wrong one."""
    answer = wrong.trajectory.answer.strip()
    if right is not None and answer and answer == right.trajectory.answer.strip():
        return True
    secrets = environment.secrets(item) if isinstance(environment, KeepsSecrets) else None
    golds = {gold.strip() for gold in secrets.answers} if isinstance(secrets, Secrets) else set()
    return bool(answer) and answer in golds and answer not in "\n".join(wrong.target.says)


async def _check_outage(environment: Environment, item: Item, skill: Skill, promises: Promises) -> None:
    """Let the target fail for good: that is no answer, and no score."""
    try:
        await environment.rollout(item, skill, Scripted(fails=True))
    except (BackendError, EnvironmentFaultError):
        return
    except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
        promises.hold(kept=False, sentence=f"a failed call of the target becomes {described(error)}")
        return
    promises.hold(kept=False, sentence="a failed call of the target becomes a trajectory, which would be scored")
