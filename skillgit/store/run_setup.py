"""The setup of a run: configuration, items and environment of its first event, which travel without other evidence.

A hidden ref names a commit with these files and with the bytes of the tree that they are from. The first event names
that tree by its id, so that whoever reads the files can prove that they are those which the run recorded.
"""

from __future__ import annotations

import re
from hashlib import sha1
from typing import TYPE_CHECKING

import pygit2

from skillgit.store import refs, tree
from skillgit.store.git_activity import until_kept
from skillgit.store.repo import message_of
from skillgit.store.transaction import RefUpdate, update_refs

if TYPE_CHECKING:
    from collections.abc import Collection

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

FILES = ("config.json", "environment.json", "pinned.json", "splits.json")
_TREE = "tree"
"""The file with the bytes of the evidence's tree, as git stores them."""
_EVENT = re.compile(r"^event (?P<oid>[0-9a-f]{40})$", re.MULTILINE)
_EVIDENCE = re.compile(r"^evidence (?P<oid>[0-9a-f]{40})$", re.MULTILINE)
_OID_BYTES = 20


def keep_setup(repo: Repo, first: Recorded) -> str | None:
    """Let the hidden ref of a run lead to the setup in the evidence of its ``first`` event, and return its commit.

    The same evidence makes the same commit everywhere. None is returned where the evidence is not here, or holds none;
    a setup that came from elsewhere stays.
    """
    name = refs.setup_ref(first.event.run)
    tip = repo.tip(name)
    if tip is not None and _evidence_of(repo, tip) == first.evidence:
        return tip
    root = repo.raw.get(first.evidence) if first.evidence else None
    files = {file: tree.read_file(root, file) for file in FILES} if isinstance(root, pygit2.Tree) else {}
    contents = {file: content for file, content in files.items() if content is not None}
    if not isinstance(root, pygit2.Tree) or not contents:
        return tip
    whole = contents | {_TREE: root.read_raw()}
    signature = repo.commit(first.commit).committer
    message = f"setup of {first.event.run}\n\nevent {first.commit}\nevidence {first.evidence}\n"

    def write() -> str:
        return str(repo.raw.create_commit(None, signature, signature, message, tree.write_files(repo, whole).id, []))

    commit = until_kept(repo, write)
    if commit != tip:
        update = RefUpdate(name=name, new=commit, expected=tip)
        reason = f"skillgit: setup of {first.event.run}"
        update_refs(repo, [update], identity=repo.identity(), reason=reason, write=write)
    return commit


def read_setup(repo: Repo, evidence: str, names: Collection[str]) -> dict[str, bytes] | None:
    """Return those of the files ``names`` that a setup has of the tree ``evidence``; None if there is no such setup."""
    for name, tip in repo.tips().items():
        ref = refs.parse(name)
        if ref is None or ref.kind is not refs.RefKind.SETUP:
            continue
        if _evidence_of(repo, tip) != evidence:
            continue
        commit = repo.commit(tip)
        entries = _entries(tree.read_file(commit.tree, _TREE) or b"", evidence)
        contents = {file: tree.read_file(commit.tree, file) for file in names if file in entries}
        return {
            file: content
            for file, content in contents.items()
            if content is not None and _git_id("blob", content) == entries[file]
        }
    return None


def setup_event(repo: Repo, commit: str) -> str:
    """Return the commit of the event that the setup in ``commit`` says to be of; empty if it names none."""
    match = _EVENT.search(message_of(repo.commit(commit)))
    return match["oid"] if match else ""


def _evidence_of(repo: Repo, commit: str) -> str:
    """Return the tree of evidence that a setup is from; empty where it does not say."""
    match = _EVIDENCE.search(message_of(repo.commit(commit)))
    return match["oid"] if match else ""


def _entries(content: bytes, oid: str) -> dict[str, str]:
    """Return name to id of the entries of a tree with the id ``oid``; none if ``content`` is another one's."""
    if _git_id("tree", content) != oid:
        return {}
    entries: dict[str, str] = {}
    while content:
        head, _, rest = content.partition(b"\0")
        entries[head.partition(b" ")[2].decode(errors="replace")] = rest[:_OID_BYTES].hex()
        content = rest[_OID_BYTES:]
    return entries


def _git_id(kind: str, content: bytes) -> str:
    return sha1(b"%s %d\0%s" % (kind.encode(), len(content), content), usedforsecurity=False).hexdigest()
