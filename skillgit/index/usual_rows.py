"""The rows of an event in its usual form, straight from its plain values.

``event_rows`` says what the tables hold of an event; the rows here are the ones that it makes of the same event.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from skillgit.domain.event import EDITS_SHOWN, NOBODY, Origin
from skillgit.domain.prose import clean_line, clean_paragraphs, clean_title
from skillgit.index.schema import AMOUNTS
from skillgit.store.message import read_flips
from skillgit.store.usual import CANDIDATES, SLOW_MERGED, SLOW_PROPOSED
from skillgit.store.values import DEFAULT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillgit.domain.cost import CostPart
    from skillgit.store.sketches import Sketch
    from skillgit.store.usual import Facts, Paid

amounts = attrgetter(*AMOUNTS)
_STEP = str(Origin.STEP)
_SELDOM = (0,) * (len(AMOUNTS) - 5)
"""The counts of a cost that a usual event does not tell."""
_NOTHING_PAID = (NOBODY.target, NOBODY.optimizer, NOBODY.judge, 0, 0, 0, 0.0, 0.0, *_SELDOM)
_UNGATED, _UNPATCHED = (None,) * 13, (None,) * 5
_NOT_STOPPED = (None, None, 0)
_COMPARED = frozenset({*CANDIDATES, SLOW_PROPOSED})
_SURROGATE = re.compile("[\ud800-\udfff]")


def add_usual(tables: Mapping[str, list[Any]], number: int, sketch: Sketch, *, loaded: bool) -> None:
    """Add the rows of the event that is called ``number`` to those of each table."""
    facts, title = sketch.facts, clean_title(sketch.facts.prose.title)
    tables["event"].append(_event_row(number, sketch, title, loaded=loaded))
    if facts.gate is not None or facts.patch is not None:
        tables["candidate"].append(_candidate_row(number, facts))
    if facts.edits:
        tables["edit"] += [(number, position, *edit) for position, edit in enumerate(facts.edits[:EDITS_SHOWN])]
    if facts.paid is not None and facts.paid.parts:
        tables["spent"] += spent_rows(number, facts.paid.parts)
    if (scores := facts.scores) is not None:
        tables["evaluation"].append((number, 0, scores.split, facts.version, *scores[1:7]))
    if facts.prose.flips and facts.kind in _COMPARED:
        tables["flip"] += flip_rows(number, **read_flips(facts.prose.flips))
    tables["search"].append((number, title, *_texts(sketch)))


def spent_rows(number: int, parts: Iterable[CostPart]) -> Iterable[tuple[Any, ...]]:
    """Return the rows of what an event cost by role and stage."""
    return [(number, part.role, part.stage, *amounts(part.cost)) for part in parts]


def flip_rows(number: int, fixed: Iterable[str], broken: Iterable[str]) -> Iterable[tuple[int, str, int]]:
    """Return the rows of the items that an event says it fixed and broke, each item once."""
    found = {**dict.fromkeys(broken, 0), **dict.fromkeys(fixed, 1)}
    # an item's name is a stranger's: half a surrogate pair is no text that SQLite takes
    return [(number, item, rose) for item, rose in found.items() if not _SURROGATE.search(item)]


def _event_row(number: int, sketch: Sketch, title: str, *, loaded: bool) -> tuple[Any, ...]:
    facts, (at, step, rank, intervention) = sketch.facts, sketch.order
    return (
        number,
        facts.run,
        sketch.commit,
        facts.kind,
        at,
        rank,
        step,
        intervention,
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
        *(_NOTHING_PAID if facts.paid is None else _paid(facts.paid)),
    )


def _paid(paid: Paid) -> tuple[Any, ...]:
    models, *told, _ = paid
    return (models.target, models.optimizer, models.judge, *told, *_SELDOM)


def _candidate_row(number: int, facts: Facts) -> tuple[Any, ...]:
    patch = facts.patch
    return (
        number,
        *_gated(facts),
        *(_UNPATCHED if patch is None else (patch.merged, patch.ranked, patch.applied, patch.skipped, patch.budget)),
    )


def _gated(facts: Facts) -> tuple[Any, ...]:
    """Return verdict, items, how many were saved, and whether the candidate was stopped."""
    gate, scores = facts.gate, facts.scores
    if gate is None or scores is None:
        return _UNGATED
    decision, policy, metric, *numbers = gate
    # a version is no candidate
    saved, is_stopped = scores.unneeded - scores.spare, int(scores.unneeded > 0)
    stop = _NOT_STOPPED if facts.kind == SLOW_MERGED else (scores.n, saved, is_stopped)
    return (decision, policy, metric, DEFAULT_WEIGHT, *numbers, *stop)


def _texts(sketch: Sketch) -> tuple[str, str]:
    """Return what can be searched besides the title: reasons with removed lines, and added lines or guidance."""
    facts, prose = sketch.facts, sketch.facts.prose
    body = [clean_paragraphs(prose.why)]
    added = [sketch.guidance]
    if facts.kind in CANDIDATES:
        added = []
        for sign, text in prose.changes:
            (added if sign == "+" else body).append(clean_line(text))
    return "\n".join(body), "\n".join(added)
