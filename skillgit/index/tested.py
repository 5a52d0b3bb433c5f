"""What the seed and the best version of each run score on the test split: at the run's end, else as a note tells it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from skillgit.index.schema import SCORE

if TYPE_CHECKING:
    from skillgit.index.refresh import Index

_AT_THE_END = f"""
    SELECT r.name, m.version, m.item_set, '', {SCORE.format("m")}
    FROM run r
    JOIN event x ON x.run = r.name AND x.kind = 'run-finished'
    JOIN evaluation m ON m.event = x.id
    WHERE r.name IN (SELECT value FROM json_each(?))
      AND m.split = 'test' AND m.scored > 0 AND m.version IN (0, r.best_version)"""  # noqa: S608 - names are ours
_NOTED = f"""
    WITH document AS (
        SELECT oid, position, CASE WHEN json_valid(line) THEN line ELSE '{{}}' END AS line FROM note
    ), measured AS (
        SELECT oid, position, json_extract(line, '$.item_set') AS item_set, json_extract(line, '$.target') AS target,
               json_extract(line, '$.environment') AS environment,
               json_extract(line, '$.hard') AS hard, json_extract(line, '$.soft') AS soft
        FROM document
        WHERE json_extract(line, '$.kind') = 'evaluation' AND json_extract(line, '$.split') = 'test'
          AND json_type(line, '$.hard') IN ('real', 'integer') AND json_type(line, '$.soft') IN ('real', 'integer')
    )
    SELECT r.name, v.version, m.item_set, m.environment, {SCORE.format("m")}
    FROM run r
    JOIN version v ON v.run = r.name AND v.version IN (0, r.best_version)
    JOIN event e ON e.id = v.event
    JOIN event s ON s.run = r.name AND s.version = 0
    JOIN measured m ON m.oid = e.oid AND COALESCE(m.target, '') IN ('', s.target)
    WHERE r.name IN (SELECT value FROM json_each(?)) AND m.hard BETWEEN 0 AND 1 AND m.soft BETWEEN 0 AND 1
    ORDER BY m.position DESC"""  # noqa: S608 - names are ours
"""Notes may come from strangers: what is no evaluation of the run's own target is passed over."""


class Tested(NamedTuple):
    """Scores on the test split under the run's metric.

    Attributes:
        first: The seed's on the items of ``best``; absent if it was not measured on them.
        best: The best version's.
    """

    first: float | None
    best: float


def tested(index: Index, best: dict[str, int]) -> dict[str, Tested]:
    """Return run to its test scores; ``best`` is run to its best version. Runs without one are left out."""
    known: dict[str, Tested] = {}
    for query in (_AT_THE_END, _NOTED):
        measured: dict[tuple[str, int], dict[tuple[str, str], float]] = {}
        for run, version, item_set, environment, score in index.select(query, (json.dumps([*best]),)):
            measured.setdefault((run, version), {}).setdefault((str(item_set), str(environment)), float(score))
        for run, version in best.items():
            if run not in known and (found := measured.get((run, version))):
                items, score = next(iter(found.items()))
                known[run] = Tested(first=measured.get((run, 0), {}).get(items), best=score)
    return known
