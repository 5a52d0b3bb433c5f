"""What is installed: environments and backends, as a list and one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render.columns import fit, pad, width, wrap
from skillgit.cli.screen import Style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillgit.app.plugins import BackendEntry, EnvironmentEntry
    from skillgit.cli.screen import Screen
    from skillgit.plugin.backend import Price
    from skillgit.plugin.environment import Option, PublicSource

COLUMNS = ("name", "reference", "error")
"""The columns of ``envs --plain`` and ``backends --plain``."""


def listed(entries: Sequence[EnvironmentEntry | BackendEntry], screen: Screen) -> Iterator[str]:
    """Yield one line for each plug-in."""
    names = max((width(entry.name) for entry in entries), default=0)
    for entry in entries:
        said = entry.info.summary if entry.info else entry.error or entry.reference
        room = max(20, screen.width - names - 2) if screen.width else len(said)
        shown = fit(said, room, screen.glyphs.ellipsis)
        yield f"{screen.paint(Style.STRONG, pad(entry.name, names))}  {_marked(shown, entry.error, screen)}".rstrip()


def _marked(text: str, error: str, screen: Screen) -> str:
    return screen.paint(Style.REJECTED, text) if error else text


def environment(entry: EnvironmentEntry, screen: Screen) -> Iterator[str]:
    """Yield everything about an environment."""
    yield from _head(entry, screen)
    info = entry.info
    if info is None:
        return
    yield from _block("scorer", [info.scorer], screen)
    yield from _block("data", [info.source], screen)
    if info.licence:
        yield from _block("licence", [info.licence], screen)
    if info.public is not None:
        yield from _block("public data", _public(info.public), screen)
    if info.task_types:
        yield from _block("task types", [" ".join(info.task_types)], screen)
    yield from _pairs("fields of an item", [(name, text) for name, text in info.fields.items()], screen)
    yield from _pairs("options, as env.NAME", [_option(option) for option in info.options], screen)


def _public(source: PublicSource) -> Iterator[str]:
    yield f"{source.place} at {source.revision}" if source.revision else source.place
    yield source.layout


def backend(entry: BackendEntry, screen: Screen) -> Iterator[str]:
    """Yield everything about a backend."""
    yield from _head(entry, screen)
    info = entry.info
    if info is None:
        return
    yield from _block("network", ["needed" if info.needs_network else "not needed"], screen)
    yield from _block("models", [" ".join(info.models) if info.models else "any"], screen)
    prices = [(model, _price(price)) for model, price in info.prices.items()]
    yield from _pairs("US dollars for a million tokens", prices, screen)


def _price(price: Price) -> str:
    cache = (("from the cache", price.usd_cached), ("into the cache", price.usd_cache_write))
    told = (("in", price.usd_in), ("out", price.usd_out), *cache)
    return ", ".join(f"${usd:g} {what}" for what, usd in told if usd is not None)


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
