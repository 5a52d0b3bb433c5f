"""What a change by hand did, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from shlex import quote
from textwrap import shorten
from typing import TYPE_CHECKING

from skillgit.domain.address import version_label
from skillgit.domain.score import known
from skillgit.view import gate, numbers
from skillgit.view.gate import following
from skillgit.view.items import name
from skillgit.view.json_values import Json, named_values
from skillgit.view.surface import Screen, Style
from skillgit.view.text import fit, headed, inert, one_line, table

if TYPE_CHECKING:
    from skillgit.app.interventions.cherry_pick import Retried, RetryResult
    from skillgit.app.interventions.fork import Fork
    from skillgit.app.interventions.merge import Merged, Stretch
    from skillgit.app.interventions.note import Noted
    from skillgit.app.interventions.promote import Promoted
    from skillgit.app.interventions.revert import RestoreResult


def restored(result: RestoreResult, screen: Screen) -> Iterator[str]:
    if result.version is None:
        stays = f"{result.run} stays at {version_label(result.base)}: the gate refused {version_label(result.target)}"
        yield screen.dotted((stays, _judged(result, screen)))
        yield from _basis(result, screen)
        candidate = result.run if result.event is None else result.event.address
        yield following((f"skillgit show {candidate}",), screen)
        return
    text = f"{result.run}/{version_label(result.version)} has the text of {version_label(result.target)}"
    score = (
        "not measured yet" if result.inherited is None else f"score inherited from {version_label(result.inherited)}"
    )
    score = _judged(result, screen) if result.verdict is not None else score
    if result.event is None:
        yield screen.dotted((f"would write: {text}", score))
        return
    yield screen.dotted((text, score, numbers.short(result.event.commit)))
    yield from _basis(result, screen)
    sides = f"{result.run}/{version_label(result.base)} {result.run}/{version_label(result.version)}"
    yield following((f"skillgit diff {sides}",), screen)


def _basis(result: RestoreResult, screen: Screen) -> Iterator[str]:
    if result.basis is not None:
        yield gate.fact("by", one_line(result.basis.sentence), screen)


def _judged(result: RestoreResult, screen: Screen) -> str:
    verdict = result.verdict
    if verdict is None:
        raise AssertionError("only a gate refuses")
    bound = screen.glyphs.at_most if result.event is not None and result.event.bound is not None else ""
    score = f"{verdict.metric.value} {bound}{numbers.score(verdict.score)} against {numbers.score(verdict.current)}"
    return ", ".join(filter(None, (score, verdict.token_words)))


def forked(result: Fork, screen: Screen) -> Iterator[str]:
    parts = (f"run {result.run} begins at {result.source}", f"{result.metric} {numbers.score(result.score)}")
    if result.event is None:
        yield f"would write: {screen.dotted(parts)}"
        return
    yield screen.dotted((*parts, numbers.short(result.event.commit)))
    if not result.planned:
        yield f"the configuration of {result.source} is not in this clone: train with the one that its run had"
    if result.default:
        yield "it is the default run now, as the newest one"
    run = result.source.rpartition("/")[0] if result.default else result.run
    train = "skillgit train" if result.planned else "skillgit train CONFIG"
    yield following((f"{train} --run {result.run}", f"skillgit use {run}"), screen)


def promoted(result: Promoted, screen: Screen) -> Iterator[str]:
    name = f"{result.run}/{version_label(result.version)}"
    release = f"released as {result.tag}" if result.tag else ""
    if result.held:
        yield screen.dotted((f"{result.branch} holds {name} already", release))
        return
    scores = [
        f"{split} {numbers.score(score)}"
        for split, score in (("selection", result.score), ("test", result.test))
        if score is not None
    ]
    before = f"in place of {result.before}" if result.before and result.before != name else ""
    text = screen.dotted((name, release, before, *(scores or ["not measured yet"])))
    if not result.commit:
        yield f"would bring to {result.branch}: {text}"
        return
    yield screen.dotted((f"{result.branch} holds {text}", numbers.short(result.commit)))
    yield following((f"git show --first-parent {quote(result.branch)}",), screen)


_NARROW, _INDENT = 100, 4


def merge_lines(result: Merged, screen: Screen) -> Iterator[str]:
    yield from gate.head(result.decided, screen)
    yield ""
    yield gate.fact("against", result.ancestor, screen)
    yield from _stretches(result, screen)
    yield from gate.facts(result.decided, screen)
    yield gate.following(gate.next_commands(result.decided), screen)


def _stretches(result: Merged, screen: Screen) -> Iterator[str]:
    if not result.stretches:
        yield gate.fact("merge", "no line was changed by both", screen)
        return
    for number, stretch in enumerate(result.stretches, 1):
        yield ""
        choice = f"{screen.glyphs.arrow} {stretch.chosen}" if stretch.chosen else f"one of {', '.join(stretch.choices)}"
        title = screen.paint(Style.STRONG, f"conflict {number}")
        yield f"{title}  {stretch.file} line {stretch.line}  {choice}"
        yield from _texts(stretch, screen)
        if stretch.tried:
            scores = zip(*((trial.choice, numbers.score(trial.score)) for trial in stretch.tried), strict=True)
            yield from table(list(scores), align="r" * len(stretch.tried), indent=" " * _INDENT)


def _texts(stretch: Stretch, screen: Screen) -> Iterator[str]:
    room = (screen.width or _NARROW) - _INDENT - 8
    for side, text in (("ours", stretch.ours), ("theirs", stretch.theirs)):
        lines = [line for line in text.splitlines() if line.strip()] or ["nothing"]
        for number, line in enumerate(lines):
            label = screen.paint(Style.FAINT, (side if number == 0 else "").ljust(6))
            yield f"{' ' * _INDENT}{label}  {fit(line, room, screen.glyphs.ellipsis)}"


_LEFT = 8  # untried candidates that are named


def retry_lines(result: RetryResult, screen: Screen) -> Iterator[str]:
    model = f"target {result.target}{'' if result.own_model else ', not the model of the run'}"
    whole = f"{version_label(result.base)} {result.metric} {numbers.score(result.base_score)}"
    summary = f"{whole} on {numbers.plural(result.n, f'{result.split} item')}"
    if result.base_score is None:
        summary = f"nothing applies to {version_label(result.base)}"
    yield f"{screen.paint(Style.STRONG, result.run)}  {screen.dotted((model, summary))}"
    trials = [row for row in result.rows if not row.reason]
    if trials:
        yield ""
        names = ("", "", "then", "delta", "on", "now", "delta", "fixed", "broken", "p", "")
        yield from headed(names, (_cells(row, screen) for row in trials), screen, align="llrrlrrrrll")
    rest = [row for row in result.rows if row.reason]
    if rest:
        yield ""
    for row in rest[:_LEFT]:
        yield f"{screen.paint(Style.SKIPPED, f'{screen.glyphs.skipped} {row.name}')}  not tried: {row.reason}"
    if len(rest) > _LEFT:
        yield screen.paint(Style.FAINT, f"{len(rest) - _LEFT} more were not tried; --json names all")
    yield ""
    if result.kept is not None:
        yield from gate.decided(result.kept, screen)
        return
    yield gate.fact("by", one_line(result.basis.sentence), screen)
    yield gate.fact("cost", gate.cost(result.cost, screen), screen)
    yield gate.following(_next(result, trials), screen)


def _cells(row: Retried, screen: Screen) -> tuple[str, ...]:
    style = Style.ACCEPTED if row.passes else Style.REJECTED
    sign = screen.glyphs.passed if row.passes else screen.glyphs.rejected
    return (
        screen.paint(style, sign),
        screen.paint(Style.STRONG, row.name),
        numbers.known(known(row.old_score, row.bound), screen),
        numbers.delta(row.old_delta),
        version_label(row.old_base) if row.old_base is not None else "",
        numbers.score(row.score),
        numbers.delta(row.delta),
        str(len(row.fixed)),
        str(len(row.broken)),
        numbers.chance(row.p).removeprefix("p ") if row.p is not None else "",
        fit(row.title, 40, screen.glyphs.ellipsis),
    )


def _next(result: RetryResult, trials: list[Retried]) -> tuple[str, ...]:
    winners = [row for row in trials if row.passes]
    if not winners:
        return (f"skillgit show {result.run}/{trials[0].name}",) if trials else ("skillgit log --graph",)
    if not result.own_model:
        return (f"skillgit diff {result.run}/{version_label(result.base)} {result.run}/{winners[0].name}",)
    return (f"skillgit cherry-pick {result.run}/{winners[0].name} --run {result.run}",)


def noted(note: Noted) -> Iterator[str]:
    yield f"note {note.id} is on {_name(note)}; undo: skillgit note --remove {note.id}"


def unnoted(note: Noted) -> Iterator[str]:
    yield f"note {note.id} on {_name(note)} withdrawn: {shorten(one_line(note.text), 120)}"


def note_lines(notes: Sequence[Noted], screen: Screen, now: datetime) -> Iterator[str]:
    if not notes:
        yield "there are no notes"
    for note in notes:
        head = screen.dotted((_name(note), one_line(note.author), numbers.ago(note.time, now)))
        yield f"{screen.paint(Style.OID, note.id)}  {head}"
        yield from (f"    {line}" for line in inert(note.text).splitlines())


def note_rows(notes: Sequence[Noted]) -> Iterator[dict[str, Json]]:
    return ({**named_values(note), "name": _name(note), "commit": note.row.commit} for note in notes)


def _name(note: Noted) -> str:
    return f"{note.row.run}/{name(note.row)}"
