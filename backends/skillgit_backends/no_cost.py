"""Owns the price list of backends that cost nothing, whatever model they stand in for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillgit.plugin.backend import Price


class Gratis(Mapping[str, Price]):
    """Has a price of zero for every model, and lists none."""

    def __getitem__(self, model: str) -> Price:
        return Price(usd_in=0.0, usd_out=0.0)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
