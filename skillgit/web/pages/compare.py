"""Versions or runs next to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from skillgit.domain.address import version_label
from skillgit.domain.text_diff import DiffAllowance, DiffExcerpt
from skillgit.errors import NotFoundError, UsageError
from skillgit.verbs.cost import COST, CostRequest
from skillgit.verbs.diff import ITEM_DIFF, RULE_DIFF, TEXT_DIFF, DiffRequest, ItemDiff, RulesDiffed
from skillgit.verbs.items import ItemWords, item_words
from skillgit.verbs.runs import RUNS, RunsRequest
from skillgit.view.item import asked
from skillgit.view.items import CHANGED, chance_words, change_words, counted
from skillgit.view.table import Cell
from skillgit.web.pages.version import costs_by
from skillgit.web.rendering import Answer, Page, Visit, page

MOST: Final = 4  # sides of a comparison
LISTED: Final = 100  # items of one kind that are listed
RULES: Final = 60
_CONTEXT: Final = 3


SPENDING: Final = costs_by("run")


class Pair(NamedTuple):
    """The first side of a comparison and another one."""

    a: str
    b: str
    items: ItemDiff | None  # absent where a side has no outcomes here
    missing: str  # why they are absent
    sums: str
    changes: Mapping[str, Sequence[str]]  # what happened, and the items to which it did
    words_of: Mapping[str, ItemWords]
    text: DiffExcerpt
    rules: RulesDiffed


@page("/compare")
def compare_page(visit: Visit) -> Answer:
    rows = {row.name: row for row in RUNS.ask(visit.workspace, RunsRequest()).rows}
    best = {name: f"{name}/{version_label(row.best_version)}" for name, row in rows.items()}  # what a run means
    names = tuple(dict.fromkeys(best.get(rev.strip(), rev.strip()) for rev in visit.values("rev") if rev.strip()))
    if len(names) > MOST:
        raise UsageError(f"{len(names)} versions are too many to compare", hint=f"name 2 to {MOST}")
    pairs = [*_pairs(visit, names)] if len(names) > 1 else []
    own_runs = [run for run in dict.fromkeys(name.rpartition("/")[0] for name in names) if run in rows]
    return Page(
        "compare.html",
        " and ".join((", ".join(names[:-1]), names[-1])) if pairs else "Compare",
        ITEM_DIFF.words(DiffRequest(a=names[0], b=names[1], items=True)) if pairs else (),
        names=names,
        runs=rows,
        own_runs=own_runs,
        most=MOST,
        pairs=pairs,
        matrix=_matrix(pairs) if len(pairs) > 1 else [],
        spending=[
            (Cell(run, link=("run", run, "cost")), COST.ask(visit.workspace, CostRequest(run=run)).total)
            for run in own_runs
        ],
        SPENDING=SPENDING,
        split=visit.value("view") == "split",
        asked=asked,
        listed=LISTED,
        rules_listed=RULES,
    )


def _pairs(visit: Visit, names: Sequence[str]) -> Iterator[Pair]:
    room = DiffAllowance()
    for name in names[1:]:
        request = DiffRequest(a=names[0], b=name, lines=_CONTEXT)
        item_diff, missing, sums = None, "", ""
        changes: dict[str, list[str]] = {}
        try:
            item_diff = ITEM_DIFF.ask(visit.workspace, request)
        except NotFoundError as error:
            missing = f"{error}; {error.hint}" if error.hint else str(error)
        else:
            labels = change_words(item_diff.differs)
            for kind in CHANGED:
                if members := getattr(item_diff, kind):
                    changes.setdefault(labels[kind], []).extend(members)
            counts = [(kind, len(getattr(item_diff, kind))) for kind in CHANGED]
            sums = f"{', '.join(counted(counts, item_diff.differs))} · {chance_words(item_diff)}"
        visible = [item for members in changes.values() for item in members[:LISTED]]
        yield Pair(
            a=names[0],
            b=name,
            items=item_diff,
            missing=missing,
            sums=sums,
            changes=changes,
            words_of=item_words(visit.workspace, [names[0], name], visible) if visible else {},
            text=room.take(TEXT_DIFF.ask(visit.workspace, request).files),
            rules=RULE_DIFF.ask(visit.workspace, request),
        )


def _matrix(pairs: Sequence[Pair]) -> list[tuple[str, Sequence[float | None]]]:
    """Return the items on which a side differs from the first one, with their scores under all sides."""
    scores: dict[str, list[float | None]] = {}
    flips: set[str] = set()
    for number, pair in enumerate(pairs, 1):
        for row in pair.items.rows if pair.items else ():
            entry = scores.setdefault(row.item, [None] * (len(pairs) + 1))
            entry[0] = row.before if row.before is not None else entry[0]
            entry[number] = row.after
            if row.change in CHANGED:
                flips.add(row.item)
    return [(item, scores[item]) for item in sorted(flips)]
