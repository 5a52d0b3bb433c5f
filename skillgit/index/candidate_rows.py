"""The rows of a candidate in its usual form, straight from its plain values.

``event_rows`` says what the tables hold of an event; the rows here are the ones that it makes of the same candidate.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from skillgit.domain.event import EDITS_SHOWN, Origin
from skillgit.domain.prose import clean_line, clean_paragraphs, clean_title
from skillgit.index.schema import AMOUNTS
from skillgit.store.values import DEFAULT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillgit.domain.cost import CostPart
    from skillgit.store.sketches import Sketch

amounts = attrgetter(*AMOUNTS)
_STEP = str(Origin.STEP)
_SELDOM = (0,) * (len(AMOUNTS) - 5)
"""The counts of a cost that a usual candidate does not tell."""


def add_candidate(tables: Mapping[str, list[Any]], place: int, sketch: Sketch, *, loaded: bool) -> None:
    """Add the rows of the candidate whose place among the events is ``place`` to those of each table."""
    facts, title = sketch.facts, clean_title(sketch.facts.prose.title)
    tables["event"].append(_event_row(place, sketch, title, loaded=loaded))
    tables["candidate"].append(_candidate_row(place, sketch))
    tables["edit"] += [(place, position, *edit) for position, edit in enumerate(facts.edits[:EDITS_SHOWN])]
    tables["spent"] += spent_rows(place, facts.parts)
    scores = (facts.n, facts.scored, facts.hard, facts.soft, facts.seed)
    tables["evaluation"].append((place, 0, facts.split, facts.version, facts.item_set, *scores))
    tables["search"].append((place, title, *_texts(sketch)))


def spent_rows(place: int, parts: Iterable[CostPart]) -> Iterable[tuple[Any, ...]]:
    """Return the rows of what an event cost by role and stage."""
    return [(place, part.role, part.stage, *amounts(part.cost)) for part in parts]


def _event_row(place: int, sketch: Sketch, title: str, *, loaded: bool) -> tuple[Any, ...]:
    facts, models = sketch.facts, sketch.facts.models
    at, step, rank, number = sketch.order
    return (
        place,
        facts.run,
        sketch.commit,
        facts.kind,
        at,
        rank,
        step,
        number,
        facts.epoch,
        facts.version,
        facts.base,
        title,
        _STEP,
        "",
        "",
        facts.skill,
        sketch.time,
        "",
        facts.evidence,
        int(loaded),
        models.target,
        models.optimizer,
        models.judge,
        facts.calls,
        facts.tokens_in,
        facts.tokens_out,
        facts.usd,
        facts.seconds,
        *_SELDOM,
    )


def _candidate_row(place: int, sketch: Sketch) -> tuple[Any, ...]:
    facts, patch = sketch.facts, sketch.facts.patch
    return (
        place,
        facts.decision,
        facts.policy,
        facts.metric,
        DEFAULT_WEIGHT,
        facts.score,
        facts.current,
        facts.best,
        facts.fixed,
        facts.broken,
        facts.p,
        facts.n,
        facts.unneeded - facts.spare,
        int(facts.unneeded > 0),
        patch.merged,
        patch.ranked,
        patch.applied,
        patch.skipped,
        patch.budget,
    )


def _texts(sketch: Sketch) -> tuple[str, str]:
    """Return what can be searched besides the title: reasons with removed lines, and added lines."""
    prose = sketch.facts.prose
    body = [clean_paragraphs(prose.why)]
    added: list[str] = []
    for sign, text in prose.changes:
        (added if sign == "+" else body).append(clean_line(text))
    return "\n".join(body), "\n".join(added)
