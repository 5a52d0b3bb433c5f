"""What an import brought, and what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.render import words
from skillgit.cli.render.gated import following

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.importing.outputs import Imported
    from skillgit.cli.screen import Screen


def lines(result: Imported, screen: Screen) -> Iterator[str]:
    """Yield what became of an import."""
    dot = f" {screen.glyphs.dot} "
    parts = [
        _done(result),
        words.plural(result.versions, "version"),
        f"{result.rejected} rejected",
        f"{result.skipped} skipped",
    ]
    yield dot.join(parts)
    gained = words.delta(result.best_score - result.first_score)
    yield f"v{result.best} scores {words.score(result.best_score)}, {gained} over the seed"
    if not result.dry_run:
        yield following((f"skillgit log {result.run}", f"skillgit diff {result.run}/v0 {result.run}/best"), screen)


def _done(result: Imported) -> str:
    if result.already:
        return f"already imported as {result.run}"
    more = "" if result.written == result.events else f", of which {result.written} are new"
    told = "would import" if result.dry_run else "imported"
    return f"{told} {words.plural(result.events, 'event')} as {result.run}{more}"
