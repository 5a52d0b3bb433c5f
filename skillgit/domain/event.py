"""The events of a run: immutable facts, one commit each.

An event has a kind and facts. Each fact is declared once, in :class:`Event`, with the kinds that have it; its trailer,
its field in ``log --jsonl`` and its column in the index follow from that declaration.

Events are canonical: their free text is cleaned when they are made, so that writing an event into a commit and reading
it back gives an equal event, and a resumed run sees exactly what an unbroken run saw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, NamedTuple

from skillgit.domain.address import Address, address_of
from skillgit.domain.cost import Cost
from skillgit.domain.document_rewrite import ProposalKind
from skillgit.domain.evaluation import EvaluationSummary, Gauge
from skillgit.domain.event_kinds import TRAITS, EventKind, Rank, made_of
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.domain.placebo import Placebo
from skillgit.domain.proposal import EDITS_SHOWN, Change, EditRecord, Origin, PatchCounts, Screening
from skillgit.domain.protected_regions import AppendixCounts
from skillgit.domain.served_model import ServedModel
from skillgit.domain.untrusted.model_text import SkillText, clean_line, clean_paragraphs, clean_title
from skillgit.errors import InvariantError


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


_K = EventKind
EVERY: Final = frozenset(EventKind)
START: Final = frozenset({_K.RUN_STARTED})
END: Final = frozenset({_K.RUN_FINISHED})
CANDIDATES: Final = frozenset({_K.ACCEPTED, _K.REJECTED})
"""What a gate decided on, asked by a step, by the reflection on an epoch or by a person."""
ATTEMPTS: Final = CANDIDATES | {_K.SKIPPED}
"""The same, and what ended without a candidate to measure."""
_PROPOSED = CANDIDATES | {_K.SLOW_PROPOSED}
_VERSIONS = frozenset({_K.ACCEPTED, _K.SLOW_MERGED, _K.REVERTED, _K.EDITED})
_PAID = EVERY - {_K.SLOW_MERGED, _K.EDITED}


class Fact(NamedTuple):
    """What is declared of a fact, apart from its name, type and default.

    Attributes:
        meaning: What it says, for the reference.
        kinds: The kinds of events that may have it; the others have its default.
        needed: Those of them that must have it.
        trailer: The key of its trailer; empty where something else in the commit says it.
        column: The attribute that its column in the table of events is, of its own name; empty without a column.
    """

    meaning: str
    kinds: frozenset[EventKind]
    needed: frozenset[EventKind]
    trailer: str
    column: str


_NAMED: Final = "the name of the attribute"


def fact(
    meaning: str,
    default: object = None,
    *,
    on: Collection[EventKind] | None = None,
    needed: Collection[EventKind] = (),
    trailer: str = _NAMED,
    column: bool | str = False,
) -> Any:  # noqa: ANN401 - as dataclasses.field
    """Declare a fact of events: the kinds in ``needed`` must have it, and those in ``on`` may; by default all may."""
    kinds = frozenset(on or ()) | frozenset(needed) or EVERY
    source = column if isinstance(column, str) else _NAMED if column else ""
    declared = Fact(meaning, kinds, frozenset(needed), trailer, source)
    return field(default=default, metadata={"fact": declared})


def facts_of(event_class: type) -> dict[str, Fact]:
    """Return the facts that a class of events declares, by name, in the order in which trailers are written."""
    facts: dict[str, Fact] = {}
    for entry in fields(event_class):
        declared: Fact | None = entry.metadata.get("fact")
        if declared is not None:
            trailer = entry.name.title().replace("_", "-") if declared.trailer is _NAMED else declared.trailer
            column = entry.name if declared.column is _NAMED else declared.column
            facts[entry.name] = declared._replace(trailer=trailer, column=column)
    return facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a run.

    A type ``X | Any`` is an ``X`` on the kinds that must have the fact, and may be None on others.
    """

    kind: EventKind
    run: str = fact("The run's name", MISSING, column=True)
    skill: str = fact("Path of the skill folder, for example `skills/searchqa`", MISSING, column=True)
    title: str = fact("The commit's title without prefix and score", "", trailer="", column=True)
    why: str = fact("The reasons, as paragraphs", "", trailer="")
    epoch: int = fact("1-based; 0 before the first step", 0, needed=EVERY, column=True)
    step: int = fact(
        "1-based over the whole run; the last one for an event outside steps", 0, needed=EVERY - START, column=True
    )
    origin: Origin = fact(
        "Where it comes from; the reflection on an epoch bears the number of the epoch's last step, and an intervention"
        " that of the step that the run is at",
        Origin.STEP,
        on=ATTEMPTS,
        column=True,
    )
    number: int = fact(
        "Which intervention of the run it is, counted from 1; 0 for a step and for the reflection on an epoch",
        0,
        on=CANDIDATES,
        trailer="",
        column=True,
    )
    of: str = fact(
        "What an intervention took it from, as `<run>/v7` or `<run>/r17`; empty where it took nothing",
        "",
        on=CANDIDATES,
        trailer="",
        column=True,
    )
    version: int | Any = fact(
        "The version that it made, or measured; a run starts with version 0",
        needed=START | _VERSIONS | {_K.MEASURED},
        column="new_version",
    )
    base: int | Any = fact(
        "The version that it was proposed on, or that was the current one before it",
        needed=_PROPOSED | _VERSIONS,
        column=True,
    )
    at: int | None = fact("The version that the run was at, where that is not the base", on={_K.REJECTED})
    joined: int | None = fact(
        "The version of another line whose edits were put on the base", on=CANDIDATES, column=True
    )
    taken_up_by: int | None = fact("The later step whose candidate includes its edits", on={_K.SKIPPED}, column=True)
    config: str = fact("Digest of the resolved configuration, prompts included; the file is evidence", "", on=START)
    splits: str = fact("Digest of the items of all splits", "", on=START)
    environment: str = fact("Digest of the environment: its source, prompts and scorer", "", on=START, trailer="Env")
    gauge: Gauge = fact(
        "What the run's gate compares; the hard score in a history of an older skillgit that does not record it",
        Gauge(),
        on=START,
        trailer="Metric",
    )
    fork_of: str = fact("`<run>/v<N>` for a fork, whose commit is the parent", "", on=START)
    served: tuple[ServedModel, ...] = fact(
        "The model of each role and its server; empty where no server is asked, and in a history of an older skillgit",
        (),
        on=START,
    )
    target: int | Any = fact("The version whose text it takes", needed={_K.REVERTED})
    outcome: RunOutcome | Any = fact("How the run ended", needed=END, column=True)
    edits: tuple[EditRecord, ...] = fact(
        f"The applied edits; the first {EDITS_SHOWN} if there are more, so that trailers stay readable",
        (),
        on=CANDIDATES,
        trailer="Edit",
    )
    changes: tuple[Change, ...] = fact("The changed lines of the text", (), on=CANDIDATES | {_K.EDITED}, trailer="")
    patch: PatchCounts | Any = fact("How many edits there were", needed=ATTEMPTS)
    appendix: AppendixCounts | None = fact(
        "What happened to the appendix; absent where it stayed as it was", on=CANDIDATES
    )
    screening: Screening | None = fact(
        "How its candidate did on train items first; absent where nothing was screened", on=ATTEMPTS
    )
    evaluation: EvaluationSummary | Any = fact(
        "Its score on the selection split, measured or taken over from another version",
        on={_K.SLOW_PROPOSED},
        needed=CANDIDATES | START | {_K.SLOW_MERGED, _K.REVERTED, _K.MEASURED},
        trailer="Eval",
    )
    evaluations: tuple[EvaluationSummary, ...] = fact(
        "Scores on the test split of the first, the best and the last version, each naming its version",
        (),
        on=END,
        trailer="Eval",
    )
    verdict: Verdict | Any = fact(
        "The gate's decision and its numbers; of a measured version, how it compares with the newest one before it that"
        " has a score",
        on={_K.SLOW_PROPOSED, _K.REVERTED},
        needed=CANDIDATES | {_K.SLOW_MERGED, _K.MEASURED},
        trailer="Gate",
    )
    fixed: tuple[str, ...] = fact(
        "Items that score higher than under the base, or under the version that a verdict compares with",
        (),
        on=_PROPOSED | {_K.REVERTED, _K.MEASURED},
        trailer="",
    )
    broken: tuple[str, ...] = fact("Items that score lower", (), on=_PROPOSED | {_K.REVERTED, _K.MEASURED}, trailer="")
    placebo: Placebo | None = fact(
        "What the gate made of candidates that change nothing; absent if there were none", on=END
    )
    models: Models = fact("The models; nameless if none was asked", NOBODY, on=_PAID)
    cost: Cost = fact("What it cost", Cost(), on=_PAID)
    guidance: SkillText = fact(
        "The text for the slow region; empty if there was nothing to say",
        SkillText(""),
        on={_K.SLOW_PROPOSED},
        trailer="",
    )
    memory: str = fact("What the optimizer remembers from now on", "", on={_K.SLOW_PROPOSED}, trailer="")
    author: str = fact("Who made the commit", "", on={_K.EDITED}, trailer="", column=True)

    def __post_init__(self) -> None:
        if self.kind is EventKind.RUN_STARTED and self.version is None:
            object.__setattr__(self, "version", 0)
        FACTS_OF[self.kind].check(self)
        # titles of ours are cut; what a person wrote stays whole
        title = clean_line(self.title) if self.kind is EventKind.EDITED else clean_title(self.title)
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "why", clean_paragraphs(self.why))
        object.__setattr__(self, "edits", self.edits[:EDITS_SHOWN])
        object.__setattr__(self, "author", clean_line(self.author))

    @property
    def fact_names(self) -> tuple[str, ...]:
        """The facts that an event of its kind may have."""
        return FACTS_OF[self.kind].names

    @property
    def known_cost(self) -> Cost | None:
        """What it cost; None where events of its kind do not say, which is not the same as nothing."""
        return self.cost if "cost" in self.fact_names else None

    @property
    def new_version(self) -> int | None:
        """The version that it makes; None if it makes none."""
        return None if self.kind is EventKind.MEASURED else self.version

    @property
    def at_version(self) -> int | None:
        """The version that it made or was proposed on; None if only its commit's place says it."""
        stated = (self.version, self.at, self.base)
        return next((version for version in stated if version is not None), None)

    @property
    def lines(self) -> tuple[int, ...]:
        """The versions that a candidate was made of, where these are not just the one that its run was at."""
        if self.kind not in CANDIDATES:
            return ()
        current = self.at_version if self.version is None else self.version - 1
        return made_of(self.base, self.joined, current or 0)

    @property
    def other_lines(self) -> tuple[int, ...]:
        """The versions that an accepted candidate was made of besides the one before it."""
        return tuple(version for version in self.lines if version != self.version - 1)

    @property
    def summary(self) -> EvaluationSummary | None:
        """Its score on the selection split, where that was measured for its text."""
        return self.evaluation if isinstance(self.evaluation, EvaluationSummary) else None

    @property
    def inherited(self) -> int | None:
        """The version whose score it takes over; None where it measured one itself, or has none."""
        return self.evaluation.version if isinstance(self.evaluation, Inherited) else None

    @property
    def decision(self) -> Decision | None:
        """What a gate decided; None where none did."""
        return None if self.verdict is None else self.verdict.decision

    @property
    def is_bound(self) -> bool:
        """Whether its score is only the highest that it could have been, because its evaluation was stopped."""
        return self.summary is not None and self.summary.stopped

    @property
    def is_tie(self) -> bool:
        """Whether the gate refused a candidate that scored as much as what it had to beat."""
        is_refused = self.decision is Decision.REJECT and not self.is_bound
        return is_refused and bool(self.verdict.score == self.verdict.current)

    @property
    def is_text(self) -> bool:
        """Whether its candidate was written as a whole, not made of edits."""
        return self.patch is not None and self.patch.mode.proposals is ProposalKind.DOCUMENTS

    @property
    def screened_out(self) -> bool:
        """Whether nothing was measured because its candidate did not help on train items."""
        return self.kind is EventKind.SKIPPED and self.screening is not None and not self.screening.passed

    @property
    def is_step(self) -> bool:
        """Whether it is what came of the rollouts of a step: a candidate, or none."""
        return self.kind in ATTEMPTS and self.origin is Origin.STEP

    @property
    def by_hand(self) -> bool:
        """Whether a person made its text, or asked for it."""
        return self.kind is EventKind.EDITED or self.origin.intervenes

    @property
    def address(self) -> Address:
        """What it is called: ``<run>/v7``, ``<run>/r17``."""
        return address_of(
            self.kind,
            run=self.run,
            version=self.new_version,
            step=self.step,
            epoch=self.epoch,
            origin=self.origin.value,
            number=self.number,
            at=self.at_version or 0,
        )

    @property
    def rank(self) -> Rank:
        """Its place among the events of its version and step."""
        if self.new_version is None and self.origin is Origin.META:
            return Rank.META
        is_refusal = self.kind is EventKind.REJECTED and self.origin.intervenes
        return Rank.INTERVENED if is_refusal else TRAITS[self.kind].rank

    def order(self, at: int) -> OrderKey:
        """Return the key that sorts the events of a run; ``at`` is the version that the run is at with this one.

        First comes the version that the run was at, then the step, then the kind. So everything that happened between
        two versions is between them, and a history has the same order however often it is read.
        """
        return at, self.step, self.rank, self.number

    def served_as(self, role: str) -> ServedModel | None:
        """Return who answers ``role`` at which server; None where that is not recorded."""
        return next((model for model in self.served if model.role == role), None)


