"""Bringing a version to the trunk: one merge commit, and the work trees that have it checked out follow it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from shlex import quote

import pygit2
from pygit2.enums import FileMode, ObjectType

from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import ConflictError, RevisionNotFoundError, SkillError
from skillgit.store import refs
from skillgit.store.git_binary import GitResult, git, keep, until_kept
from skillgit.store.history_reader import changes_skill
from skillgit.store.repo import Repo, first_parents, message_of
from skillgit.store.transaction import RefUpdate, update_refs, write_refs
from skillgit.store.tree import check_way, edited, entry_id, outward_links, read_file, read_skill, with_skill
from skillgit.store.trunk import trunk, trunk_revision

TRAILER = "Promoted"
"""``Skillgit-Promoted: <run>/v<N>``: a promotion is not an event of a run, and this is its one trailer."""

PROPOSED = "Proposed"
"""``Skillgit-Proposed: <run>/v<N>``: likewise, for the commit of a proposal."""

RETIRED = "Retired"
"""``Skillgit-Retired: <folder>``: likewise, for the commit of a proposal to do without a skill."""

_NAMED = re.compile(rf"^Skillgit-{PROPOSED}: (?P<run>\S+)/(?P<version>\S+)$", re.MULTILINE)
_PROMOTED = re.compile(rf"^Skillgit-{TRAILER}: (?P<name>\S+)$", re.MULTILINE)
_BROUGHT = re.compile(
    rf"^Skillgit-(?:{PROPOSED}|{TRAILER}): (?P<run>[a-z0-9][a-z0-9-]*)/v(?P<version>\d{{1,9}})$", re.MULTILINE
)
_RETIRED = re.compile(rf"^Skillgit-{RETIRED}: (?P<path>\S+)$", re.MULTILINE)
_IN_THE_WAY = re.compile(r"^error: (?!unable )[^']*'(?P<path>[^']+)'", re.MULTILINE)
_LOOKED_BACK = 10_000
"""Commits of the trunk that are looked through for the last change of a skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    commit: str
    subject: str
    version: str  # the version that it promoted, as `<run>/v<N>`; empty for a change by hand


def existing_trunk(repo: Repo) -> tuple[str, str]:
    """Return the trunk and its commit; a RevisionNotFoundError if it has none here."""
    name = trunk(repo)
    tip, short = repo.tip(name), refs.short(name)
    if tip is None:
        revision = trunk_revision(repo)
        hint = "skillgit init" if revision == short else f"git branch {quote(short)} {quote(revision)}"
        raise RevisionNotFoundError(f"the repository has no branch {short}", hint=hint)
    return name, tip


def last_change(repo: Repo, path: str, within: int = _LOOKED_BACK) -> LastChange | None:
    """Return the newest commit on the trunk that changed the folder ``path``; None if none of the newest ones did."""
    return next(changes_on_trunk(repo, path, within), None)


def changes_on_trunk(repo: Repo, path: str, within: int = _LOOKED_BACK) -> Iterator[LastChange]:
    """Yield the commits among the newest of the trunk that changed the folder ``path``, newest first."""
    tip = repo.tip(trunk(repo))
    for commit in islice(first_parents(repo, tip), within):
        if changes_skill(commit, path) or (not commit.parent_ids and entry_id(commit, path) is not None):
            match = _PROMOTED.search(message_of(commit))
            subject = message_of(commit).partition("\n")[0]
            yield LastChange(commit=str(commit.id), subject=subject, version=match["name"] if match else "")


def releases(repo: Repo, skill: str) -> dict[str, str]:
    """Return the commits that ``skill`` was released as, with the tags, such as ``skill/v1.2.0``."""
    names = (name for name in repo.raw.references if refs.is_release(name) and name.split("/")[2] == skill)
    return {str(repo.raw.references[name].peel(pygit2.Commit).id): refs.short(name) for name in names}


def holds(repo: Repo, path: str, version: str, document: bytes | None = None, *, at: str = "") -> bool:
    """Say whether ``at``, or the trunk, has the folder ``path`` of ``version``, with ``document`` as SKILL.md."""
    tip = repo.tip(at or trunk(repo))
    if tip is None:
        return False
    folder = entry_id(repo.commit(version), path)
    if folder is not None and document is not None:
        folder = _with_document(repo, folder, document)
    there = repo.raw[tip].peel(pygit2.Commit)
    return entry_id(there, path) == folder


