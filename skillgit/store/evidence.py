"""Evidence: the bulk artefacts behind an event, as a git tree kept alive by a hidden ref.

``refs/skillgit/evidence/<run>`` is a chain with one commit per event. Such a commit's tree is the evidence tree that
the event's ``Skillgit-Evidence`` names, and its message names the event's commit. Without that ref, for example in a
fresh clone, the evidence is *absent*, which is no error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygit2

from skillgit.store import refs, tree
from skillgit.store.repo import message_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_EVENT_COMMIT = re.compile(r"^event (?P<oid>[0-9a-f]{40})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTip:
    """The end of a run's evidence chain.

    Attributes:
        stored: What the ref points to now; absent without evidence.
        last: The last commit whose event is in the history; the next one follows it.
        event: The commit of the event that ``last`` belongs to.
    """

    stored: str | None
    last: str | None
    event: str | None


def write_evidence(repo: Repo, files: Mapping[str, bytes]) -> str:
    """Write ``files`` and return the id of their tree; an empty string if there are none."""
    return str(tree.write_files(repo, files).id) if files else ""


def read_evidence(repo: Repo, tree_id: str, names: Collection[str] = ()) -> dict[str, bytes] | None:
    """Return path and content of the evidence in the tree ``tree_id``; ``None`` if it is not here.

    Args:
        repo: The repository.
        tree_id: The evidence tree.
        names: The files to read, if they are there; none for all.
    """
    if not tree_id:
        return None
    found = repo.raw.get(tree_id)
    if not isinstance(found, pygit2.Tree):
        return None
    if not names:
        return tree.read_files(found)
    contents = {name: tree.read_file(found, name) for name in names}
    return {name: content for name, content in contents.items() if content is not None}


def evidence_names(repo: Repo, tree_id: str) -> frozenset[str] | None:
    """Return the names of the files and folders in the tree ``tree_id``; ``None`` if it is not here."""
    found = repo.raw.get(tree_id)
    return frozenset(str(entry.name) for entry in found) if isinstance(found, pygit2.Tree) else None


def evidence_tip(repo: Repo, run: str, events: frozenset[str]) -> EvidenceTip:
    """Return the end of the chain of ``run``, whose events are the commits ``events``.

    A process that was killed while refs moved may have recorded evidence of an event that never became visible; such
    commits are stepped over.
    """
    stored = repo.tip(refs.evidence_ref(run))
    oid = stored
    while oid is not None:
        commit = repo.commit(oid)
        match = _EVENT_COMMIT.search(message_of(commit))
        if match and match["oid"] in events:
            return EvidenceTip(stored=stored, last=oid, event=match["oid"])
        oid = str(commit.parent_ids[0]) if commit.parent_ids else None
    return EvidenceTip(stored=stored, last=None, event=None)


def evidence_commit(repo: Repo, recorded: Recorded, signature: pygit2.Signature, parent: str | None) -> str:
    """Write the commit that keeps the evidence of ``recorded`` alive and return its id."""
    subject = f"evidence of {refs.short(recorded.branch)}"
    oid = repo.raw.create_commit(
        None,
        signature,
        signature,
        f"{subject}\n\nevent {recorded.commit}\n",
        pygit2.Oid(hex=recorded.evidence),
        [] if parent is None else [parent],
    )
    return str(oid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A commit of an evidence chain.

    Attributes:
        commit: Its id.
        tree: The evidence.
        event: The commit of the event that the evidence belongs to; empty if it names none.
    """

    commit: str
    tree: str
    event: str


def read_chain(repo: Repo, run: str) -> list[Link]:
    """Return the evidence that the hidden ref of ``run`` keeps alive, newest first.

    Raises:
        RevisionNotFoundError: A commit of the chain is missing.
    """
    return _links(repo, repo.tip(refs.evidence_ref(run)))


def joined_chain(repo: Repo, mine: str, theirs: str) -> str:
    """Return the end of the chain that goes on from ``theirs`` with what only the chain that ends at ``mine`` keeps.

    Both sides can go forward to it: it leads to ``theirs``, and it keeps every tree of ``mine``. The same two chains
    make the same one everywhere. No ref moves.

    Raises:
        RevisionNotFoundError: A commit of a chain is missing.
    """
    kept = {(link.event, link.tree) for link in _links(repo, theirs)}
    end = theirs
    for link in reversed(_links(repo, mine)):
        if (link.event, link.tree) not in kept:
            commit = repo.commit(link.commit)
            parents = [pygit2.Oid(hex=end)]
            message = message_of(commit)
            end = str(repo.raw.create_commit(None, commit.author, commit.committer, message, commit.tree_id, parents))
    return end


def _links(repo: Repo, end: str | None) -> list[Link]:
    """Return the chain that ends at ``end``, newest first."""
    found: list[Link] = []
    oid = end
    while oid is not None:
        commit = repo.commit(oid)
        match = _EVENT_COMMIT.search(message_of(commit))
        found.append(Link(commit=oid, tree=str(commit.tree_id), event=match["oid"] if match else ""))
        oid = str(commit.parent_ids[0]) if commit.parent_ids else None
    return found


def kept_trees(repo: Repo, run: str) -> frozenset[str]:
    """Return the evidence trees that the hidden ref of ``run`` keeps alive."""
    return frozenset(link.tree for link in read_chain(repo, run))
