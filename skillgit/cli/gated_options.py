"""What the commands have in common that measure candidates: caps, a configuration, and who looks on."""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from skillgit.cli.eval_watchers import LiveWatcher, SilentWatcher, watching
from skillgit.cli.measuring_options import (
    config_option,
    max_calls_option,
    max_tokens_option,
    max_usd_option,
    quiet_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillgit.app.scores import Scores
    from skillgit.cli.eval_watchers import LineWatcher
    from skillgit.cli.session import Session
    from skillgit.domain.cost import Cost

    EvalWatcher = SilentWatcher | LineWatcher | LiveWatcher

_R = TypeVar("_R")

_OPTIONS = (config_option, max_calls_option, max_tokens_option, max_usd_option, quiet_option)


def terms_options(command: Callable[..., _R]) -> Callable[..., _R]:
    """Give a command the options that say on which terms to measure; it gets them as ``terms``, and ``quiet``."""

    @wraps(command)
    def with_terms(
        *args: object,
        config: str | None,
        max_calls: int | None,
        max_tokens: int | None,
        max_usd: float | None,
        **kwargs: object,
    ) -> _R:
        from skillgit.app.gating.measuring import Terms  # noqa: PLC0415 - it loads the engine

        terms = Terms(config=config, max_calls=max_calls, max_tokens=max_tokens, max_usd=max_usd)
        return command(*args, terms=terms, **kwargs)

    wrapped: Callable[..., _R] = with_terms
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


class Onlooker:
    """Tells progress and results as an evaluation does, and remarks between them."""

    def __init__(self, session: Session, watcher: EvalWatcher) -> None:
        self._session = session
        self._watcher = watcher
        self.progress = watcher.progress

    def measured(self, name: str, split: str, found: Scores) -> None:
        """Tell what was measured."""
        self._watcher.measured(name, split, found)

    def remark(self, text: str) -> None:
        """Tell something else, above a live display if there is one."""
        if isinstance(self._watcher, LiveWatcher):
            self._watcher.remark(text)
        elif not isinstance(self._watcher, SilentWatcher):
            self._session.diagnostics.note(text)

    def spent(self, cost: Cost) -> None:
        """Tell what was spent where an error takes the place of a result."""
        from skillgit.cli.render import gated  # noqa: PLC0415 - most work ends with a result, which tells it

        screen = self._session.diagnostics.screen
        self.remark(gated.fact("cost", f"{gated.cost(cost, screen)}, earlier tries of the same included", screen))


@contextmanager
def looking_on(session: Session, *, quiet: bool) -> Iterator[Onlooker]:
    """Give the watcher that fits stderr."""
    with watching(session, quiet=quiet) as watcher:
        yield Onlooker(session, watcher)
