"""The port of strategies: what proposes candidates, and all that it may use for that.

A strategy proposes and never decides. Gate, early stop, ledger, events and resumption are outside and the same for
all. It sees the train items, what the run has recorded and, of the selection split, ids and scores only.

Its proposals have to follow from the :class:`TrainSearch` that it is given: a run that was killed asks again and
expects the same answer. Chance comes from ``search.random``, answers of models from the ledger.
"""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from itertools import groupby
from typing import ClassVar, NoReturn

from skillgit.calls.client import Route
from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import Application, Edit, EditReport, EditSource
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.evidence_names import LOOKS
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.proposal import BudgetSource, PatchCounts
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Rollout
from skillgit.domain.untrusted.model_text import clean
from skillgit.engine import evidence_files
from skillgit.engine.candidate import (
    Appendix,
    EditBudget,
    RewriteResult,
    edit_lint,
    fits,
    sifted,
    update,
    within_budget,
)
from skillgit.engine.evidence_files import proposed_fields
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.prompt_sections import (
    elide,
    environment_section,
    marked,
    prompt,
    skill_section,
    skill_tokens,
    tagged,
    trajectories_section,
    trajectory_text,
)
from skillgit.engine.proposals import Draft, Proposed
from skillgit.engine.reflect import Reflection
from skillgit.engine.replies import PatchReply, ask
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Search, Session, Stage
from skillgit.errors import SkillgitError, StrategyError
from skillgit.executors.attempt import described
from skillgit.plugin.backend import system, user

_NOTHING = Draft()

NO_REFLECTION = Reflection(failure=(), success=(), findings=(), unusable=0)

_UNLIMITED = EditBudget(limit=None, by=BudgetSource.NONE)


class DraftShape(StrEnum):
    """What a draft is."""

    EDITS = "edits"  # the ranked edits of a step
    TEXT = "whole text"  # the text, written as a whole
    REMOVAL = "removal"  # the removal of rules, and nothing else


