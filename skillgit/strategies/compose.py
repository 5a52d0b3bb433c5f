"""Compose: one strategy after the other; the next one takes over when the run has reached a plateau."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

from skillgit.calls.client import Route
from skillgit.domain.run_state import RunState
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.strategy import Proposal, Strategy, TrainSearch, strategy_of
from skillgit.errors import StrategyError
from skillgit.plugin.registry import find_strategy


class Compose(Strategy):
    """Goes through ``train.strategies``, on to the next after ``train.plateau`` steps without a new best.

    The first one follows the last. Rounds are as wide as the widest strategy of the list would have them.
    """

    name: ClassVar[str] = "compose"
    summary: ClassVar[str] = "goes through train.strategies; the next one takes over on a plateau"
    keys: ClassVar[tuple[str, ...]] = ("train.strategies", "train.plateau")

    def check(self, settings: MethodSettings, optimizer: Route) -> None:
        for name in settings.train.strategies:
            _strategy(name).check(settings, optimizer)

    def width(self, settings: MethodSettings) -> int:
        """Return the largest width of all, so that rounds stay the same when another one takes over."""
        return max(_strategy(name).width(settings) for name in settings.train.strategies)

    def base(self, search: TrainSearch) -> int:
        return _current(search).base(search)

    async def propose(self, search: TrainSearch) -> Proposal:
        return await _current(search).propose(search)

    async def unite(self, search: TrainSearch, proposals: Sequence[Proposal]) -> Proposal | None:
        return await _current(search).unite(search, proposals)


def _current(search: TrainSearch) -> Strategy:
    train = search.session.settings.train
    return _strategy(train.strategies[switches(search.state, train.plateau) % len(train.strategies)])


def switches(state: RunState, plateau: int) -> int:
    """Return how often a plateau was reached by now: so many steps since a new best, or since the last one."""
    bests = {version.step for version in state.versions if version.was_best}
    count = since = 0
    for step in range(1, state.step + 1):
        if step in bests:
            since = step
        elif step - since >= plateau:
            count, since = count + 1, step
    return count


@cache
def _strategy(name: str) -> Strategy:
    if name == Compose.name:
        raise StrategyError("compose cannot be one of its own strategies", hint="take it out of train.strategies")
    return strategy_of(find_strategy(name, Path()).cls, name)
