"""Where the lines of a skill come from: the event behind each, followed through reverts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.index import rule_queries
from skillgit.store.blame import BlamedLine, Blamer

if TYPE_CHECKING:
    from skillgit.app.workspace import Workspace
    from skillgit.index.rule_queries import OriginRow

_BACK_AT_MOST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedLine:
    """One line of a file with the event that brought it.

    Attributes:
        line: Its number in the file, from 1.
        text: What it says.
        commit: The commit that brought it.
        original_line: Its number in that commit's file.
        original_path: That file.
        origin: The event in that commit; absent if it is none of a run.
        restored_by: The newest event that brought the line back after it had gone; absent if it always stayed.
    """

    line: int
    text: str
    commit: str
    original_line: int
    original_path: str
    origin: OriginRow | None
    restored_by: OriginRow | None = None


class Tracer:
    """Finds where lines come from; each file of each commit is blamed once.

    Args:
        workspace: The repository and its index.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._blamer = Blamer(workspace.repo)
        self._blamed: dict[tuple[str, str], tuple[BlamedLine, ...]] = {}
        self._origins: dict[str, OriginRow | None] = {}
        self._targets: dict[str, str | None] = {}

    def trace(self, commit: str, path: str, first: int = 1, last: int | None = None) -> tuple[TracedLine, ...]:
        """Return where the lines ``first`` to ``last`` of the file ``path`` of ``commit`` come from.

        Git attributes a line that a revert brought back to the revert. It has a longer story: it is looked for in the
        version whose text the revert took.

        Raises:
            RevisionNotFoundError: There is no such commit.
            NotFoundError: It holds no such file.
        """
        return tuple(map(self._followed, self._lines(commit, path)[first - 1 : last]))

    def _followed(self, line: BlamedLine) -> TracedLine:
        found, restored = line, None
        for _ in range(_BACK_AT_MOST):
            origin = self._origins[found.commit]
            target = None if origin is None else self._reverted_to(origin)
            if target is None:
                break
            restored = restored or origin
            found = self._lines(target, found.original_path)[found.original_line - 1]
        return TracedLine(
            line=line.line,
            text=line.text,
            commit=found.commit,
            original_line=found.original_line,
            original_path=found.original_path,
            origin=self._origins[found.commit],
            restored_by=restored,
        )

    def _lines(self, commit: str, path: str) -> tuple[BlamedLine, ...]:
        key = (commit, path)
        if key not in self._blamed:
            self._blamed[key] = self._blamer.lines(commit, path)
            new = {line.commit for line in self._blamed[key]} - self._origins.keys()
            known = rule_queries.origins(self._workspace.index, new)
            self._origins |= {oid: known.get(oid) for oid in new}
        return self._blamed[key]

    def _reverted_to(self, origin: OriginRow) -> str | None:
        """Return the commit whose text the event ``origin`` brought back; None if it is no revert."""
        if origin.kind != "reverted":
            return None
        if origin.commit not in self._targets:
            from skillgit.domain.event import Reverted  # noqa: PLC0415 - decoding is for reverts only
            from skillgit.store import reader  # noqa: PLC0415 - as above

            event = reader.read_commit(self._workspace.repo, origin.commit).event
            target = event.target if isinstance(event, Reverted) else None
            self._targets[origin.commit] = (
                None if target is None else rule_queries.commit_of_version(self._workspace.index, origin.run, target)
            )
        return self._targets[origin.commit]
