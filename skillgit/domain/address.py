"""The addresses of events: ``v7``, ``r17``, ``s4``, ``m2``, ``i1``, ``e2``, ``b7`` and ``end``, alone or as ``run/v7``.

Every event of a run has one address, and no two events of a run share one. People type addresses and read them on every
screen; what is stored or compared goes by commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import assert_never

from skillgit.domain.event_kinds import TRAITS, AddressKind, EventKind

_NUMBERED = "".join(kind for kind in AddressKind if kind is not AddressKind.END)
_INTERVENED = r"r[0-9]+-[a-z-]+-(?P<intervention>[0-9]{1,15})"
"""How the branch of a refused intervention ends; an older way to write ``i1``."""
_ADDRESS = re.compile(
    rf"(?:(?P<run>[a-z0-9][a-z0-9-]*)/)?"
    rf"(?:(?P<kind>[{_NUMBERED}])(?P<number>[0-9]{{1,15}})|(?P<end>{AddressKind.END})|{_INTERVENED})"
)


@dataclass(frozen=True, slots=True)
class Address:
    kind: AddressKind
    number: int = 0  # the version, step, epoch or intervention; 0 for the end of a run
    run: str = ""  # the run; empty where the address does not say it

    def __str__(self) -> str:
        return f"{self.run}/{self.label}" if self.run else self.label

    @property
    def label(self) -> str:
        """The address within its run, such as ``v7``."""
        return str(self.kind) if self.kind is AddressKind.END else f"{self.kind}{self.number}"

    def seen_from(self, run: str) -> str:
        """Return the address as it is written among events of ``run``: ``v7`` within it, ``run/v7`` elsewhere."""
        return self.label if self.run == run else str(self)


def version_label(number: int | None) -> str:
    """Return what people call version ``number``: ``v7``, or ``no version``."""
    return "no version" if number is None else Address(AddressKind.VERSION, number).label


def refused_label(step: int) -> str:
    """Return what people call the candidate that was refused at ``step``: ``r7``."""
    return Address(AddressKind.REJECTED, step).label


def address_of(
    kind: EventKind,
    *,
    run: str = "",
    version: int | None = None,
    step: int = 0,
    epoch: int = 0,
    origin: str = "step",
    number: int = 0,
    at: int = 0,
) -> Address:
    """Return the address of an event; only the facts that the address of its kind counts are looked at.

    ``origin`` is ``step``, ``meta`` or the name of an intervention, ``number`` which intervention of the run it is, and
    ``at`` the version that the run is at with it.

    >>> str(address_of(EventKind.REJECTED, run='demo', step=4))
    'demo/r4'
    """
    counts = TRAITS[kind].address
    if counts in {AddressKind.REJECTED, AddressKind.SKIPPED} and (origin == "meta" or number):
        counts = AddressKind.REFLECTION if origin == "meta" else AddressKind.INTERVENTION
    match counts:
        case AddressKind.VERSION:
            count = version or 0
        case AddressKind.REJECTED | AddressKind.SKIPPED:
            count = step
        case AddressKind.REFLECTION | AddressKind.GUIDANCE:
            count = epoch
        case AddressKind.INTERVENTION:
            count = number
        case AddressKind.BASELINE:
            count = at
        case AddressKind.END:
            count = 0
        case _:
            assert_never(counts)
    return Address(counts, count, run)


def parse(text: str) -> Address | None:
    """Return the address that ``text`` writes; None if it writes none.

    >>> parse('demo/v7')
    Address(kind=<AddressKind.VERSION: 'v'>, number=7, run='demo')
    >>> str(parse('s4')), parse('nonsense')
    ('s4', None)
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return None
    run = match["run"] or ""
    if match["end"]:
        return Address(AddressKind.END, run=run)
    if match["intervention"]:
        return Address(AddressKind.INTERVENTION, int(match["intervention"]), run)
    return Address(AddressKind(match["kind"]), int(match["number"]), run)
