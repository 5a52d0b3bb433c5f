"""Owns what each call of a training has to wait for: the replies that decide its text, or whether it is made at all.

That is read from what the calls are, never from when they were made. A rollout waits for the decision that made its
skill the current one; an analyst for the rollouts up to the last one that it reads, because what came before it decides
which minibatch an item falls into; a merge for all analysts, or for the merges of the level before; a ranking for the
last merge; a candidate's evaluation for the last word of the optimizer, and from item to item until it is certain that
the gate's decision is still open there; the closing evaluations for the last decision. Everything waits for the calls
that try out whether the models answer at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.evaluation import Evaluation, Split
from skillgit.domain.gate_decision import GateRule
from skillgit.engine.measure import WAVE, order
from skillgit_envs import searchqa
from skillgit_envs.shipped_environment import in_turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.workload.trainings import Call, Recording

    from skillgit.domain.evaluation import Scored

_TRAJECTORY = re.compile(r'^<trajectory id="([^"]+)"', re.MULTILINE)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_LEVEL = re.compile(r'^<patches source="\w+" level="(\d+)"', re.MULTILINE)
_LAST_LEVEL = 0
"""How prompts number the merge that joins failures and successes."""
_KNOWN = frozenset(
    {"preflight", "selection", "rollout", "analyst", "merge", "rank", "slow", "slow_update", "meta_skill", "test"}
)


@dataclass(slots=True)
class Plan:
    """Calls and junctions, each with what it waits for; a junction is where many that wait for many meet.

    Attributes:
        needs: For each node the nodes before it.
        bodies: For each node its request; None for a junction.
    """

    needs: list[list[int]] = field(default_factory=list)
    bodies: list[dict[str, Any] | None] = field(default_factory=list)

    def add(self, body: dict[str, Any] | None, needs: Iterable[int]) -> int:
        """Add a node and return its number."""
        self.needs.append(sorted(set(needs)))
        self.bodies.append(body)
        return len(self.needs) - 1

    @property
    def calls(self) -> int:
        """How many requests there are."""
        return sum(body is not None for body in self.bodies)

    @property
    def longest(self) -> int:
        """How many requests follow one another at least, whatever may be in flight at once."""
        depth: list[int] = []
        for body, needs in zip(self.bodies, self.needs, strict=True):
            depth.append(max((depth[before] for before in needs), default=0) + (body is not None))
        return max(depth, default=0)


def plan_of(recording: Recording) -> Plan:
    """Return what ``recording`` asks and what each request waits for.

    Raises:
        RuntimeError: There are calls of a stage that this module does not know.
    """
    unknown = {call.stage for call in recording.calls} - _KNOWN
    if unknown:
        raise RuntimeError(f"nobody knows what calls of the stages {sorted(unknown)} wait for")
    return _Planner(recording).planned()


def user_turn(item: Mapping[str, Any]) -> str:
    """Return what a target is asked about ``item``: the question, and the form of the answer behind it."""
    _, turn = in_turns(searchqa.SearchQA({}, Path()).target_prompt())
    return turn.replace("{question}", searchqa.user_prompt(item["question"], item["context"]))


class _Planner:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._plan = Plan()
        self._golds = {user_turn(item): item for split in recording.items.values() for item in split}
        self._outcomes = {
            (call.system, self._item(call)): searchqa.score(
                _ANSWER.findall(call.text)[-1], self._golds[call.user]["answers"]
            )
            for call in recording.calls
            if call.stage == "selection"
        }
        self._current = next(call.system for call in recording.calls if call.stage == "selection")
        self._decided: list[int] = []
        self._remembered: list[int] = []

    def planned(self) -> Plan:
        """Plan one event after the other."""
        scopes: dict[str, dict[str, list[Call]]] = {}
        for call in self._recording.calls:
            scopes.setdefault(call.scope, {}).setdefault(call.stage, []).append(call)
        for scope, calls in scopes.items():
            if scope in ("start", "finish"):
                self._decided += [self._ask(call, ()) for call in calls.get("preflight", [])]
                for call in calls.get("selection", []) + calls.get("test", []):
                    self._ask(call, self._decided)
                continue
            self._event(scope, calls)
        return self._plan

    def _event(self, scope: str, calls: Mapping[str, Sequence[Call]]) -> None:
        rolled = {self._item(call): self._ask(call, self._decided) for call in calls.get("rollout", [])}
        compared = [self._ask(call, self._decided) for call in calls.get("slow", [])]
        said = [*self._decided, *rolled.values(), *compared]
        if analysts := calls.get("analyst", []):
            said = [self._ask(call, [*self._remembered, *self._read(call, rolled)]) for call in analysts]
            said = self._merged(calls.get("merge", []), [self._plan.add(None, said)])
            said = [self._ask(call, said) for call in calls.get("rank", [])] or said
        memory = [self._ask(call, said) for call in calls.get("meta_skill", [])]
        said = [self._ask(call, said) for call in calls.get("slow_update", [])] or said
        # A candidate that was rejected may be followed by parts of it; the last one is that of the event.
        candidates: dict[str, list[Call]] = {}
        for call in calls.get("selection", []):
            candidates.setdefault(call.system, []).append(call)
        if scope in self._recording.measured:
            for asked in candidates.values():
                said = self._evaluated(asked, said)
        if scope in self._recording.accepted and candidates:
            self._current = list(candidates)[-1]
        self._decided = [self._plan.add(None, said)]
        self._remembered = memory or self._remembered

    def _read(self, analyst: Call, rolled: Mapping[str, int]) -> list[int]:
        """Return the rollouts that fill the analyst's minibatch, and those of the items before."""
        places = list(rolled)
        shown = [places.index(item) for item in _TRAJECTORY.findall(analyst.user) if item in rolled]
        waits = list(rolled.values())[: max(shown, default=-1) + 1]
        return waits or self._decided

    def _merged(self, merges: Sequence[Call], said: list[int]) -> list[int]:
        """Plan merges level by level; those from failures and from successes wait for each other at the last one."""
        levels = {call.user: int(max(_LEVEL.findall(call.user), key=int)) for call in merges}
        for level in (*sorted({*levels.values()} - {_LAST_LEVEL}), _LAST_LEVEL):
            said = [self._ask(call, said) for call in merges if levels[call.user] == level] or said
        return said

    def _evaluated(self, calls: Sequence[Call], said: list[int]) -> list[int]:
        """Plan a candidate's evaluation, and return what its decision waits for."""
        if not calls:
            return said
        candidate = calls[0].system
        asked = {self._item(call): call for call in calls}
        val = [item["id"] for item in self._recording.items["val"]]
        base = _evaluation({item: self._outcomes[self._current, item] for item in val})
        course = Course(base, {item: self._outcomes.get((candidate, item)) for item in val})
        known = [self._plan.add(None, said)]
        """After so many items, in order: where their outcomes are known."""
        for place, item in enumerate(course.items):
            ends = [self._ask(asked[item], [known[course.waits[place]]])] if item in asked else []
            known.append(self._plan.add(None, [known[-1], *ends]))
        return [known[course.settled]]

    def _ask(self, call: Call, needs: Sequence[int]) -> int:
        return self._plan.add(call.document, needs)

    def _item(self, call: Call) -> str:
        return str(self._golds[call.user]["id"])


