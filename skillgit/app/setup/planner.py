"""From work that is known to the calls, tokens, dollars and seconds that it takes: what every plan is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from skillgit.app.setup.basis import name_warnings
from skillgit.app.setup.plan import Bound, Plan, PlanRow, cap_notes, total_of
from skillgit.app.setup.run_setup import Setup
from skillgit.calls.pricing import dollars
from skillgit.calls.route import QUESTION, Route, reply_key
from skillgit.domain.cost import Caps
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN
from skillgit.engine.rollout import AGREEMENT, Grading, delivered, grading_key, rollout_keys
from skillgit.engine.search import Session
from skillgit.plugin.backend import Usage
from skillgit.plugin.call_records import request_digest
from skillgit.plugin.environment import CallBounds, asks_judge, call_bounds

ANSWER_TOKENS = 100
"""Tokens that a reply of the target or of the judge is taken to have."""
RUBRIC_TOKENS = 300
"""Tokens that the instructions of a judge are taken to have."""
REPLY_TOKENS = 400
"""Tokens that an optimizer's reply is taken to have."""
PREFLIGHT = "preflight"
"""The stage of the calls by which every model is reached before the first one that matters."""
AGAIN = "asked again"
"""The stage of the calls that a reply costs which cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """Calls of the optimizer in one stage."""

    stage: str
    calls: int  # how many, provided that every reply can be used
    prompt: int
    reply: int
    in_a_row: int  # how many of them have to wait for one another
    width: int = 1  # how many may be in flight at once
    certain: bool = False


@dataclass(slots=True)
class _Rollouts:
    target: list[int] = field(default_factory=lambda: [0, 0])
    judge: list[int] = field(default_factory=lambda: [0, 0])
    tokens: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    repairs: int = 0
    repair_tokens: int = 0
    longest: int = 0
    is_open: bool = False


_ASKING = "asks its model several times a call, with longer prompts than the plan counts; only a cap bounds its cost"


class Planner:
    """Collects what a command will ask, stage by stage.

    ``paces`` are the seconds of a call by role and model; ``basis`` says what is measured with.
    """

    def __init__(self, setup: Setup, session: Session, paces: Mapping[tuple[str, str], float], basis: str = "") -> None:
        self._basis = basis
        self.setup = setup
        self.session = session
        self._paces = paces
        self._rows: list[PlanRow] = []
        self._again: list[PlanRow] = []
        self._seen: set[str] = set()
        self._lengths: dict[str, int] = {}
        self.rollouts = 0
        self.known = 0

    def preflight(self, *, optimizer: bool = False, roles: Sequence[str] = ()) -> None:
        """Add the tiny call by which every model is reached that is not on this machine; ``roles`` are all if given."""
        usual = ("target", *(("judge",) if self.session.judged else ()), *(("optimizer",) if optimizer else ()))
        roles = roles or usual
        for role in (role for role in self.setup.asked_roles if role in roles):
            route = self.setup.routes[role]
            key = reply_key(route.answerer, request_digest(route.request(QUESTION)), (PREFLIGHT, role))
            if self.session.calls.ledger.reply(key) is None:
                tokens = (tokens_of(QUESTION[0].text), 1)
                self._rows.append(self._row(role, PREFLIGHT, (1, Bound.EXACTLY), tokens, (0, 1)))

    def roll_out(self, stage: str, texts: Iterable[tuple[Skill, Sequence[Item], int]], *, certain: bool = True) -> None:
        """Add rollouts of texts that are known: those that the ledger has, and repetitions, cost nothing."""
        sums = _Rollouts()
        for skill, items, sample in texts:
            keys = rollout_keys(self.session, skill, items, sample=sample)
            length = self._document(skill)
            for item, (key, old_key) in zip(items, keys, strict=True):
                if key in self._seen:
                    continue
                self._seen.add(key)
                self.rollouts += 1
                if self.session.calls.known_rollout(key, old_key) is not None:
                    self.known += 1
                else:
                    self._take(sums, item, length, 1)
        self._add_rollouts(stage, sums, rounds=1, certain=certain)

    def grade(self, gradings: Iterable[Grading]) -> None:
        """Add gradings of results that are there; those that the ledger has cost nothing."""
        by_role: dict[str, list[Grading]] = defaultdict(list)
        for grading in gradings:
            if self.session.calls.known_rollout(grading_key(self.session, grading)) is None:
                by_role[grading.role].append(grading)
        for role, missing in by_role.items():
            sums = _Rollouts()
            for grading in missing:
                self._take(sums, grading.item, 0, 1, answer=tokens_of(grading.trajectory.answer))
            least, most = sums.judge
            bound = Bound.AT_LEAST if sums.is_open else Bound.EXACTLY if least == most else Bound.AT_MOST
            tokens, pace = (sums.tokens["judge"], most * ANSWER_TOKENS), (1, self.session.workers)
            self._rows.append(self._row(role, AGREEMENT, (most, bound), tokens, pace))
            if sums.repairs:
                again = (sums.repair_tokens, sums.repairs * ANSWER_TOKENS)
                self._again.append(self._row(role, AGAIN, (sums.repairs, Bound.AT_MOST), again, pace))

    def recorded(self, rollouts: int) -> None:
        """Say that so many rollouts are recorded elsewhere than in the ledger."""
        self.rollouts += rollouts
        self.known += rollouts

    def may_roll_out(
        self, stage: str, skill: Skill, items: Sequence[Item], times: int, *, rounds: int = 1, certain: bool = True
    ) -> None:
        """Add at most ``times`` rollouts of each item with unknown texts as long as ``skill``, in ``rounds`` waits.

        Where that is not ``certain``, it may come to more.
        """
        self.may_roll_out_each(stage, skill, [(items, times)], rounds=rounds, certain=certain)

    def may_roll_out_each(
        self,
        stage: str,
        skill: Skill,
        groups: Iterable[tuple[Sequence[Item], int]],
        *,
        rounds: int = 1,
        certain: bool = True,
    ) -> None:
        """Add what :meth:`may_roll_out` adds, for items of which each group has a number of times of its own."""
        sums, length = _Rollouts(is_open=not certain), self._document(skill)
        for items, times in groups:
            for item in items if times else ():
                self._take(sums, item, length, times)
            self.rollouts += len(items) * times
        self._add_rollouts(stage, sums, rounds=rounds, certain=False)

    def dearest(self, items: Sequence[Item], size: int) -> Sequence[Item]:
        """Return the ``size`` items whose rollouts may take the most calls: the bound of any sample of that size."""
        return sorted(items, key=lambda item: -self._bounds(item)[0].target[1])[:size]

    def ask(self, asks: Asks) -> None:
        """Add calls of the optimizer, and those by which unusable replies are sent back once."""
        if not asks.calls:
            return
        bound = Bound.EXACTLY if asks.certain else Bound.AT_MOST
        tokens, pace = (asks.calls * asks.prompt, asks.calls * asks.reply), (asks.in_a_row, asks.width)
        self._rows.append(self._row("optimizer", asks.stage, (asks.calls, bound), tokens, pace))
        with_repair = (tokens[0] + tokens[1], tokens[1])
        self._again.append(self._row("optimizer", AGAIN, (asks.calls, Bound.AT_MOST), with_repair, pace))

    def plan(self, command: str, facts: Mapping[str, str], *, caps: Caps, notes: Iterable[str] = ()) -> Plan:
        """Return the plan of everything that was added."""
        rows = (*self._rows, *_merged(self._again))
        total = total_of(rows)
        is_hedged = self.setup.config.values.calls.hedge and self._rows
        hedging = ("calls.hedge sends slow calls twice, which the plan does not count",) if is_hedged else ()
        agents = {row.role: route for row in rows if (route := self.setup.routes[row.role]).inner is not None}
        asking = tuple(f"{route.backend_name} {_ASKING}" for route in agents.values())
        has_basis = not self._basis or "target" in facts or any(label.rpartition(" ")[2] == "by" for label in facts)
        return Plan(
            command=command,
            facts=facts if has_basis else {**facts, "by": self._basis},
            stages=rows,
            rollouts=self.rollouts,
            known=self.known,
            total=total,
            notes=tuple(
                dict.fromkeys((*name_warnings(self.setup), *notes, *cap_notes(caps, total), *hedging, *asking))
            ),
        )

    def _take(self, sums: _Rollouts, item: Item, document: int, times: int, *, answer: int = ANSWER_TOKENS) -> None:
        bounds, is_certain = self._bounds(item)
        length = self._length(item)
        sums.is_open |= not is_certain
        for role, calls, prompt in (
            ("target", bounds.target, length + document),
            ("judge", bounds.judge, length + answer + RUBRIC_TOKENS),
        ):
            least, most = calls
            pair = getattr(sums, role)
            pair[0] += times * least
            pair[1] += times * most
            # A conversation grows by every reply; what tools answer is not known.
            grown = ANSWER_TOKENS * most * (most - 1) // 2 if role == "target" else 0
            sums.tokens[role] += times * (most * prompt + grown)
        sums.longest = max(sums.longest, bounds.target[1])
        sums.repairs += times * bounds.repairs
        sums.repair_tokens += times * bounds.repairs * (length + answer + ANSWER_TOKENS + RUBRIC_TOKENS)

    def _add_rollouts(self, stage: str, sums: _Rollouts, *, rounds: int, certain: bool) -> None:
        width = self.session.workers
        for role, (least, most) in (("target", sums.target), ("judge", sums.judge)):
            if most:
                exact = certain and least == most
                bound = Bound.EXACTLY if exact else Bound.AT_MOST
                if sums.is_open:
                    bound = Bound.AT_LEAST if certain else Bound.ABOUT
                pace = (rounds * (sums.longest if role == "target" else 1), width)
                tokens = (sums.tokens[role], most * ANSWER_TOKENS)
                self._rows.append(self._row(role, stage, (most, bound), tokens, pace))
        if sums.repairs:
            tokens = (sums.repair_tokens, sums.repairs * ANSWER_TOKENS)
            again = self._row("judge", AGAIN, (sums.repairs, Bound.AT_MOST), tokens, (rounds, width))
            self._again.append(again)

    def _row(
        self, role: str, stage: str, count: tuple[int, Bound], tokens: tuple[int, int], pace: tuple[int, int]
    ) -> PlanRow:
        """Return a row; ``pace`` is how many of its calls wait for one another, and how many are in flight at once."""
        route, calls, (in_a_row, width) = self.setup.routes[role], count[0], pace
        if route.batch and stage != PREFLIGHT:
            return replace(row_of(route, role, stage, count, tokens, seconds=0.0), batches=in_a_row)
        seconds = pace_of(self._paces, role, route.name)
        if not seconds and route.backend.info.needs_network:  # an imported run has no times
            seconds = None
        if seconds is not None:
            limits = self.setup.config.values.calls  # of a minute
            requests, most = limits.requests_per_minute, limits.tokens_per_minute
            throttle = 60 * max(calls / requests if requests else 0.0, sum(tokens) / most if most else 0.0)
            seconds = max(seconds * max(calls / width, in_a_row), throttle)
        return row_of(route, role, stage, count, tokens, seconds=seconds)

    def _bounds(self, item: Item) -> tuple[CallBounds, bool]:
        """Return the calls that a rollout of ``item`` takes, and whether the environment says so."""
        environment = self.session.task.environment
        own_bounds = call_bounds(environment, item)
        if own_bounds is not None:
            return own_bounds, True
        return CallBounds(judge=(1, 1) if asks_judge(environment) else (0, 0)), False

    def _length(self, item: Item) -> int:
        if item.digest not in self._lengths:
            self._lengths[item.digest] = tokens_of(str(dict(item.content)))
        return self._lengths[item.digest]

    def _document(self, skill: Skill) -> int:
        return tokens_of(delivered(skill, self.session.settings.target).document)


def _merged(rows: Sequence[PlanRow]) -> list[PlanRow]:
    """Return one row for each role of ``rows``, which are all of one stage."""
    totals = []
    for role in dict.fromkeys(row.role for row in rows):
        same = [row for row in rows if row.role == role]
        total = total_of(same)
        usd, seconds = None if total.unpriced else total.usd, None if total.untimed else total.seconds
        first = replace(same[0], calls=total.calls, bound=total.bound, usd=usd, seconds=seconds)
        totals.append(replace(first, tokens_in=total.tokens_in, tokens_out=total.tokens_out))
    return totals


def row_of(
    route: Route, role: str, stage: str, count: tuple[int, Bound], tokens: tuple[int, int], *, seconds: float | None
) -> PlanRow:
    """Return the row of so many calls on ``route`` with so many tokens in and out in all, priced."""
    calls, bound = count
    return PlanRow(
        role=role,
        stage=stage,
        model=route.name,
        calls=calls,
        bound=bound,
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        usd=dollars(Usage(tokens_in=tokens[0], tokens_out=tokens[1]), route.in_batch.price),
        seconds=seconds,
    )


def pace_of(paces: Mapping[tuple[str, str], float], role: str, model: str) -> float | None:
    """Return the seconds of a call, in another role if the model never played this one; None if it played none."""
    seconds_of_model = [seconds for (_, name), seconds in paces.items() if name == model]
    return paces.get((role, model), max(seconds_of_model, default=None))


def tokens_of(text: str) -> int:
    return ceil(len(text) / CHARACTERS_PER_TOKEN)
