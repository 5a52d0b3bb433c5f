"""Where a line comes from: through git's blame, restorations and proposals that were taken, to the event behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event_kinds import EventKind
from skillgit.index import rule_queries, version_queries
from skillgit.index.rule_queries import OriginRow
from skillgit.store import tree
from skillgit.store.diff import BlamedLine, Blamer
from skillgit.store.history_reader import read_commit
from skillgit.store.promotion import brought_version


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedLine(BlamedLine):
    """One line of a file with the event that brought it."""

    origin: OriginRow | None  # the event in that commit; absent if it is none of a run
    restored_by: OriginRow | None = None  # the newest event that brought the line back; absent if it always stayed


class Tracer:
    """Finds where lines come from; each file of each commit is blamed once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._origins: dict[str, OriginRow | None] = {}
        self._lines = cache(self._blame)
        self._brought_from, self._restored_from = cache(self._proposed), cache(self._restored)

    @cached_property
    def _blamer(self) -> Blamer:
        return Blamer(self._workspace.repo, version_queries.sources(self._workspace.index))

    def trace(self, commit: str, path: str, first: int = 1, last: int | None = None) -> tuple[TracedLine, ...]:
        """Return where lines come from.

        Git blames a restorer, so they are followed to the version that it restored, and from the commit of a proposal
        or a promotion to the version that it brought.
        """
        return tuple(map(self._followed, self._lines(commit, path)[first - 1 : last]))

    def before(self, commit: str) -> str | None:
        """Return the commit that the text of ``commit`` was made of; None for a first one."""
        parents = self._blamer.sources.get(commit) or self._workspace.repo.commit(commit).parent_ids
        return str(parents[0]) if parents else None

    def _followed(self, line: BlamedLine) -> TracedLine:
        source, restorer = line, None
        for _ in range(50):  # restorations of restorations
            origin = self._origins[source.commit]
            target = (
                self._brought_from(source.commit, source.original_path)
                if origin is None
                else self._restored_from(origin)
            )
            if target is None:
                break
            restorer = restorer or origin
            source = self._lines(target, source.original_path)[source.original_line - 1]
        return TracedLine(
            line=line.line,
            text=line.text,
            commit=source.commit,
            original_line=source.original_line,
            original_path=source.original_path,
            origin=self._origins[source.commit],
            restored_by=restorer,
        )

    def _blame(self, commit: str, path: str) -> tuple[BlamedLine, ...]:
        lines = self._blamer.lines(commit, path)
        new = {line.commit for line in lines} - self._origins.keys()
        self._origins |= dict.fromkeys(new) | rule_queries.origins(self._workspace.index, new)
        return lines

    def _proposed(self, commit: str, path: str) -> str | None:
        """Return the version that ``commit``, which is not an event, proposed: if it has the file as that has it."""
        repo, name = self._workspace.repo, brought_version(self._workspace.repo, commit)
        version = None if name is None else rule_queries.commit_of_version(self._workspace.index, *name)
        sides = [repo.commit(oid) for oid in (commit, version or commit)]
        return version if len({tree.entry_id(side, path) for side in sides}) == 1 else None

    def _restored(self, origin: OriginRow) -> str | None:
        if origin.kind != EventKind.REVERTED:
            return None
        event = read_commit(self._workspace.repo, origin.commit).event
        return rule_queries.commit_of_version(self._workspace.index, origin.run, event.target)
