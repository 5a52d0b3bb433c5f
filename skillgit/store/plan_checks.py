"""Whether the plan in the evidence of a run's first event, its configuration and items, is that of the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.evaluation import EvaluationSummary, Split, item_set_digest
from skillgit.domain.event import RunFinished, RunStarted
from skillgit.domain.ids import short_digest
from skillgit.domain.untrusted.documents import loads
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

CONFIG, SPLITS, ENVIRONMENT = "config.json", "splits.json", "environment.json"


def plan_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[tuple[Recorded, str]]:
    """Yield the events that contradict the files behind the first of ``records``, and how, as far as those are here.

    The digest of the configuration covers the prompts of the program that wrote it too, and cannot be made again.
    """
    first = records[0]
    if not isinstance(first.event, RunStarted):
        return
    try:
        files = read_evidence(repo, first.evidence, (CONFIG, SPLITS, ENVIRONMENT)) or {}
    except (pygit2.GitError, KeyError):
        # that a file is missing is told where objects are looked for
        return
    documents: dict[str, Mapping[str, object]] = {}
    for name, content in files.items():
        found = _document(content)
        if found is None or (name == CONFIG and not all(isinstance(section, dict) for section in found.values())):
            yield first, f"{name} in the evidence cannot be read"
        else:
            documents[name] = found
    if ENVIRONMENT in documents:
        for sentence in _environment_problems(first.event, documents[ENVIRONMENT]):
            yield first, sentence
    if SPLITS in documents:
        try:
            sets = {name: item_set_digest(_items(rows)) for name, rows in documents[SPLITS].items()}
        except (TypeError, KeyError):
            yield first, f"{SPLITS} in the evidence cannot be read"
            return
        yield from _split_problems(records, documents[SPLITS], sets)


def _document(content: bytes) -> Mapping[str, object] | None:
    try:
        found = loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _items(rows: object) -> dict[str, str]:
    """Return item to digest of its content."""
    if not isinstance(rows, list):
        raise TypeError(rows)
    return {row["id"]: row["digest"] for row in rows}


def _environment_problems(event: RunStarted, document: Mapping[str, object]) -> Iterator[str]:
    found = document.get("digest")
    if found != event.environment:
        told = f"the digest {found}" if isinstance(found, str) else "no digest"
        yield f"the environment in the evidence has {told}, and the commit says {event.environment}"


def _split_problems(
    records: Sequence[Recorded], splits: Mapping[str, object], sets: Mapping[str, str]
) -> Iterator[tuple[Recorded, str]]:
    first = records[0]
    event, found = first.event, short_digest(sets)
    if not isinstance(event, RunStarted):
        return
    if found != event.splits:
        yield first, f"the splits in the evidence have the digest {found}, and the commit says {event.splits}"
        return
    told = event.evaluation
    selection = sets.get(Split.SELECTION, "")
    if splits.get(Split.SELECTION) and isinstance(told, EvaluationSummary) and told.item_set != selection:
        yield (
            first,
            f"the selection items in the evidence are the set {selection}, and the commit says {told.item_set}",
        )
    for record in records:
        ends = record.event.evaluations if isinstance(record.event, RunFinished) else ()
        for item_set in {one.item_set for one in ends if splits.get(Split.TEST)} - {sets.get(Split.TEST)}:
            yield (
                record,
                f"the test items in the evidence are the set {sets[Split.TEST]}, and the commit says {item_set}",
            )
