"""Rollout: the target model works on items with a skill, and the environment scores what it did.

An environment may be a user's own class, so that anything may go wrong in it. Anything it raises is a failure of the
item that it worked on, never a score, and other items go on. What ends a run ends it also if an environment catches it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from skillgit.calls.client import Calls
from skillgit.domain.evaluation import FailedToEvaluate, FailureKind, Scored, Split
from skillgit.domain.ids import digest
from skillgit.domain.outcomes import outcome_row, read_outcome
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Rollout, Trajectory, Turn
from skillgit.engine.concurrency import growing, ordered
from skillgit.engine.method_settings import Companions, PairPolicy, TargetSettings
from skillgit.engine.minibatches import shuffle, slow_sample, stream
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN
from skillgit.engine.trajectory_elision import LEAST, elide
from skillgit.errors import BackendError, ConfigError, EnvironmentFaultError, SandboxError
from skillgit.executors.attempt import AskedModel, Row, described
from skillgit.plugin.backend import Message, Reply, ReplyForm, Tool
from skillgit.wire import AgentQuestion

if TYPE_CHECKING:
    from skillgit.endpoint.server import Ask, Lease
    from skillgit.engine.session import Session


@dataclass(slots=True, kw_only=True)
class RoleConversation(AskedModel):
    """What one attempt asks one model; ``purpose``, ``seed``, ``item`` and ``sample`` name its draws."""

    calls: Calls
    role: str
    purpose: str
    stage: str
    seed: int
    item: str
    sample: int = 0
    turn: int = 0  # how many questions there were, which names the draws
    end: BaseException | None = None  # the error of a question that no item survives, such as a cap that is reached
    work: dict[str, tuple[Turn, ...]] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool], form: ReplyForm | None) -> Reply:
        self.turn += 1
        draw: tuple[str | int, ...] = (self.purpose, self.seed, self.item, self.turn, *_resampled(self.sample))
        with self._ending():
            return await self.calls.call(self.role, self.stage, messages, draw=draw, tools=tools, form=form)

    async def ask_for_program(self, question: AgentQuestion, provider: str, number: int) -> Reply:
        before: tuple[str | int, ...] = (self.purpose, self.seed, self.item, *_resampled(self.sample))
        draw = (*before, question.identity, number)
        with self._ending():
            return await self.calls.answer(self.role, self.stage, question, provider, draw=draw)

    def lease(self, ask: Ask) -> AbstractAsyncContextManager[Lease]:
        return self.calls.lease(ask)

    def restart(self) -> None:
        self.turn = 0
        AskedModel.restart(self)  # super() fails in a dataclass with slots

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Keep an error that no item survives."""
        try:
            yield
        except (BackendError, asyncio.CancelledError):
            raise
        except BaseException as error:
            self.end = error
            raise


def _resampled(sample: int) -> tuple[int, ...]:
    """Return what a draw or a key adds for another sample than the first."""
    return (sample,) if sample else ()


async def roll_out(
    session: Session,
    skill: Skill,
    items: Sequence[Item],
    stage: str,
    *,
    sample: int = 0,
    slots: asyncio.Semaphore | None = None,
    each: Callable[[Rollout], None] = lambda _: None,
) -> list[Rollout]:
    """Roll out ``items`` with ``skill``; results are in the order of the items.

    An item that was rolled out before with the same skill, environment, model, seed and sample is not rolled out again;
    each ``sample`` is a draw of its own. An item that could not be evaluated has the outcome ``FailedToEvaluate``. One
    of a permanent kind is kept like a score; what infrastructure spoilt is tried again by the next who asks.

    ``slots`` are the places of rollouts in progress, where they are shared with others; each call has its own
    otherwise.
    """
    skill = delivered(skill, session.settings.target)
    prefixes = _shared_keys(session, skill)

    async def one(item: Item) -> Rollout:
        keys = _keys(session, item, sample, prefixes)
        return await _one(session, skill, item, stage, sample=sample, keys=keys)

    def tell(rollout: Rollout) -> None:
        session.monitor.rolled(rollout)
        each(rollout)

    return await ordered(one, items, limit=session.workers if slots is None else slots, each=tell)


def _shared_keys(session: Session, skill: Skill) -> tuple[tuple[str, ...], ...]:
    """Return what the keys of a skill's outcomes begin with: as they are, and where it differs, as they once were."""
    return tuple((skill.digest, setup) for setup in dict.fromkeys((session.setup, session.setup_by_name)))


def _keys(session: Session, item: Item, sample: int, prefixes: tuple[tuple[str, ...], ...]) -> tuple[str, str]:
    keys = [
        digest(["rollout", *prefix, item.id, item.digest, session.seed, *_resampled(sample)]) for prefix in prefixes
    ]
    return keys[0], keys[1] if len(keys) > 1 else ""


