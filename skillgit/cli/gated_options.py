"""What the commands have in common that measure candidates: caps, a configuration, and who looks on."""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from skillgit.cli.eval_watchers import LiveWatcher, SilentWatcher, watching
from skillgit.cli.measuring_options import config_option, quiet_option, spending_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillgit.app.scores import Scores
    from skillgit.cli.eval_watchers import LineWatcher
    from skillgit.cli.session import Session
    from skillgit.domain.caps import Caps
    from skillgit.domain.cost import Cost

    EvalWatcher = SilentWatcher | LineWatcher | LiveWatcher

_R = TypeVar("_R")


def terms_options(*, short: bool = True) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Give a command the options that say on which terms to measure; it gets them as ``terms``, and ``quiet``.

    Args:
        short: Whether ``-n`` is a dry run.
    """

    def decorate(command: Callable[..., _R]) -> Callable[..., _R]:
        @config_option
        @spending_options(short=short)
        @quiet_option
        @wraps(command)
        def with_terms(*args: object, config: str | None, caps: Caps, dry_run: bool, **kwargs: object) -> _R:
            from skillgit.app.gating.measuring import Terms  # noqa: PLC0415 - it loads the engine

            return command(*args, terms=Terms(config=config, caps=caps, dry_run=dry_run), **kwargs)

        return with_terms

    return decorate


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
        self._watcher.remark(text)

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
