"""Which items give another outcome to the same text, or to text after text: what is known of noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.item_history import evidence_trees, flips
from skillgit.domain.untrusted.documents import loads
from skillgit.index import item_queries, queries
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.app.item_history import RunItems
    from skillgit.app.workspace import Workspace
    from skillgit.index.item_queries import MeasuredRow

MANY_FLIPS = 3
"""So many changes between solved and not solved are taken for noise."""
_CONFIG, _REPEATS, _PLACEBO = "config.json", "repeats.json", "placebo.json"
_SELECTION = "selection.json"


def doubts(workspace: Workspace, found: RunItems) -> dict[str, tuple[str, ...]]:
    """Return item to what speaks for a noisy outcome, one phrase each.

    That is: repeated rollouts of one text that differ; a placebo, which changes nothing, that moved the item; a note
    that tells another outcome for a text than its run; and ``MANY_FLIPS`` flips.
    """
    told: dict[str, list[str]] = {}
    for item, phrase in (*_repeated(workspace, found), *_placebos(workspace, found), *_noted(found)):
        if item in found.cells and phrase not in told.setdefault(item, []):
            told[item].append(phrase)
    for item in found.cells:
        count = len(flips(found.of_versions(item)))
        if count >= MANY_FLIPS:
            told.setdefault(item, []).append(f"{count} flips")
    return {item: tuple(phrases) for item, phrases in told.items() if phrases}


def _repeated(workspace: Workspace, found: RunItems) -> Iterator[tuple[str, str]]:
    """Yield the items whose repeated rollouts differ; only a run with repeats has any."""
    if not _asked(workspace, found.run, "gate", "repeats"):
        return
    rows = (*item_queries.versions(workspace.index, found.run), *item_queries.candidates(workspace.index, found.run))
    for row, tree in evidence_trees(workspace, [row for row in rows if row.measured]):
        files = read_evidence(workspace.repo, tree, (_REPEATS, _SELECTION)) or {}
        first = {str(told.get("id")): told for told in _rows(files.get(_SELECTION))}
        for told in _rows(files.get(_REPEATS)):
            item = str(told.get("id"))
            base = _base(found, row, item)
            if _differ([first.get(item), *_list(told.get("candidate"))]) or _differ(
                [*base, *_list(told.get("current"))]
            ):
                yield item, f"repeats differ at {row.label}"


def _base(found: RunItems, row: MeasuredRow, item: str) -> list[object]:
    """Return the outcome that was recorded for the version which ``row`` was compared with."""
    cells = zip(found.columns, found.cells.get(item, ()), strict=False)
    there = [cell for column, cell in cells if column.version == row.base is not None and cell is not None]
    return [{"hard": cell.hard, "soft": cell.soft} for cell in there if cell.solved is not None and not cell.noted]


def _placebos(workspace: Workspace, found: RunItems) -> Iterator[tuple[str, str]]:
    if not _asked(workspace, found.run, "train", "placebo"):
        return
    for row in queries.log_rows(workspace.index, found.run, kinds=frozenset({"run-finished"})):
        for told in _rows(_file(workspace, row.commit, _PLACEBO)):
            for item in (*_list(told.get("fixed")), *_list(told.get("broken"))):
                yield str(item), "a placebo moved it"


def _noted(found: RunItems) -> Iterator[tuple[str, str]]:
    for item, again in found.again.items():
        for place, cell in again:
            there = found.cells[item][place]
            if there is not None and (there.hard, there.soft) != (cell.hard, cell.soft):
                yield item, f"measured again, {found.columns[place].label} differs"


def _asked(workspace: Workspace, run: str, section: str, key: str) -> bool:
    """Say whether the run's configuration asked for something; where it is not known, there is no evidence either."""
    row: MeasuredRow | None = next(iter(item_queries.versions(workspace.index, run)), None)
    config = _parsed(_file(workspace, row.commit, _CONFIG)) if row is not None else None
    inside = config.get(section) if isinstance(config, dict) else None
    return bool(inside.get(key)) if isinstance(inside, dict) else False


def _file(workspace: Workspace, commit: str, path: str) -> bytes | None:
    tree = item_queries.evidence_of_commit(workspace.index, commit)
    return (read_evidence(workspace.repo, tree, (path,)) or {}).get(path)


def _differ(rows: list[object]) -> bool:
    scores = {(row.get("hard"), row.get("soft")) for row in rows if isinstance(row, dict) and "hard" in row}
    return len(scores) > 1


def _rows(content: bytes | None) -> list[dict[str, object]]:
    return [row for row in _list(_parsed(content)) if isinstance(row, dict)]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _parsed(content: bytes | None) -> object:
    try:
        return loads(content or b"null")
    except (ValueError, RecursionError):
        return None
