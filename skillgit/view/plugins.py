"""What is installed: environments and backends as a list, and each with all that is known of it."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.plugin.environment import SourceKind
from skillgit.view.numbers import plural
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, fit, inert, pad, width, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillgit.app.setup.environment_profile import (
        EnvironmentProfile,
        ItemSample,
        ProfiledEnvironment,
        Requirement,
        ScorerChoice,
    )
    from skillgit.app.setup.plugins import BackendEntry, EnvironmentEntry
    from skillgit.domain.trajectory import Turn
    from skillgit.plugin.backend import Price
    from skillgit.plugin.environment import EnvironmentInfo, Option, PublicSource

_COLUMNS = 100  # of a description at most
_HEAD_LINES, _TAIL_LINES = 10, 4  # of a longer text, that are shown


def listed(entries: Sequence[EnvironmentEntry | BackendEntry], screen: Screen) -> Iterator[str]:
    names = max((width(entry.name) for entry in entries), default=0)
    for entry in entries:
        summary = entry.info.summary if entry.info else entry.error or entry.reference
        excerpt = cut(summary, max(20, screen.width - names - 2), screen)
        text = screen.paint(Style.REJECTED, excerpt) if entry.error else excerpt
        yield f"{screen.paint(Style.STRONG, pad(entry.name, names))}  {text}".rstrip()


def environment_lines(entry: ProfiledEnvironment, screen: Screen) -> Iterator[str]:
    """Yield what an environment says of itself, and what an item of it looks like to the target."""
    screen = replace(screen, width=min(screen.width or _COLUMNS, _COLUMNS))
    yield from _head(entry, screen)
    info, profile = entry.info, entry.profile
    if info is None:
        return
    if profile.fault:
        yield from _block("not all of it can be shown here", [profile.fault], screen)
    yield from _scoring(info, profile.scorers, screen)
    yield from _pairs("needs", [_need(need) for need in profile.needs], screen)
    yield from _block("data", _data(info, profile), screen)
    if info.licence:
        yield from _block("licence", [info.licence], screen)
    if info.public is not None:
        yield from _block("public data", _public(info.name, info.public), screen)
    if info.task_types:
        yield from _block("task types", [", ".join(info.task_types)], screen)
    yield from _pairs("fields of an item", list(info.fields.items()), screen)
    if profile.sample is not None:
        yield from _sample(profile.sample, screen)
    yield from _pairs("options, as env.NAME", [_option(option) for option in info.options], screen)


def _scoring(info: EnvironmentInfo, scorers: Sequence[ScorerChoice], screen: Screen) -> Iterator[str]:
    yield from _block("scorer", [info.scorer], screen)
    named = [scorer for scorer in scorers if scorer.name]
    yield from _pairs("scorers, as env.scorer", [_scorer(scorer) for scorer in named], screen)


def _scorer(scorer: ScorerChoice) -> tuple[str, str]:
    marks = [mark for mark, holds in (("default", scorer.default), ("asks a judge", scorer.judge)) if holds]
    return scorer.name, f"{scorer.summary} ({', '.join(marks)})" if marks else scorer.summary


def _need(need: Requirement) -> tuple[str, str]:
    if need.present is None:
        return need.name, f"{need.purpose}; skillgit doctor CONFIG says whether there is one"
    return need.name, f"{need.purpose} ({'' if need.present else 'not here: '}{need.detail})"


def _data(info: EnvironmentInfo, profile: EnvironmentProfile) -> Iterator[str]:
    yield info.source
    if profile.counts:
        yield f"items that come with it: {', '.join(f'{count} {split}' for split, count in profile.counts.items())}"
    if profile.calls is not None:
        least, most = profile.calls.target
        judged = f", of a judge at most {profile.calls.judge[1]}" if profile.calls.judge[1] else ""
        calls = f"{most}" if least == most else f"{least} to {most}"
        yield f"calls of the target to evaluate the test items: {calls}{judged}"


def _public(name: str, source: PublicSource) -> Iterator[str]:
    """Yield where public data are, the command that brings them, and what else to do."""
    place = source.place.replace("{revision}", source.revision)
    if source.kind is SourceKind.MANUAL:
        yield place + (f" at {source.revision}" if source.revision else "")
        yield source.layout
        return
    yield f"{place} at {source.revision or 'the newest revision'}"
    subsets = f"; other data: --subset {' or '.join(source.subsets)}" if source.subsets else ""
    splits = f"; divided: --ids {' or '.join(source.splits)}" if source.splits else ""
    yield f"skillgit data fetch {name}{subsets}{splits}"
    yield f"or by hand: {source.layout}"


def _sample(sample: ItemSample, screen: Screen) -> Iterator[str]:
    hidden = any(not field.shown for field in sample.fields)
    note = "; the prompt has nothing of those with a *" if hidden else ""
    yield ""
    yield screen.paint(Style.FAINT, f"an item of the {sample.split} split{note}")
    rows = [("id", sample.id), ("task type", sample.task_type)]
    rows += [(f"{field.name}{'' if field.shown else ' *'}", _value(field.value)) for field in sample.fields]
    names = max(width(name) for name, _ in rows)
    for name, text in rows:
        for number, line in enumerate(_folded(text, screen, names + 4)):
            yield f"  {pad(name if number == 0 else '', names)}  {line}".rstrip()
    yield ""
    tools = f"; tools on offer: {', '.join(sample.tools)}" if sample.tools else ""
    yield from (screen.paint(Style.FAINT, line) for line in wrap(f"its prompt, with the seed skill{tools}", _COLUMNS))
    for turn in sample.prompt:
        yield from _turn(turn, screen)


def _turn(turn: Turn, screen: Screen) -> Iterator[str]:
    yield f"  {screen.paint(Style.REF, turn.role)}"
    yield from (f"    {line}".rstrip() for line in _folded(turn.content, screen, 4))
    yield from (f"    {picture.text}" for picture in turn.pictures)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _folded(text: str, screen: Screen, indent: int) -> list[str]:
    """Return the lines of ``text``, broken to fit behind ``indent`` columns, without the middle of a long one."""
    columns = max(20, screen.width - indent)
    lines = [
        fit(part, columns, screen.glyphs.ellipsis)
        for line in inert(text).splitlines() or [""]
        for part in textwrap.wrap(line, columns, replace_whitespace=False) or [""]
    ]
    left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if left_out <= 1:
        return lines
    gap = f"[{screen.glyphs.ellipsis} {plural(left_out, 'more line')}]"
    return [*lines[:_HEAD_LINES], screen.paint(Style.FAINT, gap), *lines[-_TAIL_LINES:]]


def backend_lines(entry: BackendEntry, screen: Screen) -> Iterator[str]:
    yield from _head(entry, screen)
    info = entry.info
    if info is None:
        return
    yield from _block("network", ["needed" if info.needs_network else "not needed"], screen)
    yield from _block("models", [" ".join(info.models) if info.models else "any"], screen)
    prices = [(model, _backend_price(price)) for model, price in info.prices.items()]
    yield from _pairs("US dollars for a million tokens", prices, screen)


def _backend_price(price: Price) -> str:
    cache = (("from the cache", price.usd_cached), ("into the cache", price.usd_cache_write))
    prices = (("in", price.usd_in), ("out", price.usd_out), *cache)
    return ", ".join(f"${usd:g} {label}" for label, usd in prices if usd is not None)


def _head(entry: EnvironmentEntry | BackendEntry, screen: Screen) -> Iterator[str]:
    yield f"{screen.paint(Style.STRONG, entry.name)}  {screen.paint(Style.FAINT, entry.reference)}"
    if entry.info is not None:
        yield from wrap(entry.info.summary, screen.width)
    if entry.error:
        yield from (screen.paint(Style.REJECTED, line) for line in wrap(entry.error, screen.width))


def _block(title: str, texts: Iterable[str], screen: Screen) -> Iterator[str]:
    yield ""
    yield screen.paint(Style.FAINT, title)
    for text in texts:
        yield from wrap(text, screen.width, indent="  ")


def _pairs(title: str, pairs: Sequence[tuple[str, str]], screen: Screen) -> Iterator[str]:
    if not pairs:
        return
    yield ""
    yield screen.paint(Style.FAINT, title)
    names = max(width(name) for name, _ in pairs)
    for name, text in pairs:
        columns = max(20, screen.width - names - 4) if screen.width else 0
        for number, line in enumerate(wrap(text, columns) if text else [""]):
            yield f"  {pad(name if number == 0 else '', names)}  {line}".rstrip()


def _option(option: Option) -> tuple[str, str]:
    default = f"'{option.default}'" if isinstance(option.default, str) else str(option.default).lower()
    return option.name, f"{option.type.__name__}, default {default}: {option.help}"
