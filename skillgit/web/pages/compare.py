"""Versions or runs beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillgit.app.deliver.report import DiffAllowance, DiffExcerpt
from skillgit.app.history.cost import cost
from skillgit.app.history.diff.items import ItemDiff, items
from skillgit.app.history.diff.rules import RulesDiffed, rule_diff
from skillgit.app.history.diff.text import diff
from skillgit.app.history.item import ItemWords, item_words
from skillgit.app.history.status import runs
from skillgit.domain.address import version_label
from skillgit.errors import NotFoundError, UsageError
from skillgit.index.rows import RunRow
from skillgit.view.item import asked
from skillgit.view.items import CHANGED, chance_words, change_words, counted
from skillgit.web.rendering import Page, PageRoute, Visit

MOST = 4  # sides of a comparison
LISTED = 100  # items of one kind that are listed
RULES = 60
_CONTEXT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair:
    """The first side of a comparison and another one."""

    a: str
    b: str
    items: ItemDiff | None  # absent where a side has no outcomes here
    missing: str  # why they are absent
    sums: Sequence[str]
    test: str
    changes: Sequence[tuple[str, Sequence[str]]]  # what happened, and the items to which it did
    words_of: Mapping[str, ItemWords]
    text: DiffExcerpt
    rules: RulesDiffed


def compare_page(visit: Visit) -> Page:
    rows = {row.name: row for row in runs(visit.context)}
    names = tuple(dict.fromkeys(_version(rev, rows) for rev in visit.values("rev") if rev.strip()))
    if len(names) > MOST:
        raise UsageError(f"{len(names)} versions are too many to compare", hint=f"name 2 to {MOST}")
    pairs = tuple(_pairs(visit, names)) if len(names) > 1 else ()
    own_runs = tuple(dict.fromkeys(name.rpartition("/")[0] for name in names))
    split = visit.value("view") == "split"
    values = {
        "names": names,
        "runs": rows,
        "most": MOST,
        "pairs": pairs,
        "matrix": tuple(_matrix(pairs)) if len(pairs) > 1 else (),
        "spending": [(run, cost(visit.context, run).total) for run in own_runs if run in rows],
        "split": split,
        "asked": asked,
        "listed": LISTED,
        "rules_listed": RULES,
    }
    command = ("diff", names[0], names[1], "--items") if pairs else ()
    title = " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "Compare"
    return Page(template="compare.html", title=title, command=command, values=values)


def _version(revision: str, rows: Mapping[str, RunRow]) -> str:
    """Return what a side is: of a run its best version."""
    row = rows.get(revision.strip())
    return revision.strip() if row is None else f"{row.name}/{version_label(row.best_version)}"


def _pairs(visit: Visit, names: Sequence[str]) -> Iterator[ComparedPair]:
    room = DiffAllowance()
    for name in names[1:]:
        item_diff: ItemDiff | None = None
        missing = ""
        try:
            item_diff = items(visit.context, names[0], name)
        except NotFoundError as error:
            missing = f"{error}; {error.hint}" if error.hint else str(error)
        differs = item_diff.differs if item_diff else ()
        changes = [(kind, getattr(item_diff, kind)) for kind in CHANGED] if item_diff else []
        labels = change_words(differs)
        by_label: dict[str, list[str]] = {}
        for kind, members in changes:
            by_label.setdefault(labels[kind], []).extend(members)
        visible = [item for members in by_label.values() for item in members[:LISTED]]
        yield ComparedPair(
            a=names[0],
            b=name,
            items=item_diff,
            missing=missing,
            sums=counted([(kind, len(members)) for kind, members in changes], differs) if item_diff else [],
            test=chance_words(item_diff) if item_diff else "",
            changes=[(label, members) for label, members in by_label.items() if members],
            words_of=item_words(visit.context, [names[0], name], visible) if visible else {},
            text=room.take(diff(visit.context, names[0], name, lines=_CONTEXT, as_data=True).files),
            rules=rule_diff(visit.context, names[0], name),
        )


def _matrix(pairs: Sequence[ComparedPair]) -> Iterator[tuple[str, Sequence[float | None]]]:
    """Yield the items on which a side differs from the first one, with their scores under all sides."""
    scores: dict[str, list[float | None]] = {}
    flips: set[str] = set()
    for number, pair in enumerate(pairs, 1):
        for row in pair.items.rows if pair.items else ():
            entry = scores.setdefault(row.item, [None] * (len(pairs) + 1))
            entry[0] = row.before if row.before is not None else entry[0]
            entry[number] = row.after
            if row.change in CHANGED:
                flips.add(row.item)
    yield from ((item, scores[item]) for item in sorted(flips))


ROUTES = (PageRoute(path="/compare", page=compare_page),)
