"""The plan of a run: the files of its start that say how it measures, which every push sends.

They are part of the evidence of its first event, which may have stayed with its writer. A commit of their own holds
the listing of the evidence tree too, whose digest the event names, so that the plan is as much the writer's word as the
event.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import pygit2

from skillgit.errors import SkillgitError
from skillgit.store import refs, tree
from skillgit.store.git_activity import until_kept
from skillgit.store.repo import message_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

PLAN = ("config.json", "environment.json", "pinned.json", "splits.json")
"""Settings, environment, and ids and digests of items."""
_EVENT = re.compile(r"^event (?P<oid>[0-9a-f]{40})$", re.MULTILINE)
_EVIDENCE = re.compile(r"^evidence (?P<oid>[0-9a-f]{40})$", re.MULTILINE)
_LISTING = "listing"
"""The file of a plan with the evidence tree as git stores it: modes, names and ids of its files."""
_ENTRY = re.compile(rb"[0-7]+ (?P<name>[^\0]+)\0(?P<id>.{20})", re.DOTALL)


def plan_commit(repo: Repo, start: Recorded) -> str | None:
    """Return the commit with the plan of the run that ``start`` began, which is the same everywhere.

    It is written where the evidence is here, and else is the one that came with the run, if any. No ref moves.
    """
    if not start.evidence:
        return None
    if not repo.has_object(start.evidence):
        return next((oid for oid in _plan_tips(repo, start.evidence) if _listed_files(repo, oid, start.evidence)), None)

    def write() -> str:
        _, listing = repo.raw.read(start.evidence)
        root = repo.raw[start.evidence]
        contents = {name: tree.read_file(root, name) for name in PLAN}  # type: ignore[arg-type]
        files = {name: content for name, content in contents.items() if content is not None} | {_LISTING: listing}
        committer = repo.commit(start.commit).committer
        signature = pygit2.Signature(committer.name, committer.email, committer.time, 0)
        message = f"plan of {refs.short(start.branch)}\n\nevent {start.commit}\nevidence {start.evidence}\n"
        plan = tree.write_files(repo, files)
        return str(repo.raw.create_commit(None, signature, signature, message, plan.id, []))

    return until_kept(repo, write)


def plan_event(repo: Repo, commit: str) -> str:
    """Return the commit of the event that a plan claims to be of; empty if it names none."""
    match = _EVENT.search(message_of(repo.commit(commit)))
    return match["oid"] if match else ""


def planned_files(repo: Repo, tree_id: str, names: Collection[str]) -> dict[str, bytes] | None:
    """Return those files ``names`` of the evidence ``tree_id`` that a plan holds; None if no plan of it is here."""
    for commit in _plan_tips(repo, tree_id):
        files = _listed_files(repo, commit, tree_id)
        if files is not None:
            return {name: content for name, content in files.items() if name in names}
    return None


def _plan_tips(repo: Repo, tree_id: str) -> Iterator[str]:
    """Yield the commits of plans that claim the evidence ``tree_id``, this repository's own first."""
    plans = [
        (ref.remote, oid)
        for name, oid in repo.tips().items()
        if (ref := refs.parse(name)) and ref.kind is refs.RefKind.PLAN
    ]
    for _, oid in sorted(plans):
        with suppress(SkillgitError):
            match = _EVIDENCE.search(message_of(repo.commit(oid)))
            if match is not None and match["oid"] == tree_id:
                yield oid


def _listed_files(repo: Repo, commit: str, tree_id: str) -> dict[str, bytes] | None:
    """Return the files of a plan; None unless they are those of the evidence ``tree_id``, byte for byte."""
    root = repo.commit(commit).tree
    listing = tree.read_file(root, _LISTING) or b""
    if _digest(b"tree", listing) != tree_id:
        return None
    ids = {match["name"].decode(errors="replace"): match["id"].hex() for match in _ENTRY.finditer(listing)}
    contents = {name: tree.read_file(root, name) for name in PLAN if name in ids}
    files = {name: content for name, content in contents.items() if content is not None}
    is_whole = contents.keys() == files.keys()
    return files if is_whole and all(ids[name] == _digest(b"blob", files[name]) for name in files) else None


def _digest(kind: bytes, content: bytes) -> str:
    """Return the id that git gives to an object."""
    return hashlib.sha1(b"%s %d\0%s" % (kind, len(content), content), usedforsecurity=False).hexdigest()
