"""What a trainer publishes of its run for those who watch: one small document, replaced again and again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from skillgit.domain.cost import Cost
from skillgit.domain.failing import Failing  # noqa: TC001 - pydantic reads the annotations

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCount:
    """How far one stage of the step is.

    Attributes:
        stage: The stage.
        done: Items or calls that are done.
        total: Items or calls in all; 0 if that is not known.
    """

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where this process took up its first step; the pace is counted from there.

    Attributes:
        step: The step.
        stage: The stage.
        done: Items or calls of the stage that were done.
        total: Items or calls of the stage in all.
        seconds: Seconds after the process began.
    """

    step: int
    stage: str
    done: int
    total: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the run may cost at most; None is no cap.

    Attributes:
        calls: Model calls.
        tokens: Tokens, in and out.
        usd: US dollars.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the process ended.

    Attributes:
        outcome: The run's outcome, that of a process that left it unfinished, or ``failed``.
        message: One sentence.
        hint: What helps, or what to type now.
    """

    outcome: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One look at a run in the making.

    Attributes:
        run: The run.
        pid: The process that trains it.
        command: The command that goes on with the run if the process is gone.
        limits: The caps.
        seconds: Seconds since the process began.
        epoch: The current epoch.
        epochs: Epochs in all.
        step: The current step; 0 before the first one.
        steps: Steps in all.
        budget: Proposals that the step may carry out at most; None where there is no limit.
        stage: What is being done; empty before the first stage.
        done: Items or calls of the stage that are done.
        total: Items or calls of the stage in all; 0 if that is not known.
        stages: The stages of the step so far, in their order.
        score: The current version's score; None before the baseline.
        best: The best score so far.
        spent: What the run has cost so far.
        failing: What fails now, by pattern.
        failed: Items that fail now.
        rolled: Items that were rolled out in the stage that ``failing`` is about.
        looked_at: That stage.
        remarks: What was worth telling, the newest last.
        beginning: Where the first step of this process began; None before it.
        end: How the process ended; None while it works.
    """

    run: str
    pid: int
    command: str
    limits: Limits
    seconds: float = 0.0
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    steps: int = 0
    budget: int | None = None
    stage: str = ""
    done: int = 0
    total: int = 0
    stages: tuple[StageCount, ...] = ()
    score: float | None = None
    best: float | None = None
    spent: Cost = field(default_factory=Cost)
    failing: tuple[Failing, ...] = ()
    failed: int = 0
    rolled: int = 0
    looked_at: str = ""
    remarks: tuple[str, ...] = ()
    beginning: Beginning | None = None
    end: End | None = None


def encoded(snapshot: Snapshot) -> str:
    """Return ``snapshot`` as JSON."""
    return json.dumps(asdict(snapshot), ensure_ascii=False)


def decoded(document: bytes) -> Snapshot | None:
    """Return the snapshot in ``document``; None if it is none that this skillgit can read."""
    try:
        return _adapter().validate_json(document)
    except ValueError:
        return None


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - who publishes does not read

    return TypeAdapter(Snapshot)