class Ending(StrEnum):
    """What happened to a text of a draft after a look at it."""

    KEPT = "kept"
    NARROWED = "narrowed"  # to those of its edits that help alone
    AGAIN = "written again"  # by the optimizer, which saw the look
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookResult:
    """A draft on a few train items.

    Attributes:
        draft: The number of the draft among those of its step, from 1.
        attempt: Which text of this draft it was, from 1.
        shape: What the draft is.
        title: What it is to achieve, in the words of the optimizer.
        proposals: The edits or the text.
        tokens: By how many tokens the skill is longer with it; negative where it is shorter.
        before: The rollouts with the base.
        after: The rollouts of the same items with the draft, in the same order.
        gain: The sum of what the items score more than before, under the gate's metric.
        partial: The same sum of the soft scores, which count parts of an answer where the gate's metric may not.
        objection: Why the draft was not tried at all; empty if it was.
        ending: What happened to this text after the look.
    """

    draft: int
    attempt: int
    shape: DraftShape
    title: str
    proposals: tuple[Proposed, ...]
    tokens: int
    before: tuple[Rollout, ...] = ()
    after: tuple[Rollout, ...] = ()
    gain: float = 0.0
    partial: float = 0.0
    objection: str = ""
    ending: Ending = Ending.KEPT

    @property
    def helps(self) -> bool:
        """Whether the items score more together than before, or as much and clearly more in part."""
        return helps(self.gain, self.partial)

    @property
    def fixed(self) -> tuple[str, ...]:
        """The ids of the items that are solved now, and were not before."""
        return tuple(new.item.id for old, new in self._pairs() if not solved(old) and solved(new))

    @property
    def broken(self) -> tuple[str, ...]:
        """The ids of the items that were solved before, and are not now."""
        return tuple(new.item.id for old, new in self._pairs() if solved(old) and not solved(new))

    def _pairs(self) -> Iterator[tuple[Rollout, Rollout]]:
        """Yield the rollouts of each item that was scored on both sides: a failure to evaluate says nothing."""
        for old, new in zip(self.before, self.after, strict=True):
            if isinstance(old.outcome, Scored) and isinstance(new.outcome, Scored):
                yield old, new

    @property
    def words(self) -> str:
        """What it showed and what happened to the text then, as a clause."""
        if self.objection:
            return f"was not tried ({self.objection}) and was {self.ending.value}"
        if not self.after:
            return f"was not tried, as no train item of the step fails, and was {self.ending.value}"
        length = f", with {-self.tokens} tokens fewer" if self.shape is DraftShape.REMOVAL and self.tokens < 0 else ""
        return f"{self.effect} train items{length}, and was {self.ending.value}"

    @property
    def effect(self) -> str:
        """How many items it fixed and broke; empty if none was tried."""
        if not self.after:
            return ""
        failing = sum(not solved(rollout) for rollout in self.before)
        breaks = f"broke {len(self.broken)} of {len(self.before) - failing}"
        parts = f" ({self.partial:+.2g} in parts of answers)" if self.gain == 0 and self.partial else ""
        return f"fixed {len(self.fixed)} of {failing} and {breaks}{parts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A candidate with the reasons for it; :meth:`TrainSearch.propose` makes one of edits.

    Attributes:
        rollouts: The train rollouts that it rests on.
        reflection: What analysts said of these.
        pool: All that was proposed.
        choice: What was chosen of it, with title and reasons.
        candidate: The text that came of the choice.
        losses: Edits that have no place in the skill, or may not be made.
        joined: The version of another line whose edits it puts on its base; absent if it takes none.
        looks: What drafts of the step did on train items, those that did not become the candidate included.
        evidence: Further files for the event, path to content.
    """

    rollouts: tuple[Rollout, ...] = ()
    reflection: Reflection = NO_REFLECTION
    pool: Draft = _NOTHING
    choice: Draft = _NOTHING
    candidate: RewriteResult
    budget: EditBudget = _UNLIMITED
    mode: UpdateMode = UpdateMode.PATCH
    is_salvage: bool = False  # whether the candidate is a part of one that the gate refused
    appendix: Appendix | None = None  # new reminders; absent if there are none
    losses: tuple[EditReport, ...] = ()
    joined: int | None = None
    is_folder: bool = (
        False  # whether its edits only say which lines of the folder changed, and applying them does not do
    )
    looks: tuple[LookResult, ...] = ()
    evidence: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def application(self) -> Application:
        """The candidate's skill, new reminders included, and what happened to each edit."""
        result = self.candidate.application
        result = replace(result, reports=(*result.reports, *self.losses))
        return result if self.appendix is None else replace(result, skill=self.appendix.joined(result.skill))

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that were applied."""
        return tuple(self.candidate.application.applied)

    @property
    def counts(self) -> PatchCounts:
        count = len(self.application.applied)
        return PatchCounts(
            merged=len(self.pool.proposals),
            ranked=len(self.choice.proposals),
            applied=count,
            skipped=len(self.application.reports) - count,
            budget=self.budget.limit,
            by=self.budget.by,
            mode=self.mode,
            salvaged=self.is_salvage,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSearch(Search):
    """A search as a strategy sees it, of the items those of the train split only, and what a strategy may do in a step.

    Of the selection split it has ids and scores: ``outcomes`` returns those of a version.
    """

    @classmethod
    def within(cls, search: Search) -> TrainSearch:
        """Return ``search`` without the items of other splits."""
        facts = {field.name: getattr(search, field.name) for field in fields(Search)}
        return cls(**facts | {"session": train_only(search.session)})

    async def roll_out(self, items: Sequence[Item], skill: Skill | None = None) -> list[Rollout]:
        """Let the target work on train ``items`` with ``skill``, the base by default; known outcomes cost nothing.

        Raises:
            StrategyError: An item is none of the train split's.
        """
        train = {item.id: item.digest for item in self.train_items}
        if strangers := [item.id for item in items if train.get(item.id) != item.digest]:
            raise StrategyError(
                f"the strategy rolls out {', '.join(strangers[:3])}, which no train item is",
                hint="a strategy sees train items only: search.items has those of the step",
            )
        return await roll_out(self.session, skill or self.skill, items, "rollout" if skill is None else "trial")

    async def attempts(self) -> tuple[tuple[Rollout, ...], list[Rollout]]:
        """Let the target work on the items of the step with the base; return all rollouts, and those that failed."""
        self.session.monitor.stage(Stage.ROLLOUT, len(self.items))
        rollouts = tuple(await self.roll_out(self.items))
        return rollouts, [rollout for rollout in rollouts if rollout.trajectory is not None and not solved(rollout)]

    async def ask(
        self, instructions: str, rollouts: Sequence[Rollout] = (), *, number: int = 0, **sections: str
    ) -> Draft:
        """Ask the optimizer for edits of the base, which it is shown with what happened in ``rollouts``.

        ``sections`` are shown as well, each between tags of its name. Two questions of one step differ in ``number`` or
        in their words. The draft has no proposals if the reply could not be used.
        """
        settings = self.settings
        parts = [environment_section(self.session.task.environment), skill_section(self.skill, settings.optimizer)]
        parts += [tagged(name, text) for name, text in sections.items()]
        if any(rollout.trajectory for rollout in rollouts):
            parts.append(trajectories_section(rollouts, "mixed", settings.gradient.max_trajectory_tokens))
        messages = [
            system(prompt("edits_reply").replace("{instructions}", instructions.strip())),
            user(marked("\n\n".join(filter(None, parts)))),
        ]
        draw = (self.step, number)
        reply = await ask(
            self.session, "strategy", messages, PatchReply, draw=draw, check=fits(self.skill, self.session)
        )
        if reply is None:
            return Draft(unusable=("strategy",))
        items = [rollout.item for rollout in rollouts] or self.train_items
        return reply.draft(EditSource.FAILURE, [item.id for item in items])

    def applied(self, draft: Draft) -> Application:
        """Return the base with the edits of ``draft``, however many they are, and what happened to each."""
        return update(self.skill, draft, None, edit_lint(self.session, self.skill))

    def propose(self, draft: Draft, rollouts: Sequence[Rollout] = (), edits: Sequence[Edit] | None = None) -> Proposal:
        """Return the base with ``edits`` of ``draft``, all by default, as a candidate that rests on ``rollouts``.

        Edits that do not fit are left out, and so are the last ones where the step's budget does not go so far.
        """
        quota = self.quota
        pool = replace(draft, proposals=tuple(map(_cleaned, draft.edits)))
        selection = pool.proposals if edits is None else tuple(map(_cleaned, edits))
        choice = replace(pool, proposals=selection, cut=draft.cut or selection != pool.proposals)
        (choice,), losses = sifted(self, [choice])
        choice = within_budget(self, choice, quota)
        return Proposal(
            rollouts=tuple(rollouts),
            pool=pool,
            choice=choice,
            candidate=RewriteResult(application=self.applied(choice)),
            budget=EditBudget(limit=quota, by=BudgetSource.NONE if quota is None else BudgetSource.SCHEDULE),
            losses=losses,
        )


def _cleaned(edit: Edit) -> Edit:
    """Return an edit that a strategy may have made of any text."""
    return replace(edit, anchor=clean(edit.anchor), content=clean(edit.content))


class Strategy(ABC):
    """Finds candidates; see ``docs/extending.md`` for one of thirty lines."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line for ``skillgit plugins``, which reads it without importing the module
    keys: ClassVar[tuple[str, ...]] = ()  # keys of the configuration on which it depends, such as ``train.round_steps``
    prompts: ClassVar[tuple[str, ...]] = ()  # prompts of ``skillgit.engine`` that only runs of this strategy depend on

    def check(self, settings: MethodSettings, optimizer: Route) -> None:  # noqa: B027 - most can work with any
        """Refuse an optimizer that it cannot work with, by a StrategyError before the run begins; it asks nothing."""

    def width(self, settings: MethodSettings) -> int:
        """Return how many steps are proposed from one version at once: a round."""
        del settings
        return 1

    def base(self, search: TrainSearch) -> int:
        """Return the version that the candidates of the round beginning with ``search.step`` are made of."""
        return search.base

    def certain(self, session: Session, step: int) -> Sequence[Item]:
        """Return train items that ``step`` rolls out with its base in any case, so that they may run ahead."""
        del session, step
        return ()

    @abstractmethod
    async def propose(self, search: TrainSearch) -> Proposal:
        """Return the candidate of one step; one that leaves the base as it was is a step without a candidate."""

    async def unite(self, search: TrainSearch, proposals: Sequence[Proposal]) -> Proposal | None:
        """Return a candidate that takes up those of a whole round, in place of its last one; None for none.

        It is measured first. If the gate accepts it, the others are not measured alone.
        """
        del search, proposals
        return None


