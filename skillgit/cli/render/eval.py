"""Several versions side by side: scores with intervals, task types, and each against the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import table
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.eval import ArmScores, Evaluated
    from skillgit.app.scores import Comparison, Interval, Scores
    from skillgit.cli.screen import Screen


def measured_line(name: str, split: str, found: Scores, screen: Screen) -> str:
    """Return what was measured just now on one line."""
    dot = f" {screen.glyphs.dot} "
    parts = (f"hard {_mean(found.hard)}", f"soft {_mean(found.soft)}", f"{found.scored} of {found.n} items scored")
    return f"{name}  {split}  {dot.join(parts)}"


def lines(result: Evaluated, screen: Screen) -> Iterator[str]:
    """Yield everything about an evaluation."""
    dot = f" {screen.glyphs.dot} "
    yield dot.join((result.environment, f"target {result.target}", f"seed {result.seed}"))
    for place, split in enumerate(found.split for found in result.arms[0].splits):
        yield ""
        yield from _split(result, place, screen)
        against = [found for found in result.comparisons if found.split == split]
        if against:
            yield ""
            yield from _against(against, screen)
    yield ""
    yield from _end(result, screen)


def _split(result: Evaluated, place: int, screen: Screen) -> Iterator[str]:
    arms = result.arms
    first = arms[0].splits[place]
    yield f"{screen.paint(Style.STRONG, first.split)}  {words.plural(first.overall.n, 'item')}"
    head = tuple(screen.paint(Style.FAINT, cell) for cell in ("", "scored", "hard", "95 %", "soft", "95 %"))
    rows = [_overall(arm, place) for arm in arms]
    yield from table([head, *rows], align="lrrlrl")
    kinds = [group.task_type for group in first.types]
    if len(kinds) > 1:
        yield ""
        yield from _types(arms, place, screen)


def _overall(arm: ArmScores, place: int) -> tuple[str, ...]:
    found = arm.splits[place].overall
    return (
        arm.name,
        f"{found.scored}/{found.n}",
        _mean(found.hard),
        _interval(found.hard_interval),
        _mean(found.soft),
        _interval(found.soft_interval),
    )


def _types(arms: Sequence[ArmScores], place: int, screen: Screen) -> Iterator[str]:
    """Yield the hard score of each task type under each skill."""
    head = tuple(screen.paint(Style.FAINT, cell) for cell in ("task type, hard", "items", *(arm.name for arm in arms)))
    rows = [
        (
            group.task_type or "none",
            str(group.n),
            *(_mean(arm.splits[place].types[number].hard) for arm in arms),
        )
        for number, group in enumerate(arms[0].splits[place].types)
    ]
    yield from table([head, *rows], align="lr" + "r" * len(arms))


def _against(found: Sequence[Comparison], screen: Screen) -> Iterator[str]:
    metric = found[0].metric
    names = ("", f"{metric} gained", "95 %", "fixed", "broken", "paired test")
    head = tuple(screen.paint(Style.FAINT, cell) for cell in names)
    rows = [
        (
            f"{one.name} against {one.against}",
            words.delta(one.delta) or "none",
            _signed(one.interval),
            str(len(one.fixed)),
            str(len(one.broken)),
            words.chance(one.p) if one.p is not None else "",
        )
        for one in found
    ]
    yield from table([head, *rows], align="lrlrrl")


def _end(result: Evaluated, screen: Screen) -> Iterator[str]:
    tested = [arm for arm in result.arms if arm.commit]
    if any(found.split == "test" for found in result.arms[0].splits):
        reads = ", ".join(f"{arm.name} {words.plural(arm.test_reads, 'time')}" for arm in tested)
        yield _fact("test", f"evaluated so far: {reads}", screen)
    noted = f"{words.plural(result.noted, 'new evaluation')} on refs/notes/skillgit/evals"
    yield _fact("notes", noted if result.noted else "nothing new", screen)
    yield _fact("cost", words.cost(result.cost, screen), screen)


def _fact(label: str, text: str, screen: Screen) -> str:
    return f"{screen.paint(Style.FAINT, label.ljust(5))}  {text}"


def _mean(value: float | None) -> str:
    return words.score(value) if value is not None else "none"


def _interval(found: Interval | None) -> str:
    return f"{words.score(found[0])} to {words.score(found[1])}" if found is not None else ""


def _signed(found: Interval | None) -> str:
    return f"{words.delta(found[0])} to {words.delta(found[1])}" if found is not None else ""
