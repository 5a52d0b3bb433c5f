"""Whether a commit bears trailers that no event of its kind has, and whether the addresses in them are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.address import AddressKind, parse
from skillgit.domain.event import Edited, RunStarted, event_name, version_of
from skillgit.domain.untrusted.names import shown
from skillgit.errors import SkillgitError
from skillgit.store import line, reader
from skillgit.store.repo import message_of
from skillgit.store.trailer_table import TRAILERS, bearers
from skillgit.store.trailers import PREFIX, has_trailers, parse_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo


def trailer_problems(repo: Repo, record: Recorded) -> Iterator[str]:
    """Yield which trailers the commit of ``record`` has that no event of its kind has, or that its kind fixes."""
    event = record.event
    if isinstance(event, Edited):
        return
    block = parse_block(message_of(repo.commit(record.commit)))
    for key in dict.fromkeys(trailer.key for trailer in TRAILERS):
        if type(event) not in bearers(key) and block.all(key):
            yield f"the commit has the trailer {PREFIX}{key}, which {event_name(event)} never has"
    if not isinstance(event, RunStarted):
        origin = getattr(event, "of", "")
        if origin and not ((address := parse(origin)) and address.run):
            yield f"it was taken from {shown(origin)}, which is the address of no event"
        return
    for key in ("Version", "Base", "Epoch"):
        if (found := block.one(key)) not in {"", "0"}:
            yield f"a run starts with {PREFIX}{key} 0, and this one with {found}"
    if event.fork_of:
        yield from _fork_problems(repo, record, event.fork_of)


def _fork_problems(repo: Repo, record: Recorded, source: str) -> Iterator[str]:
    """Yield that a fork does not stand on the version that it names."""
    address = parse(source)
    if address is None or not address.run or address.kind is not AddressKind.VERSION:
        yield f"it is a fork of {shown(source)}, which is the address of no version"
        return
    parent = record.parents[0] if record.parents else ""
    if parent and not repo.has_object(parent):
        # a shallow clone
        return
    try:
        found = _version_at(repo, parent) if parent else None
    except SkillgitError:
        if repo.raw.is_shallow:
            return
        found = None
    if found != (address.run, address.number):
        yield f"it is a fork of {source}, and its parent is another commit"


def _version_at(repo: Repo, commit: str) -> tuple[str, int | None]:
    """Return the run and the version at ``commit``; that of a person's edit is counted from the event before it."""
    if has_trailers(message_of(repo.commit(commit))):
        event = reader.read_commit(repo, commit).event
        return event.run, version_of(event)
    place = line.place_of(repo, commit)
    return place.run, place.version
