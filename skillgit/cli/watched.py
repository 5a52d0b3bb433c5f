"""``skillgit train --tui``: the training is a process of its own, and a screen looks at it until it is closed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillgit.cli.output import Form
from skillgit.cli.terminal import require_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.train import TrainRequest
    from skillgit.cli.session import Session
    from skillgit.tui.trainer import Trainer

_SIGNAL_BASE = 128
"""What shells add to the number of the signal that killed a process."""


def watched(session: Session, request: TrainRequest, form: Form, *, strict: bool) -> int:
    """Train in a process of its own, watch it, and return what it exited with; 0 if it goes on.

    Raises:
        UsageError: There is no terminal.
    """
    require_terminal(session, "train --tui", instead=f"skillgit train {request.config}")
    from skillgit.tui.trainer import Trainer, watch  # noqa: PLC0415 - slow to import

    trainer = Trainer(list(_words(session, request, form, strict=strict)), session.context.environ)
    run = watch(session.context, trainer, unicode=session.screen.unicode)
    code = trainer.code
    if code is None:
        _goes_on(session, trainer, run)
        return 0
    said, errors = trainer.output()
    session.output.raw(said)
    session.output.flush()
    sys.stderr.write(errors.decode(errors="replace"))
    return code if code >= 0 else _SIGNAL_BASE - code


def _goes_on(session: Session, trainer: Trainer, run: str) -> None:
    name = f"run {run}" if run else "the training"
    session.diagnostics.note(f"{name} goes on as process {trainer.pid}")
    session.diagnostics.hint(f"skillgit tui {run}".rstrip() + ", then L, watches it; K stops it after its step")


def _words(session: Session, request: TrainRequest, form: Form, *, strict: bool) -> Iterator[str]:
    """Yield the command line of the training, without ``skillgit``."""
    yield from ("-C", str(session.context.directory))
    yield f"--color={'always' if session.screen.colour else 'never'}"
    yield from ("train", request.config, "--quiet")
    for override in request.overrides:
        yield from ("-o", override)
    chosen = {
        "--run": request.run,
        "--from": request.start,
        "--max-calls": request.caps.max_calls,
        "--max-tokens": request.caps.max_tokens,
        "--max-usd": request.caps.max_usd,
    }
    for option, value in chosen.items():
        if value is not None:
            yield from (option, str(value))
    if request.ask_again:
        yield "--ask-again"
    if form is Form.JSON:
        yield "--json"
    if strict:
        yield "--exit-code"
