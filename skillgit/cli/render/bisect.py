"""The version that fixed or broke an item: its line, what it changed, and the item before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.columns import fit, pad, width
from skillgit.cli.render.item_table import sign
from skillgit.cli.render.log import line as log_line
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from skillgit.app.bisect import Bisected, Flip
    from skillgit.app.item import Attempt
    from skillgit.cli.screen import Screen

_MOST_LINES = 24
_MOST_FLIPS = 12
_ANSWER = 32


def lines(found: Bisected, screen: Screen, now: datetime) -> Iterator[str]:
    """Yield what was found."""
    yield _verdict(found, screen)
    if found.row is not None:
        yield ""
        yield log_line(found.row, screen, now)
        yield from _changed(found, screen)
    yield ""
    yield from _ends(found, screen)
    if len(found.flips) > 1:
        yield ""
        yield f"the outcome flipped {len(found.flips)} times:"
        for flip in found.flips[-_MOST_FLIPS:]:
            yield f"  {_flip(flip, screen)}"
        if len(found.flips) > _MOST_FLIPS:
            yield screen.paint(Style.FAINT, f"  {len(found.flips) - _MOST_FLIPS} older ones; --json has all")
    yield from _asked(found, screen)


def _verdict(found: Bisected, screen: Screen) -> str:
    item = screen.paint(Style.STRONG, found.item)
    if found.flip is None:
        solved = found.newer.outcome is not None and found.newer.outcome.solved
        if found.flips:
            ends = (
                f"both {found.first} and {found.last} solve"
                if solved
                else f"neither {found.first} nor {found.last} solves"
            )
            return f"{ends} {item}; it changed in between"
        kind = "known" if found.gaps else "measured"
        return f"{'every' if solved else 'no'} {kind} version from {found.first} to {found.last} solves {item}"
    style = Style.ACCEPTED if found.flip.change == "fixed" else Style.REJECTED
    did = screen.paint(style, "fixed" if found.flip.change == "fixed" else "broke")
    if len(found.suspects) == 1:
        return f"{screen.paint(Style.STRONG, found.suspects[0])} {did} {item}"
    return f"one of {found.suspects[0]} to {found.suspects[-1]} {did} {item}; {_why_open(found, found.flip)}"


def _why_open(found: Bisected, flip: Flip) -> str:
    """Return why it is not known which of the suspects it was."""
    between = len(found.suspects) - 1
    where = f"{words.plural(between, 'version')} between {flip.older} and {flip.newer}"
    if found.absence is None:
        return f"{where} {'was' if between == 1 else 'were'} not measured on it"
    lost = f"{len(found.gaps)} of {where}" if len(found.gaps) < between else where
    return found.absence.sentence(lost)


def _changed(found: Bisected, screen: Screen) -> Iterator[str]:
    """Yield the edits and the lines that changed."""
    for edit in found.edits:
        told = f"{edit.op.value} {edit.file}, support {edit.support} {edit.source.value}"
        yield f"   {screen.paint(Style.FAINT, told)}"
    body = [line for line in found.diff.splitlines() if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}]
    shown = [line for line in body if line[1:].strip()]
    columns = screen.width - 3 if screen.width else 0
    for line in shown[:_MOST_LINES]:
        style = Style.ACCEPTED if line[0] == "+" else Style.REJECTED
        text = fit(line, columns, screen.glyphs.ellipsis) if columns else line
        yield f"   {screen.paint(style, text)}"
    if len(shown) > _MOST_LINES:
        yield screen.paint(
            Style.FAINT, f"   {len(shown) - _MOST_LINES} more; skillgit show {found.run}/{found.suspects[0]}"
        )


def _ends(found: Bisected, screen: Screen) -> Iterator[str]:
    both = (found.older, found.newer)
    names, answers = max(width(one.name) for one in both), max(width(_answer(one)) for one in both)
    answers = min(answers, _ANSWER)
    for one in both:
        value = one.outcome.value if one.outcome is not None else None
        front = f"{pad(one.name, names)}  {sign(one.outcome, screen)}  {words.score(value):<5}"
        answer = pad(fit(_answer(one), answers, screen.glyphs.ellipsis), answers)
        why = _feedback(one)
        room = screen.width - width(front) - answers - 4 if screen.width else 0
        why = fit(why, max(20, room), screen.glyphs.ellipsis) if screen.width else why
        yield f"{front}  {answer}  {screen.paint(Style.FAINT, why)}".rstrip()


def _asked(found: Bisected, screen: Screen) -> Iterator[str]:
    if found.cost is not None:
        yield ""
        asked = f"rolled out {' '.join(found.measured)}" if found.measured else "nothing was missing"
        noted = ", noted on refs/notes/skillgit/evals" if found.measured else ""
        yield screen.paint(Style.FAINT, f"{asked}{noted} {screen.glyphs.dot} {words.cost(found.cost, screen)}")
    elif found.flip is not None and len(found.suspects) > 1:
        ends = f"{found.run}/{found.flip.older} {found.run}/{found.flip.newer}"
        yield ""
        if found.told:
            did = "fixed" if found.flip.change == "fixed" else "broke"
            yield f"commit messages say that {', '.join(found.told)} {did} it"
        yield screen.paint(Style.FAINT, f"next: skillgit bisect --item {found.item} {ends} --run")


def _flip(flip: Flip, screen: Screen) -> str:
    style = Style.ACCEPTED if flip.change == "fixed" else Style.REJECTED
    return f"{flip.older} {screen.glyphs.arrow} {flip.newer}  {screen.paint(style, flip.change)}"


def _answer(one: Attempt) -> str:
    return " ".join(one.answer.split())


def _feedback(one: Attempt) -> str:
    if one.outcome is not None and one.outcome.noted:
        return "measured after the run; a note tells it"
    return " ".join(one.feedback.split())
