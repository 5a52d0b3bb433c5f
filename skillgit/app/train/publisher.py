"""Publishes a run in progress, a few times a second at most; nothing of it can slow down or fail the run."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from skillgit.app.history.live import End, PaceOrigin, RunLimits, Snapshot, StageCount, encoded
from skillgit.app.train.exit_report import outcome_of
from skillgit.domain.evaluation import FailedToEvaluate
from skillgit.domain.failure_patterns import Reason, grouped
from skillgit.engine.progress import Stage
from skillgit.errors import SkillgitError
from skillgit.plugin.redaction import redact
from skillgit.store.lock import publish, stop_requested, withdraw_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillgit.app.train.exit_report import Trained
    from skillgit.domain.cost import Caps
    from skillgit.domain.event import Event
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.progress import Progress, Watcher
    from skillgit.store.repo import Repo

EVERY_S: Final = 0.4
"""Seconds between two publications: seldom enough to cost nothing, often enough to be seen within a second."""
FAILED: Final = "failed"
"""How a process ended whose error is no outcome of a run."""
_ROLLING: Final = frozenset({Stage.BASELINE, Stage.ROLLOUT, Stage.EVALUATE, Stage.TEST})
"""Stages whose failing items are told; those of others are tried again and again, and say little of the skill."""
_REMARKS: Final = 5


class Publisher:
    """A watcher that hands everything on to another one, and publishes it.

    Attributes:
        budget: Returns the edit budget of a step, as far as it is known before.
    """

    def __init__(self, repo: Repo, snapshot: Snapshot, watcher: Watcher) -> None:
        self.budget: Callable[[int], int | None] = lambda _: None
        self._repo = repo
        self._snapshot = snapshot
        self._watcher = watcher
        self._began = time.monotonic()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._now: Progress | None = None
        self._stages: dict[Stage, StageCount] = {}
        self._about: tuple[int, Stage | None] = (0, None)
        self._reasons: dict[str, Reason] = {}
        self._rolled: set[str] = set()

    @property
    def asked_to_stop(self) -> bool:
        """Whether someone asked this process to stop after its step."""
        return stop_requested(self._repo, self._snapshot.run) == self._snapshot.pid

    def begin(self) -> None:
        """Publish that the process is there; a request to stop an earlier one is forgotten."""
        with suppress(OSError):
            withdraw_stop(self._repo, self._snapshot.run)
        self._write()

    def progress(self, progress: Progress) -> None:
        self._watcher.progress(progress)
        if self._now is None or self._now.step != progress.step:
            self._stages = {}
        # before a step has a stage, its place is told with the stage of the step before
        if progress.total or progress.done or (self._now is not None and progress.stage is not self._now.stage):
            count = StageCount(stage=progress.stage.value, done=progress.done, total=progress.total)
            self._stages[progress.stage] = count
        self._now = progress
        self._soon()

    def rolled(self, rollout: Rollout, stage: Stage) -> None:
        if stage not in _ROLLING:
            return
        about = (self._now.step if self._now is not None else 0, stage)
        if about != self._about:
            self._about = about
            self._reasons.clear()
            self._rolled.clear()
        item, kind, outcome = rollout.item.id, rollout.item.task_type, rollout.outcome
        self._rolled.add(item)
        self._reasons.pop(item, None)
        if isinstance(outcome, FailedToEvaluate):
            self._reasons[item] = Reason(kind, f"not evaluated: {outcome.reason}")
        elif not outcome.passed:
            feedback = rollout.trajectory.feedback if rollout.trajectory is not None else ""
            self._reasons[item] = Reason(kind, feedback or "no reason is given")

    def happened(self, event: Event, commit: str) -> None:
        self._watcher.happened(event, commit)
        self._soon()

    def remark(self, text: str) -> None:
        self._watcher.remark(text)
        self._snapshot = replace(self._snapshot, remarks=(*self._snapshot.remarks, text)[-_REMARKS:])
        self._soon()

    def finished(self, result: Trained) -> Trained:
        """Publish that the run is finished, and return ``result``."""
        following = result.next_commands[0] if result.next_commands else ""
        self.end(End(outcome=result.outcome.value, message=result.sentence, hint=following))
        return result

    def failed(self, error: BaseException) -> None:
        """Publish what ended the process before the run was finished."""
        if isinstance(error, SkillgitError):
            outcome = outcome_of(error)
            word = outcome.value if outcome is not None else FAILED
            self.end(End(outcome=word, message=error.message, hint=error.hint))
        else:
            self.end(End(outcome=FAILED, message=f"internal error: {type(error).__name__}: {error}"))

    def end(self, end: End) -> None:
        """Publish how the process ended; nothing is published after it."""
        if self._timer is not None:
            self._timer.cancel()
        self._write(end)
        with suppress(OSError):
            withdraw_stop(self._repo, self._snapshot.run)

    def _soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._due - loop.time()), self._publish, loop)

    def _publish(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._write()
        self._due = loop.time() + EVERY_S

    def _write(self, end: End | None = None) -> None:
        # Whoever cannot watch misses something; the run must not. The whole text is redacted, whoever said a part.
        with suppress(OSError):
            document = redact(encoded(self._look(end))).encode(errors="replace")
            publish(self._repo, self._snapshot.run, document)

    def _look(self, end: End | None) -> Snapshot:
        snapshot = replace(
            self._snapshot,
            seconds=round(time.monotonic() - self._began, 1),
            failing=grouped(self._reasons),
            failed=len(self._reasons),
            rolled=len(self._rolled),
            looked_at=self._about[1].value if self._about[1] is not None else "",
            end=end,
        )
        now = self._now
        if now is None:
            return snapshot
        current = self._stages.get(now.stage)
        snapshot = replace(
            snapshot,
            epoch=now.epoch,
            epochs=now.epochs,
            step=now.step,
            steps=now.steps,
            budget=self.budget(now.step) if now.step else None,
            stage=current.stage if current is not None else "",
            done=now.done,
            total=now.total,
            stages=tuple(self._stages.values()),
            score=now.score,
            best=now.best,
            spent=now.spent.whole,
        )
        if snapshot.beginning is None and now.step > 0:
            beginning = PaceOrigin(
                step=now.step, stage=now.stage.value, done=now.done, total=now.total, seconds=snapshot.seconds
            )
            self._snapshot = replace(self._snapshot, beginning=beginning)
            snapshot = replace(snapshot, beginning=beginning)
        return snapshot


@contextmanager
def publishing(repo: Repo, run: str, watcher: Watcher, *, caps: Caps, command: str) -> Iterator[Publisher]:
    """Publish ``run`` while the block lasts, and how it ended; the lock of the run is held around it.

    Args:
        caps: What the run may cost at most.
    """
    limits = RunLimits(calls=caps.max_calls, tokens=caps.max_tokens, usd=caps.max_usd)
    publisher = Publisher(repo, Snapshot(run=run, pid=os.getpid(), command=command, limits=limits), watcher)
    publisher.begin()
    try:
        yield publisher
    except BaseException as error:
        publisher.failed(error)
        raise
