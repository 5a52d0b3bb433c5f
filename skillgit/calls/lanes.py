"""Owns what all calls of one provider's model share: how many are in flight, their pace, and the circuit breaker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from skillgit.calls.breaker import Breaker
from skillgit.calls.latency import Latency
from skillgit.calls.line import Line
from skillgit.calls.rates import Rates
from skillgit.calls.refusal import is_refusal
from skillgit.calls.window import Window
from skillgit.errors import RetryableBackendError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from skillgit.calls.policy import Policy
    from skillgit.calls.route import Route
    from skillgit.calls.stop import Stop
    from skillgit.errors import BackendError

_SHORTEST_S = 0.05
_LONGEST_S = 1.0


class Lane:
    """What all calls of one backend and model share, whichever role makes them.

    Attributes:
        breaker: Opens when the provider fails systematically.
        window: How many calls may be in flight.
        latency: How long calls take.
    """

    def __init__(self, *, name: str, width: int, policy: Policy, stop: Stop, random: Random) -> None:
        self.breaker = Breaker(name=name, limit=policy.breaker_limit)
        self.window = Window(width)
        self.latency = Latency()
        self._policy = policy
        self._stop = stop
        self._random = random
        self._here: tuple[asyncio.AbstractEventLoop, Line, Rates] | None = None

    @property
    def line(self) -> Line:
        """The line in the event loop that runs."""
        return self._in_loop()[1]

    @property
    def rates(self) -> Rates:
        """The limits on requests and tokens in the event loop that runs."""
        return self._in_loop()[2]

    def first_ceiling(self) -> float:
        """Return the seconds that the pause before a second attempt may last: about as long as a call takes."""
        usual = self.latency.median()
        return _LONGEST_S if usual is None else min(_LONGEST_S, max(_SHORTEST_S, usual))

    def answered(self, sent: int, role: str, seconds: float) -> None:
        """Note an attempt that was answered; ``sent`` is what the window said when it was sent."""
        self.window.ended(sent, refused=False)
        self.latency.add(role, seconds)

    def failed(self, sent: int, error: BackendError) -> None:
        """Note an attempt that failed; if the provider says when to come back, nobody goes there before."""
        refused = is_refusal(error)
        self.window.ended(sent, refused=refused)
        after = error.retry_after if isinstance(error, RetryableBackendError) else None
        if refused and after is not None and 0.0 < after <= self._policy.patience_s:
            self.line.pause(after)

    def _in_loop(self) -> tuple[asyncio.AbstractEventLoop, Line, Rates]:
        # Who waits belongs to an event loop; a front end may start several, one by one.
        loop = asyncio.get_running_loop()
        if self._here is None or self._here[0] is not loop:
            policy = self._policy
            line = Line(window=self.window, stop=self._stop, random=self._random, spread=self.first_ceiling)
            rates = Rates(requests_per_minute=policy.requests_per_minute, tokens_per_minute=policy.tokens_per_minute)
            self._here = loop, line, rates
        return self._here


def lane_of(route: Route) -> str:
    """Return the name of the lane that a route's calls go on."""
    return route.lane or route.name


def lanes(routes: Iterable[Route], *, policy: Policy, stop: Stop, random: Random) -> dict[str, Lane]:
    """Return the lanes of ``routes`` by name; the smallest of the limits of a lane's routes counts."""
    by_lane: dict[str, list[Route]] = {}
    for route in routes:
        by_lane.setdefault(lane_of(route), []).append(route)
    return {
        name: Lane(
            name=shared[0].name,
            width=min(route.concurrency for route in shared),
            policy=policy,
            stop=stop,
            random=random,
        )
        for name, shared in by_lane.items()
    }
