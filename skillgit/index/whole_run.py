"""All rows of one run, read from git without looking at the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.skill import DOCUMENT
from skillgit.errors import SkillgitError
from skillgit.index import artefacts
from skillgit.index.artefacts import WITH_OUTCOMES
from skillgit.index.event_rows import Beside, Proof, rows_of
from skillgit.store import evidence, history, reader, refs, tree
from skillgit.store import evidence as dropping
from skillgit.store.bulk import bulk_reading

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from skillgit.index.event_rows import Rows
    from skillgit.store.event_commit import Recorded
    from skillgit.store.repo import Repo


def read_whole_run(repo: Repo, run: str, tips: Mapping[str, str], first: int) -> Rows | None:
    """Return the rows of ``run``, whose refs are ``tips``; None if it has no accepted line.

    Its events are numbered from ``first`` on.

    Raises:
        SkillgitError: Its history cannot be read.
    """
    with bulk_reading():
        return _rows(repo, run, tips, first)


def _rows(repo: Repo, run: str, tips: Mapping[str, str], first: int) -> Rows | None:
    if not history.sources(repo, run, tips):
        return None
    records = reader.read_new(repo, run, {}, tips)
    drops = dropping.dropped_trees(repo, run)

    def proof(kind: str, tree: str) -> Proof | None:
        return read_proof(repo, tree, drops) if tree and kind in WITH_OUTCOMES else None

    is_here = refs.evidence_ref(run) in tips
    beside = Beside(seed=lambda record: seed_text(repo, record), proof=proof if is_here else lambda _kind, _tree: None)
    return rows_of(run, records, beside, first)


def read_proof(repo: Repo, tree: str, drops: Collection[str]) -> Proof | None:
    """Return what the evidence ``tree`` holds; None if it is not here, or is among those that were dropped."""
    # What was dropped may still be here until git prunes it; the index must not depend on when that is.
    files = None if tree in drops else evidence.read_evidence(repo, tree, artefacts.NEEDED)
    return None if files is None else Proof(outcomes=artefacts.outcomes(files), plan=artefacts.plan(files))


def seed_text(repo: Repo, record: Recorded) -> str:
    """Return the text that a run starts from, for searching; a run whose seed cannot be read is listed all the same."""
    try:
        root = repo.commit(record.commit).tree
        return (tree.read_file(root, f"{record.event.skill}/{DOCUMENT}") or b"").decode()
    except (SkillgitError, UnicodeDecodeError):
        return ""
