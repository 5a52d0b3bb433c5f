"""Owns what every environment promises of answers: right ones score, empty ones do not, secret ones are not shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillgit.domain.leaks import QUOTED_WORDS, Secrets, words
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.plugin.environment import CallBounds, Environment, call_bounds, secrets_of
from skillgit.testing.rehearsal import Rehearsal, RehearsalOutcome, Scripted

if TYPE_CHECKING:
    from skillgit.testing.case import Promises


def check_bounds(environment: Environment, item: Item, promises: Promises) -> None:
    """Look at what the environment says of the calls that ``item`` takes."""
    bounds = call_bounds(environment, item)
    if bounds is None:
        return
    if not promises.hold(
        isinstance(bounds, CallBounds), f"call_bounds returns {type(bounds).__name__}, not CallBounds"
    ):
        return
    sane = all(0 <= least <= most for least, most in (bounds.target, bounds.judge)) and bounds.repairs >= 0
    promises.hold(sane, "call_bounds has a least number of calls above the greatest, or a negative one")


def check_calls(environment: Environment, item: Item, attempt: RehearsalOutcome, promises: Promises) -> None:
    """Compare the calls of an attempt with the bounds that the environment gives."""
    bounds = call_bounds(environment, item)
    if not isinstance(bounds, CallBounds):
        return
    least, most = bounds.target
    count, judge_calls = len(attempt.target.requests), len(attempt.judge.requests)
    promises.hold(
        least <= count <= most, f"a rollout asks the target {count} times, call_bounds says {least} to {most}"
    )
    most_judged = bounds.judge[1] + bounds.repairs
    promises.hold(
        judge_calls <= most_judged,
        f"a score asks the judge {judge_calls} times, call_bounds says {most_judged} at most",
    )


def check_nothing(attempt: RehearsalOutcome, promises: Promises) -> None:
    """An empty reply is an answer like any other, and solves nothing; the judge's words do not count."""
    score = attempt.score
    if score is not None and not attempt.judge.requests:
        promises.hold(score.hard == score.soft == 0.0, "an empty reply gets a score above 0")


async def check_golds(
    case: Rehearsal, environment: Environment, item: Item, trajectory: Trajectory, promises: Promises
) -> None:
    """Score the accepted answers among the secrets of ``item``; a score that a judge gives says nothing of them."""
    for gold in secrets_of(environment, item).answers:
        judge = Scripted((case.verdict,))
        score, _ = await environment.score(item, replace(trajectory, answer=gold), judge)
        right = judge.requests or score.passed
        promises.hold(
            right, "an answer that secrets names does not get the full score (partial_answers= says they are parts)"
        )


def check_feedback(attempt: RehearsalOutcome, secrets: Secrets, promises: Promises) -> None:
    """Look for checks: the optimizer may read a train item's answers and what went wrong, and no source of a check."""
    text = " ".join(words(attempt.feedback))
    for check in secrets.checks:
        source = words(check)
        has_quote = len(source) >= QUOTED_WORDS and " ".join(source) in text
        promises.hold(not has_quote, "feedback quotes the source of a check, which no skill may know")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What the target was first sent about an item, and the texts from which an answer may have come into it."""

    prompt: str
    answers: Sequence[str]
    fields: Mapping[str, Sequence[str]]  # of the item, each with its texts
    texts: str


@dataclass(slots=True)
class ShownPrompts:
    """The prompts of all items that were rolled out: none may give away an answer."""

    prompts: list[_Shown] = field(default_factory=list)

    def add(self, item: Item, attempt: RehearsalOutcome, secrets: Secrets, skill: Skill) -> None:
        prompt = "\n".join(attempt.target.requests[0]) if attempt.target.requests else ""
        fields = {name: list(_leaves(value)) for name, value in item.content.items()}
        texts = "\n".join((*secrets.inputs, skill.document))
        self.prompts.append(
            _Shown(prompt=_folded(prompt), answers=secrets.answers, fields=fields, texts=_folded(texts))
        )

    def check(self, promises: Promises) -> None:
        """Look for answers that neither the question nor another shown text holds, nor the prompts of other items."""
        # A field is one of answers if it holds nothing else in any item.
        shown_fields = {
            name for each in self.prompts for name, leaves in each.fields.items() if {*leaves} - {*each.answers}
        }
        for each in self.prompts:
            texts = [each.texts, *(_folded(leaf) for name in shown_fields for leaf in each.fields.get(name, ()))]
            texts += [apart.prompt for apart in self.prompts if not {*apart.answers} & {*each.answers}]
            for answer in each.answers:
                is_own = any(_holds(text, answer) for text in texts)
                promises.hold(
                    is_own or not _holds(each.prompt, answer),
                    "the target is shown an answer that secrets names, which its question does not hold",
                )


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _leaves(entry)
    elif value is not None:
        yield str(value)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _holds(text: str, answer: str) -> bool:
    answer = _folded(answer)
    return bool(answer) and re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) is not None
