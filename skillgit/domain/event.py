"""The events of a run: immutable facts, one commit each.

Events are canonical: their free text is cleaned when they are made, so that writing an event into a commit and reading
it back gives an equal event, and a resumed run sees exactly what an unbroken run saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, get_args

from skillgit.domain.address import Address, address_of
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import EvaluationSummary, Gauge
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import EDITS_SHOWN, Change, EditRecord, Origin, PatchCounts, Screening
from skillgit.domain.protected_regions import AppendixCounts
from skillgit.domain.served_model import ServedModel
from skillgit.domain.untrusted.model_text import SkillText, clean_line, clean_paragraphs, clean_title

if TYPE_CHECKING:
    from skillgit.domain.gate_decision import Verdict
    from skillgit.domain.placebo import Placebo


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of a run, as ``backend/model``.

    The judge is named only where a scorer asks it, with ``@`` and the digest of its parameters.
    """

    target: str
    optimizer: str
    judge: str = ""


NOBODY = Models(target="", optimizer="")  # the models of an event that asked none


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """A score that was not measured for this text but taken over from another version."""

    version: int


Measurement = EvaluationSummary | Inherited


class RunOutcome(StrEnum):
    """How a run ended."""

    IMPROVED = "improved"
    NOT_CONFIRMED = "not-confirmed"
    NULL_RESULT = "null-result"
    UNDERPOWERED = "underpowered"
    CEILING = "ceiling"
    NO_CANDIDATES = "no-candidates"
    PROVIDER_FAILURE = "provider-failure"
    BUDGET = "budget"
    STOPPED = "stopped"

    @property
    def ends_run(self) -> bool:
        """Whether the run is over; a failing provider, a cap and a user's stop end a process, and the run can go on."""
        return self not in {RunOutcome.PROVIDER_FAILURE, RunOutcome.BUDGET, RunOutcome.STOPPED}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """What all events have, and what the fields mean that several kinds share.

    Attributes:
        run: The run's name.
        skill: Path of the skill folder in the repository, for example ``skills/searchqa``.
        epoch: 1-based; 0 before the first step.
        title: The commit's title without prefix and score.
        why: The reasons, as paragraphs.
        step: 1-based over the whole run; the last one for an event outside steps.
        version: The version that it made.
        base: The version that it was proposed on, or that was the current one before it.
        evaluation: Its score on the selection split.
        verdict: The gate's decision and its numbers.
        fixed: Items that score higher than under the base.
        broken: Items that score lower.
        models: The models; nameless if none was asked.
        cost: What it cost.
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
        environment: Digest of the environment: its source, prompts and scorer.
        evaluation: The seed's score on the selection split.
        gauge: What the run's gate compares; the hard score where a history of an older skillgit does not tell.
        fork_of: ``<run>/v<N>`` for a fork.
        served: Who answers each role at which server; empty where no server is asked, and in a history of an older
            skillgit, which does not tell.
        cost: What the baseline cost.
    """

    kind = EventKind.RUN_STARTED

    config: str
    splits: str
    environment: str
    models: Models
    evaluation: Measurement
    gauge: Gauge = field(default_factory=Gauge)
    fork_of: str = ""
    served: tuple[ServedModel, ...] = ()
    cost: Cost = field(default_factory=Cost)

    @property
    def version(self) -> int:
        return 0

    def served_as(self, role: str) -> ServedModel | None:
        """Return who answers ``role`` at which server; None where that is not recorded."""
        return next((model for model in self.served if model.role == role), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposed(_Event):
    """What a gated candidate has.

    Attributes:
        edits: The applied edits; the first 24 if there are more, so that trailers stay readable.
        changes: Their text, line by line.
        patch: How many edits there were.
        origin: Where it comes from; the reflection on an epoch bears the number of the epoch's last step, and an
            intervention that of the step that the run is at.
        number: Which intervention of the run it is, counted from 1; 0 for a step and for the reflection on an epoch.
        of: What an intervention took it from, as ``<run>/v7`` or ``<run>/r17``; empty where it took nothing.
        joined: The version of another line whose edits were put on the base; absent where none was.
        screening: How it did on train items first; absent where nothing was screened.
        appendix: What happened to the appendix; absent where it stayed as it was.
    """

    step: int
    base: int
    edits: tuple[EditRecord, ...] = ()
    changes: tuple[Change, ...] = ()
    patch: PatchCounts
    origin: Origin = Origin.STEP
    number: int = 0
    of: str = ""
    joined: int | None = None
    screening: Screening | None = None
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
    """A candidate became version ``version``."""

    kind = EventKind.ACCEPTED

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(_Proposed):
    """A candidate was refused, or the gate could not decide; it is kept on a side branch.

    Attributes:
        at: The version that the run was at, where that is not the base.
    """

    kind = EventKind.REJECTED

    at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(_Event):
    """A step, or the reflection on an epoch, ended without a candidate to measure; ``title`` says why.

    Attributes:
        screening: How its candidate did on train items first; absent where nothing was screened.
        taken_up_by: The later step whose candidate includes its edits; absent where none does.
    """

    kind = EventKind.SKIPPED

    step: int
    patch: PatchCounts
    screening: Screening | None = None
    taken_up_by: int | None = None
    origin: Origin = Origin.STEP
    models: Models
    cost: Cost

    @property
    def screened_out(self) -> bool:
        """Whether nothing was measured because its candidate did not help on train items."""
        return self.screening is not None and not self.screening.passed


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowProposed(_Event):
    """The slow update of an epoch: guidance for the skill and memory for the optimizer.

    Attributes:
        guidance: The text for the slow region; empty if there was nothing to say.
        memory: What the optimizer remembers from now on.
        evaluation: Score of the base with the guidance; absent without guidance.
        verdict: The gate's decision on it; absent without guidance.
    """

    kind = EventKind.SLOW_PROPOSED

    step: int
    base: int
    guidance: SkillText
    memory: str
    evaluation: EvaluationSummary | None = None
    verdict: Verdict | None = None
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    models: Models
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowMerged(_Event):
    """The guidance of the slow line was merged: the run's text with the slow region replaced is version ``version``.

    Its score is that of the proposal. A merge that no gate decided on may have inherited it, unmeasured, from its base.
    """

    kind = EventKind.SLOW_MERGED

    step: int
    version: int
    base: int
    evaluation: Measurement
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted(_Event):
    """A version whose text is that of an older one.

    Attributes:
        target: The version whose text it takes.
        evaluation: Measured, or inherited from the target.
        verdict: The gate's decision; absent if it passed none.
    """

    kind = EventKind.REVERTED

    step: int
    version: int
    base: int
    target: int
    evaluation: Measurement
    verdict: Verdict | None = None
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    models: Models = NOBODY
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited(_Event):
    """A person changed the skill with a commit of their own on the run's branch.

    The commit has no trailers; everything here comes from its message, its author and its place in the history.

    Attributes:
        author: Who made the commit.
        changes: The changed lines of the text.
    """

    kind = EventKind.EDITED

    step: int
    version: int
    base: int
    author: str = ""
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        # titles of ours are cut; what a person wrote stays whole
        title = clean_line(self.title)
        _Event.__post_init__(self)
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "author", clean_line(self.author))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(_Event):
    """The current version, whose text was unmeasured, got a score to go on from.

    Attributes:
        version: The version that was measured.
        verdict: How it compares with the newest version before it that has a score; it passed no gate.
        fixed: Items that score higher than under that one.
    """

    kind = EventKind.MEASURED

    step: int
    version: int
    evaluation: EvaluationSummary
    verdict: Verdict
    fixed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    models: Models
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(_Event):
    """A run reached its end.

    Attributes:
        outcome: How it ended.
        evaluations: Scores on the test split of the first, the best and the last version, each naming its version.
        placebo: What the gate made of candidates that change nothing; absent if there were none.
        cost: What the final evaluation cost.
    """

    kind = EventKind.RUN_FINISHED

    step: int
    outcome: RunOutcome
    evaluations: tuple[EvaluationSummary, ...] = ()
    placebo: Placebo | None = None
    models: Models
    cost: Cost


