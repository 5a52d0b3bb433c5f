"""The summary of a difference: git's own, then rules, items, scores and length on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render.items import counted, differing, headline, length

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.diff.items import Change
    from skillgit.app.diff.summary import DiffStat
    from skillgit.cli.screen import Screen


def lines(found: DiffStat, screen: Screen) -> Iterator[str]:
    """Yield what git prints, then the two sides and what changed between them."""
    yield from found.text.rstrip("\n").split("\n") if found.text else ()
    yield from (f" {line}" for line in differing(found.differs, screen))
    yield f" {headline(found.a, found.b, screen)}"
    yield f" {'   '.join(part for part in (_rules(found), _items(found), length(found.length)) if part)}"


def _rules(found: DiffStat) -> str:
    counts = (
        ("+", found.rules_added),
        ("-", found.rules_removed),
        ("~", found.rules_changed),
        (">", found.rules_moved),
    )
    told = [f"{sign}{count}" for sign, count in counts if count]
    return f"rules {' '.join(told) if told else 'the same'}"


def _items(found: DiffStat) -> str:
    if found.fixed is None or found.broken is None:
        return ""
    kinds: tuple[tuple[Change, int | None], ...] = (
        ("fixed", found.fixed),
        ("gained", found.gained),
        ("broken", found.broken),
        ("lost", found.lost),
    )
    parts = (
        f"items {', '.join(counted([(kind, count or 0) for kind, count in kinds], found.differs))}",
        f"of {found.compared}" if found.not_measured or found.missing else "",
        f", {found.not_measured} not measured" if found.not_measured else "",
        f", {found.missing} without a score on both sides" if found.missing else "",
    )
    return " ".join(part for part in parts if part).replace(" ,", ",")
