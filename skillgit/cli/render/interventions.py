"""What revert, fork and promote did, and what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.gated import following

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.fork import Fork
    from skillgit.app.promote import Promoted
    from skillgit.app.revert import RevertResult
    from skillgit.cli.screen import Screen


def reverted(result: RevertResult, screen: Screen) -> Iterator[str]:
    """Yield what became of a revert."""
    dot = f" {screen.glyphs.dot} "
    if result.version is None:
        stays = f"{result.run} stays at v{result.base}: the gate refused v{result.target}"
        yield dot.join((stays, _judged(result, screen)))
        yield following((f"skillgit show {_refused(result)}",), screen)
        return
    told = [f"{result.run}/v{result.version} has the text of v{result.target}", _score(result, screen)]
    if result.event is None:
        yield dot.join((f"would write: {told[0]}", *told[1:]))
        return
    yield dot.join((*told, words.short(result.event.commit)))
    yield following((f"skillgit diff {result.run}/v{result.base} {result.run}/v{result.version}",), screen)


def _score(result: RevertResult, screen: Screen) -> str:
    if result.verdict is not None:
        return _judged(result, screen)
    return "not measured yet" if result.inherited is None else f"score inherited from v{result.inherited}"


def _judged(result: RevertResult, screen: Screen) -> str:
    verdict = result.verdict
    if verdict is None:
        raise AssertionError("only a gate refuses")
    bound = screen.glyphs.at_most if result.event is not None and result.event.bound is not None else ""
    return f"{verdict.metric.value} {bound}{words.score(verdict.score)} against {words.score(verdict.current)}"


def _refused(result: RevertResult) -> str:
    row = result.event
    return str(row.address) if row is not None else result.run


def forked(result: Fork, screen: Screen) -> Iterator[str]:
    """Yield where a fork begins."""
    dot = f" {screen.glyphs.dot} "
    told = f"run {result.run} begins at {result.source}{dot}{result.metric} {words.score(result.score)}"
    if result.event is None:
        yield f"would write: {told}"
        return
    yield f"{told}{dot}{words.short(result.event.commit)}"
    if not result.planned:
        yield f"the configuration of {result.source} is not in this clone: train with the one that its run had"
    if result.default:
        yield "it is the default run now, as the newest one"
    other = result.source.rpartition("/")[0] if result.default else result.run
    yield following((f"skillgit train CONFIG --run {result.run}", f"skillgit use {other}"), screen)


def promoted(result: Promoted, screen: Screen) -> Iterator[str]:
    """Yield what ``main`` holds."""
    dot = f" {screen.glyphs.dot} "
    name = f"{result.run}/v{result.version}"
    released = f"released as {result.tag}" if result.tag else ""
    if result.held:
        yield f"main holds {name} already{dot + released if released else ''}"
        return
    scores = [
        f"{split} {words.score(score)}"
        for split, score in (("selection", result.score), ("test", result.test))
        if score is not None
    ]
    before = f"in place of {result.before}" if result.before and result.before != name else ""
    told = dot.join(part for part in (name, released, before, *(scores or ["not measured yet"])) if part)
    if not result.commit:
        yield f"would bring to main: {told}"
        return
    yield f"main holds {told}{dot}{words.short(result.commit)}"
    yield following(("git show --first-parent main",), screen)
