"""Owns how several faults of data become one error that keeps them all, so that nobody mends them one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence


def raise_all(faults: Sequence[DataError]) -> None:
    """Raise the faults that there are; do nothing if there are none.

    Raises:
        DataError: The only fault as it is, or the first one with the number of the others.
    """
    single = singled(faults)
    if len(single) == 1:
        raise single[0]
    if single:
        first, count = single[0], len(single) - 1
        raise DataError(
            f"{first.message}; and {count} more fault{'s' * (count > 1)}",
            hint=f"{first.hint}; skillgit data check CONFIG lists all faults",
            faults=single,
        )


def singled(faults: Sequence[DataError]) -> tuple[DataError, ...]:
    """Return the single faults that ``faults`` stand for, each once."""
    by_message: dict[str, DataError] = {}
    for fault in faults:
        for single in fault.faults or (fault,):
            by_message.setdefault(single.message, single)
    return tuple(by_message.values())