def document_of(repo: Repo, commit: str, path: str) -> bytes:
    document = read_file(repo, repo.commit(commit).tree, f"{path}/{DOCUMENT}")
    if document is None:
        raise RevisionNotFoundError(f"{commit[:12]} has no '{path}/{DOCUMENT}'", hint=f"git ls-tree -r {commit[:12]}")
    return document


def _with_document(repo: Repo, folder: pygit2.Oid, document: bytes) -> pygit2.Oid:
    root = repo.raw[folder]
    if not isinstance(root, pygit2.Tree):
        raise TypeError(f"{folder} is not a tree")
    builder = repo.raw.TreeBuilder(root)
    builder.insert(DOCUMENT, repo.write_blob(document), root[DOCUMENT].filemode)
    return builder.write()


def is_ref_name(name: str) -> bool:
    """Say whether git takes ``name``, which begins with ``refs/``, as that of a ref."""
    return bool(pygit2.reference_is_valid_name(name))


def proposed_run(repo: Repo, commit: str) -> str:
    """Return the run whose version the commit ``commit`` proposes; empty if it proposes none."""
    match = _NAMED.search(message_of(repo.commit(commit)))
    return match["run"] if match else ""


def brought_version(repo: Repo, commit: str) -> tuple[str, int] | None:
    """Return run and number of the version that a commit says it proposes or promotes; anybody can write that."""
    match = _BROUGHT.search(message_of(repo.commit(commit)))
    return (match["run"], int(match["version"])) if match else None


def retired_skill(repo: Repo, commit: str) -> str:
    """Return the folder of the skill that the commit ``commit`` proposes to do without; empty if it proposes none."""
    match = _RETIRED.search(message_of(repo.commit(commit)))
    return match["path"] if match else ""


def write_proposal(repo: Repo, base: str, path: str, text: str | Skill | None, message: str, *, time: datetime) -> str:
    """Write a commit on ``base`` that changes the folder ``path`` alone, and return its id; no ref leads to it yet.

    ``text`` is what the folder holds: a skill, or the commit that has it; None removes the folder.
    """

    def write() -> str:
        if text is None:
            tree = edited(repo, repo.commit(base).tree, {path: None})
        elif isinstance(text, str):
            tree = _merged(repo, base, path, text, None)
        else:
            tree = with_skill(repo, repo.commit(base).tree, path, text)
        return repo.write_commit(repo.signature(time), message, tree.id, [base])

    return until_kept(repo, write)