OrderKey = tuple[int, int, int, int]  # version that the run is at, step, rank of the kind, number of an intervention
FACTS: Final = facts_of(Event)


class KindFacts:
    """The facts of events of one kind.

    Attributes:
        names: Those that it may have, in the order of their declaration.
        needed: Those of them that it must have.
    """

    def __init__(self, kind: EventKind, event_class: type[Event]) -> None:
        facts, defaults = facts_of(event_class), {entry.name: entry.default for entry in fields(event_class)}
        self.names = tuple(name for name, declared in facts.items() if kind in declared.kinds)
        self.needed = tuple(name for name in self.names if kind in facts[name].needed)
        self._foreign = tuple(name for name in facts if name not in self.names)
        self._defaults = tuple(defaults[name] for name in self._foreign)
        self._values_needed, self._values_foreign = _getter(self.needed), _getter(self._foreign)

    def check(self, event: Event) -> None:
        """Refuse an event that lacks a fact that its kind must have, or has one that its kind cannot have."""
        if None in self._values_needed(event):
            absent = next(name for name in self.needed if getattr(event, name) is None)
            raise InvariantError(f"{event.kind} has no {absent}", hint="skillgit fsck")
        if event.kind is EventKind.RUN_STARTED and event.version != 0:
            raise InvariantError(f"a run starts with version 0, not {event.version}", hint="skillgit fsck")
        if self._values_foreign(event) != self._defaults:
            pairs = zip(self._foreign, self._defaults, strict=True)
            name = next(name for name, default in pairs if getattr(event, name) != default)
            raise InvariantError(f"{event.kind} cannot have the fact {name}", hint="skillgit fsck")


