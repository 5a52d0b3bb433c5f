"""Numbers, times and names as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillgit.domain import ages
from skillgit.domain import cost as quantities
from skillgit.domain.cost import Cost
from skillgit.view.surface import Screen

if TYPE_CHECKING:
    from skillgit.domain.score import Score
    from skillgit.domain.served_model import ServedModel

count, duration, money, price = quantities.count, quantities.duration, quantities.money, quantities.price
age, ago = ages.age, ages.ago

OID_LENGTH = 7


def score(value: float | None) -> str:
    """Return a score with four digits after the point: ``.7250``, ``1.0000``; nothing for none."""
    return "" if value is None else f"{value:.4f}".removeprefix("0")


def solved(count: int | None, n: int) -> str:
    """Return how many of ``n`` items are solved, to follow their score: `` 36/40``; nothing where credit is partial."""
    return "" if count is None else f" {count}/{n}"


def counted(mean: float | None, n: int, count: int | None) -> str:
    """Return the mean score of ``n`` items and how many are solved: ``.9000 36/40``; nothing for none."""
    return f"{score(mean)}{solved(count, n)}"


def known(value: Score | None, screen: Screen) -> str:
    """Return a score as far as it is known: ``.7250``, ``≤.6000``; nothing for none."""
    if value is None:
        return ""
    return f"{screen.glyphs.at_most if value.at_most else ''}{score(value.value)}"


def delta(value: float | None) -> str:
    """Return a difference of scores with its sign: ``+.0250``; nothing for none."""
    if value is None:
        return ""
    return f"{'-' if value < 0 else '+'}{score(abs(value))}"


def spread(interval: tuple[float, float] | None, too_few: str) -> str:
    """Return how far a gain is known: ``95 % -.0125 to +.0750``, or that there are too few items to say."""
    return too_few if interval is None else f"95 % {delta(interval[0])} to {delta(interval[1])}"


def rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def short(oid: str) -> str:
    return oid[:OID_LENGTH]


def chance(p: float) -> str:
    """Return a p-value: ``p 0.5000``, ``p < 0.0001``."""
    return f"p {p:.4f}" if p >= 0.0001 else "p < 0.0001"  # noqa: PLR2004 - what four digits can show


def plural(number: int, noun: str, many: str = "") -> str:
    """Return a number with its noun: ``1 run``, ``2 runs``."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def not_measured(n: int, rest: int, fixes: int, breaks: int) -> str:
    """Return how many of ``n`` items a settled decision left unmeasured, and what that leaves open."""
    none = " and ".join(word for word, number in (("fixed", fixes), ("broken", breaks)) if not number)
    among = f"; none {none} among the {n - rest:,} measured" if none else ""
    return f"{rest:,} of {n:,} not measured (the decision was settled){among}"


def cost(total: Cost, screen: Screen) -> str:
    parts = [
        plural(total.calls, "call"),
        f"{count(total.tokens_in)} in{_cache_shares(total)}",
        f"{count(total.tokens_out)} out",
        total.price if total.usd or total.unpriced else "",
        duration(total.seconds) if total.seconds else "",
        total.reuse,
    ]
    return screen.dotted(parts)


def _cache_shares(total: quantities.Cost) -> str:
    """Return which share of the prompts came from a cache, of all and of the target's, if any did."""
    if not total.cached or not total.tokens_in:
        return ""
    target = total.of_role("target")
    part = (
        f", {target.cached / target.tokens_in:.0%} of the target's"
        if target.tokens_in not in {0, total.tokens_in}
        else ""
    )
    return f" ({total.cached / total.tokens_in:.0%} cached{part})"


def ids(items: tuple[str, ...], screen: Screen, limit: int = 8) -> str:
    """Return item ids, the first few of them if a person looks."""
    if screen.terminal and len(items) > limit:
        return f"{' '.join(items[:limit])} {screen.glyphs.ellipsis}"
    return " ".join(items)


def served(model: ServedModel) -> str:
    """Return who answers a role at which server, what that says about it, and which variable named it."""
    source = f", named by {model.variable}" if model.variable else ""
    return f"{model.role}: {model.description}{source}"