async def _one(
    session: Session, skill: Skill, item: Item, stage: str, *, sample: int, keys: tuple[str, str]
) -> Rollout:
    async def produce() -> tuple[object, bool]:
        context = {"calls": session.calls, "stage": stage, "seed": session.seed, "item": item.id, "sample": sample}
        target = RoleConversation(role="target", purpose="rollout", **context)  # type: ignore[arg-type]
        judge = RoleConversation(role="judge", purpose="judge", **context)  # type: ignore[arg-type]

        async def attempt() -> Row:
            return await session.executor.attempt(session.task.environment, item, skill, target, judge)

        return await kept_row(session, attempt, target, judge)

    row = cast("Mapping[str, object]", await session.calls.rollout(keys[0], produce, keys[1]))
    return _rollout(item, row, counts_tokens=session.rule.counts_tokens)


async def kept_row(
    session: Session, attempt: Callable[[], Awaitable[Row]], *conversations: RoleConversation
) -> tuple[Row, bool]:
    """Return the outcome of an attempt, or why there is none, and whether the ledger keeps it.

    The last of ``conversations`` is that of the judge, which is asked again where its answers were of no use.
    """
    try:
        await session.executor.open(session.task.environment)
        async with session.calls.item_deadline():
            row, keep = await attempt(), True
    except (KeyboardInterrupt, SandboxError, ConfigError):
        raise
    except BaseException as error:  # noqa: BLE001 - see the module
        if isinstance(error, BackendError | EnvironmentFaultError):
            failure = FailedToEvaluate(error.message, FailureKind.of(error))
        else:
            failure = FailedToEvaluate(f"the environment raised {described(error)}", FailureKind.ENVIRONMENT)
        row, keep = outcome_row(failure), failure.kind.permanent
        _go_on(*conversations)
        if failure.kind is FailureKind.ENVIRONMENT:
            session.calls.ask_anew(conversations[-1].role)
    else:
        _go_on(*conversations)
    return row, keep


def _go_on(*conversations: RoleConversation) -> None:
    """Raise what ends more than one item, which an environment may have caught, or that no caller waits any more."""
    for conversation in conversations:
        if conversation.end is not None:
            raise conversation.end
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _rollout(item: Item, row: Mapping[str, object], *, counts_tokens: bool) -> Rollout:
    """Return what the ledger has of ``item``; its tokens only where a gate counts them, for outcomes are evidence."""
    outcome = read_outcome(row)
    if isinstance(outcome, FailedToEvaluate):
        return Rollout(item=item, trajectory=None, outcome=outcome)
    outcome = outcome if counts_tokens else replace(outcome, tokens=None)
    turns = cast("list[dict[str, object]]", row["turns"])
    trajectory = Trajectory(
        item_id=item.id, turns=tuple(map(Turn.read, turns)), answer=str(row["answer"]), feedback=str(row["feedback"])
    )
    return Rollout(item=item, trajectory=trajectory, outcome=outcome)


def rollout_keys(session: Session, skill: Skill, items: Sequence[Item], *, sample: int = 0) -> list[tuple[str, str]]:
    """Return the ledger's keys of the outcomes that :func:`roll_out` would bring, in the order of ``items``.

    The second one is what an outcome was kept under before servers were recorded; empty where that is the same.
    """
    prefixes = _shared_keys(session, delivered(skill, session.settings.target))
    return [_keys(session, item, sample, prefixes) for item in items]


TAG = "companion"


def delivered(skill: Skill, settings: TargetSettings) -> Skill:
    """Return ``skill`` as a target gets it: with the texts that its ``SKILL.md`` names at the end of that.

    A file counts as named if its path inside the skill folder is in the text: in a link, in code or in a sentence.
    What those files name in turn is not followed. They share ``max_companion_tokens`` in the order in which they
    are named; what is cut says so, and those that have no room are listed.
    """
    if settings.companions is Companions.NONE or len(skill.files) == 1:
        return skill
    room = settings.max_companion_tokens * CHARACTERS_PER_TOKEN
    parts: list[str] = []
    left_out: list[str] = []
    for path, text in named_texts(skill):
        if room < min(LEAST, len(text)):
            left_out.append(path)
            continue
        part = elide(text, room)
        room -= len(part)
        parts.append(f'<{TAG} path="{path}">\n{part.strip(chr(10))}\n</{TAG}>')
    if left_out:
        parts.append(f"[... {', '.join(left_out)} left out: too long ...]")
    if not parts:
        return skill
    return skill.with_text(DOCUMENT, "\n\n".join([skill.document.rstrip("\n"), *parts]) + "\n")


def named_texts(skill: Skill) -> list[tuple[str, str]]:
    """Return path and text of the other text files that ``SKILL.md`` names, in the order in which it does."""
    body = skill.document.removeprefix(frontmatter(skill.document))
    mentions = [
        (match.start(), path, text)
        for path, text in skill.text_files()
        if path != DOCUMENT and (match := _mention(path).search(body)) is not None
    ]
    return [(path, text) for _, path, text in sorted(mentions)]


