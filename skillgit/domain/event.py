"""The events of a run: immutable facts, one commit each.

Events are canonical: their free text is cleaned when they are made, so that writing an event into a commit and reading
it back gives an equal event, and a resumed run sees exactly what an unbroken run saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from skillgit.domain.cost import Cost as Cost  # noqa: PLC0414 - part of what an event is, and imported with it
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.ids import text_digest
from skillgit.domain.prose import clean_line, clean_paragraphs, clean_title
from skillgit.domain.rewrite import UpdateMode

if TYPE_CHECKING:
    from skillgit.domain.appendix import AppendixCounts
    from skillgit.domain.edit import Edit, Op, Source
    from skillgit.domain.gate import Verdict
    from skillgit.domain.placebo import Placebo

EDITS_SHOWN = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed line of a skill as the commit message shows it."""

    sign: Literal["+", "-"]
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean_line(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRecord:
    """An applied edit as its trailer tells it; its text is the diff.

    Attributes:
        op: What it did.
        file: Path inside the skill folder.
        support: How many trajectories it rests on.
        source: Whose observation it is.
        anchor: The first 8 hexadecimal characters of the anchor's digest; empty without an anchor.
        fixed: Items that it fixed, where that is known: where it was measured alone.
        broken: Items that it broke, likewise.
    """

    op: Op
    file: str
    support: int
    source: Source
    anchor: str = ""
    fixed: int | None = None
    broken: int | None = None

    @classmethod
    def of(cls, edit: Edit) -> EditRecord:
        """Return the record of ``edit``."""
        anchor = text_digest(edit.anchor)[:8] if edit.anchor else ""
        return cls(op=edit.op, file=edit.file, support=edit.support, source=edit.source, anchor=anchor)


class BudgetSource(StrEnum):
    """Who set the edit budget of a step."""

    SCHEDULE = "schedule"
    OPTIMIZER = "optimizer"
    FALLBACK = "fallback"
    """The schedule, because what the optimizer said could not be used."""
    NONE = "none"
    """Nobody: there was no limit."""
    META = "meta"
    """The budget of the reflection on an epoch."""


class Origin(StrEnum):
    """Where a candidate comes from."""

    STEP = "step"
    """A batch of rollouts."""
    META = "meta"
    """The reflection on the steps of an epoch, at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchCounts:
    """How many proposals a step merged and ranked, how many edits it applied and skipped, and the budget that held.

    Attributes:
        merged: Proposals of all analysts, duplicates joined.
        ranked: Those that were chosen.
        applied: Edits that took effect; of a rewrite, the stretches of lines that changed.
        skipped: Edits that did not.
        budget: The edit budget; absent where there was no limit.
        by: Who set it.
        mode: What a proposal was: an edit, a suggestion or a whole document.
        salvaged: Whether the edits are a part of a patch that the gate had refused as a whole.
    """

    merged: int
    ranked: int
    applied: int
    skipped: int
    budget: int | None
    by: BudgetSource = BudgetSource.SCHEDULE
    mode: UpdateMode = UpdateMode.PATCH
    salvaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of a run, as ``backend/model``.

    The judge is named only where a scorer asks it, with ``@`` and the digest of its parameters.
    """

    target: str
    optimizer: str
    judge: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """A score that was not measured for this text but taken over from another version."""

    version: int


Measurement = EvaluationSummary | Inherited


class RunOutcome(StrEnum):
    """How a run ended."""

    IMPROVED = "improved"
    NULL_RESULT = "null-result"
    UNDERPOWERED = "underpowered"
    CEILING = "ceiling"
    NO_CANDIDATES = "no-candidates"
    PROVIDER_FAILURE = "provider-failure"
    BUDGET = "budget"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """What all events have.

    Attributes:
        run: The run's name.
        skill: Path of the skill folder in the repository, for example ``skills/searchqa``.
        epoch: 1-based; 0 before the first step.
        title: The commit's title without prefix and score.
        why: The reasons, as paragraphs.
    """

    run: str
    skill: str
    epoch: int = 0
    title: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", clean_title(self.title))
        object.__setattr__(self, "why", clean_paragraphs(self.why))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(_Event):
    """A run begins: version 0 is the seed skill.

    Attributes:
        config: Digest of the resolved configuration, prompts included; the file is evidence.
        splits: Digest of the items of all splits.
        environment: Digest of the environment's code version, prompts and scorer.
        models: The models.
        evaluation: The seed's score on the selection split.
        fork_of: ``<run>/v<N>`` for a fork.
        cost: What the baseline cost.
    """

    config: str
    splits: str
    environment: str
    models: Models
    evaluation: Measurement
    fork_of: str = ""
    cost: Cost = field(default_factory=Cost)

    @property
    def version(self) -> int:
        """The seed is version 0."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposed(_Event):
    """What a gated candidate has.

    Attributes:
        step: 1-based over the whole run.
        base: The version that it was proposed on.
        edits: The applied edits; the first 24 if there are more, so that trailers stay readable.
        changes: Their text, line by line.
        patch: How many edits there were.
        origin: Where it comes from; the reflection on an epoch bears the number of the epoch's last step.
        appendix: What became of the appendix; absent where it stayed as it was.
        evaluation: The candidate's score on the selection split.
        verdict: The gate's decision and its numbers.
        fixed: Items that score higher than under the base.
        broken: Items that score lower.
        models: The models.
        cost: What the step cost.
    """

    step: int
    base: int
    edits: tuple[EditRecord, ...] = ()
    changes: tuple[Change, ...] = ()
    patch: PatchCounts
    origin: Origin = Origin.STEP
    appendix: AppendixCounts | None = None
    evaluation: EvaluationSummary
    verdict: Verdict
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    models: Models
    cost: Cost

    def __post_init__(self) -> None:
        _Event.__post_init__(self)
        object.__setattr__(self, "edits", self.edits[:EDITS_SHOWN])


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(_Proposed):
    """A step's candidate became version ``version``."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(_Proposed):
    """A step's candidate was refused, or the gate could not decide; it stands on a side branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(_Event):
    """A step, or the reflection on an epoch, ended without a candidate to measure; ``title`` says why."""

    step: int
    patch: PatchCounts
    origin: Origin = Origin.STEP
    models: Models
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowProposed(_Event):
    """The slow update of an epoch: guidance for the skill and memory for the optimizer.

    Attributes:
        step: The last step of the epoch.
        base: The version that the guidance was proposed on.
        guidance: The text for the slow region; empty if there was nothing to say.
        memory: What the optimizer remembers from now on.
        evaluation: Score of the base with the guidance; absent without guidance.
        verdict: The gate's decision on it; absent without guidance.
        fixed: Items that score higher than under the base.
        broken: Items that score lower.
        models: The models.
        cost: What it cost.
    """

    step: int
    base: int
    guidance: str
    memory: str
    evaluation: EvaluationSummary | None = None
    verdict: Verdict | None = None
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    models: Models
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowMerged(_Event):
    """The guidance of the slow line was merged: the run's text with the slow region replaced is version ``version``."""

    step: int
    version: int
    base: int
    evaluation: EvaluationSummary
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted(_Event):
    """A version whose text is that of an older one.

    Attributes:
        step: The last step before it.
        version: The new version.
        base: The version before it.
        target: The version whose text it takes.
        evaluation: Measured, or inherited from the target.
    """

    step: int
    version: int
    base: int
    target: int
    evaluation: Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(_Event):
    """A run reached its end.

    Attributes:
        step: The last step.
        outcome: How it ended.
        evaluations: Scores on the test split of the first, the best and the last version, each naming its version.
        placebo: What the gate made of candidates that change nothing; absent if there were none.
        models: The models.
        cost: What the final evaluation cost.
    """

    step: int
    outcome: RunOutcome
    evaluations: tuple[EvaluationSummary, ...] = ()
    placebo: Placebo | None = None
    models: Models
    cost: Cost


Event = RunStarted | Accepted | Rejected | Skipped | SlowProposed | SlowMerged | Reverted | RunFinished

EVENT_NAMES: dict[type[Event], str] = {
    RunStarted: "run-started",
    Accepted: "accepted",
    Rejected: "rejected",
    Skipped: "skipped",
    SlowProposed: "slow-proposed",
    SlowMerged: "slow-merged",
    Reverted: "reverted",
    RunFinished: "run-finished",
}
"""Every kind of event and its name in trailers, in the order in which events of one step stand."""


def event_name(event: Event) -> str:
    """Return the event's name in trailers."""
    return EVENT_NAMES[type(event)]


def event_step(event: Event) -> int:
    """Return the event's step; 0 for the start of a run."""
    return 0 if isinstance(event, RunStarted) else event.step


def event_origin(event: Event) -> Origin:
    """Return where the candidate of ``event`` comes from; a step for events without one."""
    return event.origin if isinstance(event, Accepted | Rejected | Skipped) else Origin.STEP


def event_rank(event: Event) -> int:
    """Return the place of ``event`` among those of its step: the step, the reflection on its epoch, the slow update."""
    kind: type[Event] = Skipped if event_origin(event) is Origin.META else type(event)
    return 2 * list(EVENT_NAMES).index(kind) + (event_origin(event) is Origin.META)


def event_order(event: Event) -> tuple[int, int]:
    """Return the key that sorts the events of a run: step, then kind."""
    return event_step(event), event_rank(event)