Event = (
    RunStarted | Accepted | Rejected | Skipped | SlowProposed | SlowMerged | Reverted | Edited | Measured | RunFinished
)
Gated = Accepted | Rejected | SlowProposed | SlowMerged | Reverted | Measured  # those that may hold a verdict
MakesVersion = RunStarted | Accepted | SlowMerged | Reverted | Edited  # those that make a version
KIND_OF: dict[type[Event], EventKind] = {event_class: event_class.kind for event_class in get_args(Event)}
"""Every class of events and its kind; all but that of an edit are in trailers."""


def event_step(event: Event) -> int:
    """Return the event's step; 0 for the start of a run."""
    return 0 if isinstance(event, RunStarted) else event.step


def event_origin(event: Event) -> Origin:
    """Return where the candidate of ``event`` comes from; a step for events without one."""
    return event.origin if isinstance(event, Accepted | Rejected | Skipped) else Origin.STEP


def event_number(event: Event) -> int:
    """Return which intervention of its run ``event`` is, counted from 1; 0 if it is none."""
    return event.number if isinstance(event, Accepted | Rejected) else 0


def version_of(event: Event) -> int | None:
    """Return the version that ``event`` makes; ``None`` if it makes none."""
    return event.version if isinstance(event, MakesVersion) else None


def event_address(event: Event) -> Address:
    """Return what ``event`` is called: ``<run>/v7``, ``<run>/r17``."""
    return address_of(
        event.kind,
        run=event.run,
        version=version_of(event),
        step=event_step(event),
        epoch=event.epoch,
        origin=event_origin(event).value,
        number=event_number(event),
        at=event.version if isinstance(event, Measured) else 0,
    )
