"""Every trailer, once: which events bear it, how often, what its value is, what it says.

Reading and writing of events (``commit_message``), the check for trailers out of place (``event_checks``) and the
reference in ``docs/scripting.md`` use this table. A new trailer is a line here and an attribute of its events.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from skillgit.domain.cost import Cost
from skillgit.domain.event import (
    KIND_OF,
    NOBODY,
    Accepted,
    Edited,
    Event,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunOutcome,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
)
from skillgit.domain.proposal import Origin
from skillgit.store.trailer_values import (
    APPENDIX,
    AS_THE_CLASS,
    COST,
    EDIT,
    GATE,
    GAUGE,
    INTEGER,
    MEASUREMENT,
    MODELS,
    NEEDED,
    ORIGIN,
    PATCH,
    PLACEBO,
    SCREENING,
    SERVED,
    SPENT,
    SUMMARY,
    TEXT,
    Record,
    TokenKind,
    ValueForm,
    default_of,
    member,
)

KINDS: Final[dict[str, type[Event]]] = {kind: event for event, kind in KIND_OF.items() if event is not Edited}
"""The events that have trailers, by name."""


@dataclass(frozen=True, slots=True)
class Trailer:
    key: str  # its key without prefix
    form: ValueForm | TokenKind | Record[Any]
    # the attribute that its value is; empty if the value is written from the whole event and read as a mapping of
    # attributes
    attribute: str
    kinds: frozenset[type[Event]]
    meaning: str
    # what its absence says, where that is not the default of the event's class; `NEEDED` if it cannot be absent
    absent: Any = AS_THE_CLASS
    many: bool = False  # whether there is one for each element of the attribute
    # whether the events of a run have few different ones, so that it is worth while to keep what was read
    repeats: bool = False

    def said_by_absence(self, kind: type[Event]) -> Any:  # noqa: ANN401 - attributes have types of their own
        """Return what its absence means for an event of ``kind``; ``NEEDED`` if it cannot be absent."""
        return default_of(kind, self.attribute) if self.absent is AS_THE_CLASS else self.absent


def _on(*kinds: type[Event]) -> frozenset[type[Event]]:
    return frozenset(kinds)


_EVERY = frozenset(KINDS.values())
_START = _on(RunStarted)
_END = _on(RunFinished)
_CANDIDATES = _on(Accepted, Rejected)
_PROPOSED = _CANDIDATES | {SlowProposed}
_VERSIONS = _on(Accepted, SlowMerged, Reverted)
_INHERITING = _on(RunStarted, SlowMerged, Reverted)
_GATED = _PROPOSED | _VERSIONS | {Measured}
_PAID = _EVERY - {SlowMerged}
_NAME = ValueForm(" ".join(f"`{name}`" for name in KINDS), lambda _: {}, attrgetter("kind"))
_SEED = ValueForm("`0`", lambda _: {}, lambda _: "0")

TRAILERS: Final = (
    Trailer("Event", _NAME, "", _EVERY, "What happened", NEEDED),
    Trailer("Run", TEXT, "run", _EVERY, "The run", ""),
    Trailer("Skill", TEXT, "skill", _EVERY, "Path of the skill folder", ""),
    Trailer("Epoch", INTEGER, "epoch", _EVERY, "The epoch, from 1; 0 before the first step", NEEDED),
    Trailer("Step", INTEGER, "step", _EVERY - _START, "The step, or the last one before the event"),
    Trailer("Origin", ORIGIN, "", _CANDIDATES, "Where the candidate comes from, if not from a step's rollouts", {}),
    Trailer("Origin", member(Origin), "origin", _on(Skipped), "`meta` for the reflection on an epoch"),
    Trailer("Version", _SEED, "", _START, "The seed skill is version 0", {}),
    Trailer("Version", INTEGER, "version", _VERSIONS | {Measured}, "The version that it made, or measured"),
    Trailer("Base", _SEED, "", _START, "The seed skill is its own base", {}),
    Trailer("Base", INTEGER, "base", _PROPOSED | _VERSIONS, "The version that it was proposed on, or follows"),
    Trailer("At", INTEGER, "at", _on(Rejected), "The version that the run was at, if not the base"),
    Trailer("Joined", INTEGER, "joined", _CANDIDATES, "The version of another line whose edits were put on the base"),
    Trailer("Taken-Up-By", INTEGER, "taken_up_by", _on(Skipped), "The later step whose candidate includes its edits"),
    Trailer("Config", TEXT, "config", _START, "Digest of the configuration; the file is evidence", ""),
    Trailer("Splits", TEXT, "splits", _START, "Digest of the items of all splits", ""),
    Trailer("Env", TEXT, "environment", _START, "Digest of the environment's code, prompts and scorer", ""),
    Trailer("Metric", GAUGE, "gauge", _START, "The score that the gate compares, if not the hard one"),
    Trailer("Fork-Of", TEXT, "fork_of", _START, "`<run>/v<N>`, whose commit is the parent"),
    Trailer("Served", SERVED, "served", _START, "The model of a role and its server", many=True),
    Trailer("Target", INTEGER, "target", _on(Reverted), "The version whose text it takes"),
    Trailer("Outcome", member(RunOutcome), "outcome", _END, "How the run ended"),
    Trailer("Edit", EDIT, "edits", _CANDIDATES, "An applied edit; the text is the diff", many=True),
    Trailer("Patch", PATCH, "patch", _CANDIDATES | {Skipped}, "How many edits there were", repeats=True),
    Trailer("Appendix", APPENDIX, "appendix", _CANDIDATES, "What happened to the appendix"),
    Trailer("Screening", SCREENING, "screening", _CANDIDATES | {Skipped}, "How it did on train items first"),
    Trailer("Eval", SUMMARY, "evaluation", _PROPOSED | {Measured}, "The score on the selection split"),
    Trailer("Eval", MEASUREMENT, "evaluation", _INHERITING, "The score on the selection split, measured or taken over"),
    Trailer("Eval", SUMMARY, "evaluations", _END, "The score of a version on the test split", many=True),
    Trailer("Gate", GATE, "verdict", _GATED, "The gate's decision, and every number that it compared"),
    Trailer("Placebo", PLACEBO, "placebo", _END, "What the gate made of candidates that change nothing"),
    Trailer("Models", MODELS, "models", _PAID, "The models that were asked", NOBODY, repeats=True),
    Trailer("Cost", COST, "cost", _PAID, "What it cost", Cost()),
    Trailer("Spent", SPENT, "cost.parts", _PAID, "What one role cost in one stage", (), many=True),
)
"""In the order in which they are written, between the format and the evidence."""


def bearers(key: str) -> frozenset[type[Event]]:
    return frozenset().union(*(trailer.kinds for trailer in TRAILERS if trailer.key == key))