def strategy_of(cls: type, name: str) -> Strategy:
    """Return a strategy of ``cls``, which was loaded as ``name``; a StrategyError if it is none or cannot be made.

    One that does not come with skillgit is :class:`Guarded`.
    """
    if not (isinstance(cls, type) and issubclass(cls, Strategy)):
        raise StrategyError(
            f"strategy {name} has to be a class that inherits from skillgit.strategies.Strategy",
            hint="docs/extending.md shows one",
        )
    if cls.__module__.startswith("skillgit.strategies."):
        return cls()
    with _blamed(name, "__init__"):
        return Guarded(cls(), name)


class Guarded(Strategy):
    """Someone else's strategy: where it raises, or breaks the port, a StrategyError says so in one sentence.

    Errors of skillgit pass, so that a cap or a provider that does not answer ends a run as with any strategy.
    """

    def __init__(self, strategy: Strategy, name: str) -> None:
        self._strategy, self.name = strategy, name  # type: ignore[misc]
        self.summary, self.keys = getattr(strategy, "summary", ""), strategy.keys  # type: ignore[misc]

    def check(self, settings: MethodSettings, optimizer: Route) -> None:
        with _blamed(self.name, "check"):
            self._strategy.check(settings, optimizer)

    def width(self, settings: MethodSettings) -> int:
        with _blamed(self.name, "width"):
            width = self._strategy.width(settings)
        if not isinstance(width, int) or width < 1:
            self._refuse("width", width, "a number from 1")
        return width

    def base(self, search: TrainSearch) -> int:
        with _blamed(self.name, "base"):
            base = self._strategy.base(search)
        if not isinstance(base, int) or not 0 <= base < len(search.state.versions):
            self._refuse("base", base, f"the number of a version, 0 to {search.state.version},")
        return base

    def certain(self, session: Session, step: int) -> Sequence[Item]:
        session = train_only(session)
        with _blamed(self.name, "certain"):
            items = tuple(self._strategy.certain(session, step))
        if any(item not in session.task.items[Split.TRAIN] for item in items):
            self._refuse("certain", items, "a sequence of train items")
        return items

    async def propose(self, search: TrainSearch) -> Proposal:
        with _blamed(self.name, "propose"):
            return self._proposal("propose", await self._strategy.propose(search))

    async def unite(self, search: TrainSearch, proposals: Sequence[Proposal]) -> Proposal | None:
        with _blamed(self.name, "unite"):
            proposal = await self._strategy.unite(search, proposals)
            return None if proposal is None else self._proposal("unite", proposal)

    def _proposal(self, method: str, proposal: object) -> Proposal:
        if not isinstance(proposal, Proposal):
            self._refuse(method, proposal, "a Proposal")
        _ = proposal.counts  # what cannot be counted fails here, where it is known whose it is
        if not all(isinstance(content, bytes) for content in proposal.evidence.values()):
            self._refuse(method, proposal.evidence, "evidence of bytes")
        if not all(isinstance(rollout, Rollout) for rollout in proposal.rollouts):
            self._refuse(method, proposal.rollouts, "rollouts")
        return proposal

    def _refuse(self, method: str, value: object, expectation: str) -> NoReturn:
        message = f"strategy {self.name}: {method} returned {reprlib.repr(value)} where {expectation} is asked for"
        raise StrategyError(message, hint=_MEND)


