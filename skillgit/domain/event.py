"""The events of a run: immutable facts, one commit each.

Events are canonical: their free text is cleaned when they are made, so that writing an event into a commit and reading
it back gives an equal event, and a resumed run sees exactly what an unbroken run saw.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.ids import text_digest

if TYPE_CHECKING:
    from skillgit.domain.edit import Edit, Op, Source
    from skillgit.domain.gate import Verdict

TITLE_LENGTH = 60
EDITS_SHOWN = 24
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")


def clean_line(text: str) -> str:
    """Return ``text`` on one line without control characters, terminal escapes and surplus white space.

    Halves of surrogate pairs, which no encoding can hold, become question marks.
    """
    storable = text if text.isascii() else text.encode("utf-8", "replace").decode()
    return " ".join(_CONTROL.sub(" ", _ESCAPE.sub("", storable)).split())


def clean_title(text: str) -> str:
    """Return ``text`` as a commit title: one line of at most 60 characters, cut at a word, without a full stop."""
    line = clean_line(text).rstrip(" .;:,")
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[: TITLE_LENGTH - 1].rsplit(" ", 1)[0].rstrip(" .;:,")
    return f"{cut or line[: TITLE_LENGTH - 1]}…"


def clean_paragraphs(text: str) -> str:
    """Return ``text`` as paragraphs of one clean line each, parted by single blank lines."""
    paragraphs = (clean_line(paragraph) for paragraph in re.split(r"\n\s*\n", text))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


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
    """

    op: Op
    file: str
    support: int
    source: Source
    anchor: str = ""

    @classmethod
    def of(cls, edit: Edit) -> EditRecord:
        """Return the record of ``edit``."""
        anchor = text_digest(edit.anchor)[:8] if edit.anchor else ""
        return cls(op=edit.op, file=edit.file, support=edit.support, source=edit.source, anchor=anchor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchCounts:
    """How many edits a step merged, ranked, applied and skipped, and the edit budget that held."""

    merged: int
    ranked: int
    applied: int
    skipped: int
    budget: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of a run, as ``backend/model``."""

    target: str
    optimizer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an event cost: model calls, tokens in and out, US dollars and seconds of wall time."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=self.usd + other.usd,
            seconds=self.seconds + other.seconds,
        )


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
    cost: Cost = Cost()

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
    """A step ended without a candidate to measure; ``title`` says why."""

    step: int
    patch: PatchCounts
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
        models: The models.
        cost: What the final evaluation cost.
    """

    step: int
    outcome: RunOutcome
    evaluations: tuple[EvaluationSummary, ...] = ()
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


def event_order(event: Event) -> tuple[int, int]:
    """Return the key that sorts the events of a run: step, then kind."""
    return event_step(event), list(EVENT_NAMES).index(type(event))