def move_proposal(repo: Repo, branch: str, old: str | None, new: str, *, reason: str) -> None:
    """Let the ref ``branch`` lead to ``new`` in place of ``old``; a ConflictError if a work tree has it checked out."""
    repo.check_movable(branch)
    update_refs(repo, [RefUpdate(name=branch, new=new, old=old)], reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    tag: str
    message: str
    document: bytes
    is_tagged: bool = (
        False  # whether the tag is there already, as after the release of a text that the trunk left since
    )


def promote(
    repo: Repo, path: str, version: str, message: str, *, time: datetime, reason: str, release: Release | None = None
) -> str:
    """Merge the folder ``path`` of the commit ``version`` into the trunk; return the merge commit.

    The tree is that of the trunk with this one folder replaced. Work trees that have it checked out take it in as
    with ``git merge``: nothing uncommitted is overwritten. The tag of a ``release`` appears with the commit or never.
    """
    name, tip = existing_trunk(repo)
    signature = repo.signature(time)

    def write() -> tuple[str, list[RefUpdate]]:
        new = _merged(repo, tip, path, version, release)
        commit = repo.write_commit(signature, message, new.id, [tip, version])
        if release is None or release.is_tagged:
            return commit, []
        return commit, [RefUpdate(name=release.tag, new=_tag(repo, release, commit, signature))]

    commit, tags = until_kept(repo, write)
    move_trunk(repo, name, tip, commit, reason=reason, beside=tags, write=write)
    return commit


def move_trunk(
    repo: Repo,
    name: str,
    old: str,
    new: str,
    *,
    reason: str,
    beside: Sequence[RefUpdate] = (),
    write: Callable[[], object] | None = None,
) -> None:
    """Move the branch ``name``, with the refs ``beside``, all or none, and its work trees; ``write`` makes objects."""
    trees = [*map(Repo.discover, repo.work_trees(name))]
    for tree in trees:
        _check(tree, name, _follow(tree, old, new, write, "--dry-run"))
    update_refs(repo, [RefUpdate(name=name, new=new, old=old), *beside], reason=reason)
    if write is not None:
        keep(repo, write)
    for tree in trees:
        _check(tree, name, _follow(tree, old, new, write), has_moved=True)


def _tag(repo: Repo, release: Release, commit: str, signature: pygit2.Signature) -> str:
    """Write the annotated tag of a release and return its id; libgit2 writes tags together with their refs only."""
    tagger = f"{signature.name} <{signature.email}> {signature.time} +0000"
    name = release.tag.removeprefix("refs/tags/")
    text = f"object {commit}\ntype commit\ntag {name}\ntagger {tagger}\n\n{release.message}"
    return str(repo.raw.odb.write(ObjectType.TAG, text.encode()))


def tag_release(repo: Repo, release: Release, *, time: datetime, reason: str) -> None:
    name, tip = existing_trunk(repo)
    signature = repo.signature(time)

    def write() -> list[RefUpdate]:
        tag = RefUpdate(name=release.tag, new=_tag(repo, release, tip, signature))
        return [RefUpdate(name=name, new=tip, old=tip), tag]

    write_refs(repo, write, reason=reason)


def check_work_trees(repo: Repo, path: str, version: str, release: Release | None = None) -> None:
    """Refuse a promotion that a work tree could not follow."""
    name, tip = existing_trunk(repo)
    write = partial(_merged, repo, tip, path, version, release)
    new = until_kept(repo, write)
    for tree in map(Repo.discover, repo.work_trees(name)):
        _check(tree, name, _follow(tree, tip, str(new.id), write, "--dry-run"))


def _merged(repo: Repo, tip: str, path: str, version: str, release: Release | None) -> pygit2.Tree:
    """Return the tree of ``tip`` with the folder ``path`` of ``version``, as it is released."""
    old = repo.commit(tip).tree
    check_way(old, path)
    folder = entry_id(repo.commit(version), path)
    if folder is None:
        raise RevisionNotFoundError(f"{version[:12]} has no '{path}'", hint=f"git ls-tree -r {version[:12]}")
    for name, target in outward_links(repo, version, path):
        sentence = f"{path}/{shown(name)} of the version is a link out of the skill, to {shown(target)}"
        raise SkillError(sentence, hint="installers would copy what it leads to: put a plain file in its place")
    read_skill(repo, repo.commit(version).tree, path)  # what is on the trunk is checked out by everybody, on any system
    if release is not None:
        folder = _with_document(repo, folder, release.document)
    return edited(repo, old, {path: (folder, FileMode.TREE)})


def _follow(tree: Repo, old: str, new: str, write: Callable[[], object] | None, *options: str) -> GitResult:
    """Move a work tree from ``old`` to ``new``; ``write`` writes again what git may prune of it meanwhile."""
    git(tree, "update-index", "-q", "--refresh")
    answer = git(tree, "read-tree", "-m", "-u", *options, old, new)
    if answer.code == 0 or write is None or _IN_THE_WAY.search(answer.error):
        return answer
    until_kept(tree, write)
    return git(tree, "read-tree", "-m", "-u", *options, old, new)


def _check(tree: Repo, branch: str, answer: GitResult, *, has_moved: bool = False) -> None:
    if answer.code == 0:
        return
    name = refs.short(branch)
    reset = f"git reset --keep {quote(name)}"
    match = _IN_THE_WAY.search(answer.error)
    problem = f"'{match['path']}' differs" if match else answer.error.partition("\n")[0] or "git read-tree failed"
    if has_moved:
        raise ConflictError(
            f"{name} has the version now, but the work tree {tree.workdir} cannot take it in: {problem}",
            hint=f"git stash, then {reset}" if match else f"remove the cause, then {reset}",
        )
    if match is None:
        raise ConflictError(
            f"the work tree {tree.workdir} has {name} checked out and cannot take it in: {problem}",
            hint="nothing was written; git status",
        )
    raise ConflictError(
        f"the work tree {tree.workdir} has {name} checked out, and changes in it would be lost: {problem}",
        hint="nothing was written; commit the changes or put them away: git stash",
    )