class Course:
    """How an evaluation with early stop goes on.

    Args:
        base: What the candidate is compared with.
        outcomes: What the candidate does on each item; None where nobody needed to know.

    Attributes:
        items: The items that are rolled out, in order.
        waits: For each of them, how many of the items before it have to be known before it is certain to be needed.
        settled: After how many of them the decision was known.
    """

    def __init__(self, base: Evaluation, outcomes: Mapping[str, Scored | None]) -> None:
        self._base, self._order, self._outcomes = base.scored, order(base, GateRule()), outcomes
        self.items: list[str] = []
        self.waits: list[int] = []
        self.settled = 0
        self._follow()

    def _follow(self) -> None:
        certain = [self._certain(0)]
        while len(self.items) < len(self._order) and not self._is_settled(len(self.items)):
            begin = len(self.items)
            size = max(WAVE, certain[begin] - begin)
            wave = self._order[begin : begin + size]
            for place in range(begin, begin + len(wave)):
                self.waits.append(_first_certain(certain, place, begin))
            self.items += wave
            certain += [self._certain(count) for count in range(begin + 1, begin + len(wave) + 1)]
        self.settled = next((n for n in range(len(self.items)) if self._is_settled(n)), len(self.items))

    def _known(self, count: int) -> dict[str, Scored]:
        known = {item: self._outcomes[item] for item in self._order[:count]}
        missing = [item for item, outcome in known.items() if outcome is None]
        if missing:
            raise RuntimeError(f"the training did not roll out {missing}, which its decision needed")
        return known  # type: ignore[return-value]

    def _is_settled(self, count: int) -> bool:
        return self._lead(count) <= 0

    def _lead(self, count: int) -> float:
        """Return the highest lead over the base that the candidate can still have after ``count`` outcomes."""
        known = self._known(count)
        reached = sum(known[item].hard - self._base[item].hard for item in known)
        return reached + sum(1.0 - self._base[item].hard for item in self._order[count:])

    def _certain(self, count: int) -> int:
        """Return how many items are rolled out in any case, if ``count`` outcomes are known."""
        # An item that fails takes 1 from the highest lead, whether the base solves it or not.
        return count + min(max(0, int(self._lead(count))), len(self._order) - count)


def _first_certain(certain: Sequence[int], place: int, begin: int) -> int:
    """Return after how many outcomes the item at ``place`` is certain to be due; its wave begins at ``begin``."""
    return next(
        count
        for count in range(begin + 1)
        if certain[count] > place or (certain[count] > begin and place < begin + WAVE) or count == begin
    )


def _evaluation(outcomes: dict[str, Scored]) -> Evaluation:
    return Evaluation(split=Split.SELECTION, item_set="", outcomes=outcomes, seed=0)
