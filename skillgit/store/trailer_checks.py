"""Whether a commit bears trailers that no event of its kind has, and whether a fork stands where it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import Edited, RunStarted, event_name, version_of
from skillgit.errors import SkillgitError
from skillgit.store import reader
from skillgit.store.repo import message_of
from skillgit.store.trailer_table import TRAILERS, bearers
from skillgit.store.trailers import PREFIX, has_trailers, parse_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.domain.event import Event
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
        return
    for key in ("Version", "Base", "Epoch"):
        if (found := block.one(key)) not in {"", "0"}:
            yield f"a run starts with {PREFIX}{key} 0, and this one with {found}"
    if event.fork_of:
        yield from _fork_problems(repo, record, event.fork_of)


def _fork_problems(repo: Repo, record: Recorded, source: str) -> Iterator[str]:
    """Yield that a fork does not stand on the version that it names."""
    run, _, version = source.rpartition("/v")
    parent = record.parents[0] if record.parents else ""
    if parent and not repo.has_object(parent):
        # a shallow clone
        return
    try:
        found: Event | None = reader.read_commit(repo, parent).event if parent else None
    except SkillgitError:
        if not has_trailers(message_of(repo.commit(parent))):
            # The edit of a person tells its version only where the rest of its run is here.
            return
        found = None
    if found is None or (found.run, str(version_of(found))) != (run, version):
        yield f"it is a fork of {source}, and its parent is another commit"