_MEND = "fix the strategy and give the same command again: what was paid for is kept"


@contextmanager
def _blamed(name: str, method: str) -> Iterator[None]:
    """Turn what a plug-in raises in ``method`` into one sentence."""
    try:
        yield
    except SkillgitError:
        raise
    except (Exception, SystemExit) as error:  # the code is someone else's and may fail in any way
        ours = error.split(SkillgitError)[0] if isinstance(error, ExceptionGroup) else None
        if ours is not None:  # of a task group; the first one ends the run as it would alone
            raise next(_leaves(ours)) from error
        raise StrategyError(
            f"strategy {name} broke down in {method}: {described(error, __file__)}", hint=_MEND
        ) from error


def _leaves(group: BaseExceptionGroup[SkillgitError]) -> Iterator[SkillgitError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def train_only(session: Session) -> Session:
    """Return ``session`` as a strategy sees it: of the items the train split, and outcomes of no other."""
    session.leaks.cover(session.task)
    items = {Split.TRAIN: session.task.items[Split.TRAIN]}
    return replace(session, task=replace(session.task, items=items), outcomes=lambda _: None)


def solved(rollout: Rollout) -> bool:
    return isinstance(rollout.outcome, Scored) and rollout.outcome.passed


PARTIAL = 0.5
"""Partial credit, in items, that counts as help where a draft solves no more and no fewer items than the base."""

_ANSWER_SHOWN = 400  # characters of the answer that the base gave


def account(looks: Sequence[LookResult]) -> str:
    """Return a paragraph on what the drafts of a step did, a sentence each, for the reasons in the commit."""
    return " ".join(
        f"Draft {number} ({texts[0].shape.value}) {'; then it '.join(look.words for look in texts)}."
        for number, texts in ((number, list(group)) for number, group in groupby(looks, key=lambda look: look.draft))
    )


def gains(before: Sequence[Rollout], after: Sequence[Rollout], rule: GateRule) -> tuple[float, float]:
    """Return by how much items score more after than before, under the gate's metric and in soft scores.

    Unscored items count nothing.
    """

    def value(outcome: Scored) -> float:
        return outcome.value(rule.metric, rule.soft_weight)

    total = partial = 0.0
    for old, new in zip(before, after, strict=True):
        if isinstance(old.outcome, Scored) and isinstance(new.outcome, Scored):
            # each difference by itself, so that under the soft metric both sums are equal to the last bit
            total += value(new.outcome) - value(old.outcome)
            partial += new.outcome.soft - old.outcome.soft
    return total, partial


def helps(gain: float, partial: float) -> bool:
    """Say whether such gains speak for a draft: an item more, or as many and half of one more in parts."""
    return gain > 0 or (gain == 0 and partial >= PARTIAL)


def tokens_added(skill: Skill, candidate: Skill) -> int:
    """Return by how many tokens the text of ``candidate`` is longer than that of ``skill``."""
    return skill_tokens(candidate) - skill_tokens(skill)


def may_save(session: Session, skill: Skill, candidate: Skill) -> bool:
    """Say whether ``candidate`` may be accepted for fewer tokens: where the gate counts them, a shorter text."""
    return session.rule.counts_tokens and tokens_added(skill, candidate) < 0


def looks_evidence(looks: Sequence[LookResult]) -> evidence_files.Evidence:
    """Return ``looks.json`` with a row for each look, and what the target did in each; nothing without any look."""
    if not looks:
        return {}
    parts = [
        evidence_files.rollouts_files(f"look-{look.draft}-{look.attempt}", look.after) for look in looks if look.after
    ]
    return evidence_files.merged([{LOOKS: evidence_files.json_file([_look_row(look) for look in looks])}, *parts])


def _look_row(look: LookResult) -> dict[str, object]:
    row: dict[str, object] = {
        "draft": look.draft,
        "attempt": look.attempt,
        "shape": look.shape.value,
        "title": look.title,
        "ending": look.ending.value,
        "rollouts": len(look.after),
        "failing": sum(not solved(rollout) for rollout in look.before),
        "solved": sum(map(solved, look.before)),
        "fixed": list(look.fixed),
        "broken": list(look.broken),
        "gain": round(look.gain, 6),
        "tokens": look.tokens,
    }
    if look.partial != look.gain:
        row["partial"] = round(look.partial, 6)
    if look.objection:  # such a text may quote held-out items
        return row | {"objection": look.objection}
    return row | {
        "proposals": [
            proposed_fields(proposal) | ({"items": list(proposal.items)} if proposal.items else {})
            for proposal in look.proposals
        ]
    }


def look_section(look: LookResult, max_tokens: int) -> str:
    """Return what the optimizer sees of a look: each item with what was asked, and both answers with their scores."""
    if look.objection:
        return tagged("look", f"The draft was not tried: {look.objection}")
    parts = [
        tagged(
            "tried",
            "\n".join(
                (
                    tagged("answer_before", elide(" ".join(_answer(old).split()), _ANSWER_SHOWN)),
                    trajectory_text(new.trajectory, max_tokens) if new.trajectory is not None else "",
                )
            ),
            id=new.item.id,
            before=_score(old),
            now=_score(new),
        )
        for old, new in zip(look.before, look.after, strict=True)
    ]
    return tagged("look", "\n".join(parts), fixed=len(look.fixed), broken=len(look.broken))


def _answer(rollout: Rollout) -> str:
    return rollout.trajectory.answer if rollout.trajectory is not None else ""


def _score(rollout: Rollout) -> str:
    if not isinstance(rollout.outcome, Scored):
        return "none"
    hard, soft = rollout.outcome.hard, rollout.outcome.soft
    return f"{hard:g}" if soft == hard else f"{hard:g} ({soft:.2g} in part)"