def _mention(path: str) -> re.Pattern[str]:
    """Return what finds ``path`` where it is not part of another path; a folder's placeholder may be before it."""
    return re.compile(rf"(?:(?<![\w./\-])(?:\./)?|(?<=\}}/)){re.escape(path)}(?![\w/\-]|\.\w)")


ROUND = 8  # items that are rolled out at a time to top up changed pairs


class Category(StrEnum):
    REGRESSED = "regressed"
    PERSISTENT_FAIL = "persistent_fail"
    IMPROVED = "improved"
    STABLE_SUCCESS = "stable_success"

    @property
    def is_change(self) -> bool:
        return self in {Category.REGRESSED, Category.IMPROVED}


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPair:
    category: Category
    previous: Rollout
    current: Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochComparison:
    pairs: tuple[RolloutPair, ...]
    rest: tuple[RolloutPair, ...]


async def compare_versions(session: Session, previous: Skill, current: Skill, epoch: int) -> EpochComparison:
    """Roll out a sample of train items with both versions, and keep the pairs that the settings ask for.

    ``changed`` goes on with other train items, in an order of its own and in rounds of fixed size, until it has as many
    pairs as the sample has items or there are no more; what it keeps does not depend on how many run at once.
    """
    settings, items = session.settings.optimizer, session.task.items[Split.TRAIN]
    policy = settings.longitudinal_pair_policy
    sample = slow_sample(items, seed=session.seed, epoch=epoch, size=settings.slow_update_samples)
    reserve: list[Item] = []
    if policy is PairPolicy.CHANGED:
        ids = {item.id for item in sample}
        reserve = shuffle([item for item in items if item.id not in ids], stream(session.seed, "slow-pairs", epoch))
    pairs = await _roll_out_both(session, previous, current, sample, reserve)
    selection = [pair for pair in pairs if _keeps(policy, pair)][: settings.slow_update_samples]
    return EpochComparison(
        pairs=tuple(worst_first(selection)),
        rest=tuple(worst_first([pair for pair in pairs if all(pair is not entry for entry in selection)])),
    )


def _keeps(policy: PairPolicy, pair: RolloutPair) -> bool:
    return policy is PairPolicy.MIXED or pair.category.is_change == (policy is PairPolicy.CHANGED)


async def _roll_out_both(
    session: Session, previous: Skill, current: Skill, sample: Sequence[Item], reserve: Sequence[Item]
) -> list[RolloutPair]:
    """Roll out ``sample``, and rounds of ``reserve``, each as soon as it is certain that it will be needed.

    The items of a round are rolled out with the one version and then with the other, not by turns: a server that keeps
    the prompts that it worked on then works on each text once.
    """
    settings, slots = session.settings.optimizer, asyncio.Semaphore(session.workers)
    items, by_index = [*sample, *reserve], dict[int, list[RolloutPair]]()
    start_count, possible = 0, 0

    async def one(skill: Skill, index: int) -> list[Rollout]:
        return await roll_out(session, skill, [items[index]], "slow", slots=slots)

    async def pair(index: int, before: asyncio.Task[list[Rollout]], after: asyncio.Task[list[Rollout]]) -> None:
        nonlocal possible
        by_index[index] = compare(await before, await after)
        possible -= not any(_keeps(settings.longitudinal_pair_policy, pair) for pair in by_index[index])
        top_up()

    def start(count: int) -> None:
        nonlocal start_count, possible
        indexes = range(start_count, min(start_count + count, len(items)))
        start_count, possible = indexes.stop, possible + len(indexes)
        sides = [[group.create_task(one(skill, index)) for index in indexes] for skill in (previous, current)]
        for index, before, after in zip(indexes, *sides, strict=True):
            group.create_task(pair(index, before, after))

    def top_up() -> None:
        while possible < settings.slow_update_samples and start_count < len(items):
            start(ROUND)

    async with growing() as group:
        start(len(sample))
        top_up()
    return [pair for index in sorted(by_index) for pair in by_index[index]]


def compare(previous: Sequence[Rollout], current: Sequence[Rollout]) -> list[RolloutPair]:
    """Pair two rollouts of the same items, in their order; items without a score on both sides are left out."""
    pairs: list[RolloutPair] = []
    for before, after in zip(previous, current, strict=True):
        if isinstance(before.outcome, Scored) and isinstance(after.outcome, Scored):
            category = _CATEGORIES[before.outcome.passed, after.outcome.passed]
            pairs.append(RolloutPair(category=category, previous=before, current=after))
    return pairs


_CATEGORIES = {
    (True, False): Category.REGRESSED,
    (False, False): Category.PERSISTENT_FAIL,
    (False, True): Category.IMPROVED,
    (True, True): Category.STABLE_SUCCESS,
}
"""How an outcome changed, by whether the item was solved before and is solved now."""


def worst_first(pairs: Sequence[RolloutPair]) -> list[RolloutPair]:
    """Return the pairs by category, regressions first; within one they keep their order."""
    order = list(Category)
    return sorted(pairs, key=lambda pair: order.index(pair.category))