def _getter(names: tuple[str, ...]) -> Callable[[Event], tuple[Any, ...]]:
    return attrgetter(*names)


FACTS_OF: Final = {kind: KindFacts(kind, Event) for kind in EventKind}
"""What a kind of events must and may have; checked whenever an event is made."""


def event_scope(event: Event) -> str:
    """Return the name that ``event`` had in the ledger while it was in progress; empty for one that cost nothing.

    It is the same whenever an event is attempted, so that a run that was killed and goes on costs what it would have.
    """
    match event.kind:
        case EventKind.RUN_STARTED:
            return start_scope(event.run)
        case EventKind.SLOW_PROPOSED:
            return slow_scope(event.run, event.epoch)
        case EventKind.MEASURED:
            return measure_scope(event.run, event.version)
        case EventKind.REVERTED:
            return intervention_scope(event.run, Origin.RESTORE, event.version)
        case EventKind.RUN_FINISHED:
            return finish_scope(event.run)
        case EventKind.SLOW_MERGED | EventKind.EDITED:
            return ""
        case _ if event.origin is Origin.META:
            return meta_scope(event.run, event.epoch)
        case _ if event.kind is EventKind.SKIPPED or not event.origin.intervenes:
            return step_scope(event.run, event.step)
        case _:
            number = event.base + 1 if event.origin is Origin.RESTORE else event.number
            return intervention_scope(event.run, event.origin, number)


def start_scope(run: str) -> str:
    return f"{run}/start"


def step_scope(run: str, step: int) -> str:
    return f"{run}/step-{step}"


def slow_scope(run: str, epoch: int) -> str:
    return f"{run}/slow-{epoch}"


def meta_scope(run: str, epoch: int) -> str:
    return f"{run}/meta-{epoch}"


def measure_scope(run: str, version: int) -> str:
    return f"{run}/measure-{version}"


def finish_scope(run: str) -> str:
    return f"{run}/finish"


def intervention_scope(run: str, origin: Origin, number: int) -> str:
    """Return the name of an intervention: of the version that restoring would make, else of its number."""
    return f"{run}/{origin.value}/{number}"
