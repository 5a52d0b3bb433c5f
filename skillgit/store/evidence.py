"""Evidence: the bulk artefacts behind an event, a git tree that a hidden ref keeps alive, or that was dropped.

The plan of a run, the files of its start that say how it measures, is part of the evidence of its first event, which
may stay with its writer. Every push sends it in a commit of its own, with the listing of the evidence tree, whose
digest the event names, so that the plan is as much the writer's word as the event.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import pygit2

from skillgit.domain.event import Inherited
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.finding import Finding
from skillgit.domain.ids import git_object_id
from skillgit.domain.run_state import fold
from skillgit.errors import InvariantError, SkillgitError
from skillgit.store import history, refs, tree
from skillgit.store.commit_message import Recorded
from skillgit.store.git_binary import until_kept
from skillgit.store.repo import Repo, first_parents, message_of
from skillgit.store.seals import evidence_elsewhere, is_own
from skillgit.store.transaction import RefUpdate, write_refs

PLAN = ("config.json", "environment.json", "pinned.json", "splits.json")
"""Settings, environment, and ids and digests of items."""
_EVENT = re.compile(r"^event (?P<oid>[0-9a-f]{40})$", re.MULTILINE)
_EVIDENCE = re.compile(r"^evidence (?P<oid>[0-9a-f]{40})$", re.MULTILINE)
_LISTING = "listing"
"""The file of a plan with the evidence tree as git stores it: modes, names and ids of its files."""
_ENTRY = re.compile(rb"[0-7]+ (?P<name>[^\0]+)\0(?P<id>.{20})", re.DOTALL)


def plan_commit(repo: Repo, start: Recorded) -> str | None:
    """Return the commit with the plan of the run from ``start``, written if its evidence is here; no ref moves."""
    if not start.evidence:
        return None
    if not repo.has_object(start.evidence):
        return next((oid for oid in _plan_tips(repo, start.evidence) if _listed_files(repo, oid, start.evidence)), None)

    def write() -> str:
        _, listing = repo.raw.read(start.evidence)
        root = repo.raw[start.evidence]
        contents = {name: tree.read_file(repo, root, name) for name in PLAN}  # type: ignore[arg-type]
        files = {name: content for name, content in contents.items() if content is not None} | {_LISTING: listing}
        committer = repo.commit(start.commit).committer
        signature = pygit2.Signature(committer.name, committer.email, committer.time, 0)
        message = f"plan of {refs.short(start.branch)}\n\nevent {start.commit}\nevidence {start.evidence}\n"
        plan = tree.write_files(repo, files)
        return repo.write_commit(signature, message, plan.id, [])

    return until_kept(repo, write)


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
    listing = tree.read_file(repo, root, _LISTING) or b""
    if git_object_id("tree", listing) != tree_id:
        return None
    ids = {match["name"].decode(errors="replace"): match["id"].hex() for match in _ENTRY.finditer(listing)}
    contents = {name: tree.read_file(repo, root, name) for name in PLAN if name in ids}
    files = {name: content for name, content in contents.items() if content is not None}
    is_whole = contents.keys() == files.keys()
    return files if is_whole and all(ids[name] == git_object_id("blob", files[name]) for name in files) else None


def write_evidence(repo: Repo, files: Mapping[str, bytes]) -> str:
    """Write ``files`` and return the id of their tree; empty without files."""
    return str(tree.write_files(repo, files).id) if files else ""


def read_evidence(repo: Repo, tree_id: str, names: Collection[str] = ()) -> dict[str, bytes] | None:
    """Return path and content of the evidence ``tree_id``, or its files ``names``; ``None`` if it is not here."""
    if not tree_id:
        return None
    root = repo.raw.get(tree_id)
    if not isinstance(root, pygit2.Tree):
        return planned_files(repo, tree_id, names) if names and set(names) <= set(PLAN) else None
    if not names:
        return tree.read_files(repo, root)
    contents = {name: tree.read_file(repo, root, name) for name in names}
    return {name: content for name, content in contents.items() if content is not None}


def evidence_names(repo: Repo, tree_id: str) -> frozenset[str] | None:
    root = repo.raw.get(tree_id)
    return frozenset(str(entry.name) for entry in root) if isinstance(root, pygit2.Tree) else None


def last_link(repo: Repo, run: str, events: frozenset[str]) -> EvidenceLink | None:
    """Return the end of the chain of ``run`` without evidence of events that never became visible after a kill."""
    return next((link for link in _links(repo, repo.tip(refs.evidence_ref(run))) if link.event in events), None)


def evidence_commit(repo: Repo, record: Recorded, signature: pygit2.Signature, parent: str | None) -> str:
    """Write the commit that keeps the evidence of ``record`` alive and return its id."""
    message = f"evidence of {refs.short(record.branch)}\n\nevent {record.commit}\n"
    return repo.write_commit(signature, message, pygit2.Oid(hex=record.evidence), [parent])


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLink:
    commit: str
    tree: str
    event: str  # the commit of the event that the evidence belongs to; empty if it names none


def read_chain(repo: Repo, run: str) -> list[EvidenceLink]:
    """Return the evidence that the hidden ref of ``run`` keeps alive, newest first."""
    return list(_links(repo, repo.tip(refs.evidence_ref(run))))


def joined_chain(repo: Repo, mine: str, theirs: str) -> str:
    """Return the end of a chain of ``theirs`` and what only ``mine`` keeps, equal everywhere; no ref moves."""
    keys = {(link.event, link.tree) for link in _links(repo, theirs)}
    end = theirs
    for link in reversed(list(_links(repo, mine))):
        if (link.event, link.tree) not in keys:
            commit = repo.commit(link.commit)
            parents = [pygit2.Oid(hex=end)]
            message = message_of(commit)
            end = str(repo.raw.create_commit(None, commit.author, commit.committer, message, commit.tree_id, parents))
    return end


def _links(repo: Repo, end: str | None) -> Iterator[EvidenceLink]:
    for commit in first_parents(repo, end):
        yield EvidenceLink(commit=str(commit.id), tree=str(commit.tree_id), event=event_of(commit))


def event_of(commit: pygit2.Commit) -> str:
    """Return the commit of the event that a plan, or a link of a chain, claims to be of; empty if it names none."""
    match = _EVENT.search(message_of(commit))
    return match["oid"] if match else ""


def kept_trees(repo: Repo, run: str) -> frozenset[str]:
    return frozenset(link.tree for link in read_chain(repo, run))


def lost_evidence(repo: Repo, run: str, records: Sequence[Recorded]) -> list[Recorded]:
    """Return the events whose evidence should be here and is not: it was not dropped, and it did not stay elsewhere.

    A clone may have none, or only what it wrote since.
    """
    if not records:
        return []
    if not is_own(repo, start=records[0].commit) and records[0].evidence not in kept_trees(repo, run):
        return []
    droppable_trees = {*dropped_trees(repo, run)}
    elsewhere = evidence_elsewhere(repo, run)
    return [
        record
        for record in records
        if record.evidence
        and record.evidence not in droppable_trees
        and record.commit not in elsewhere
        and not repo.has_object(record.evidence)
    ]


_LIST = "trees"
_LINE = re.compile(r"[0-9a-f]{40} [0-9a-f]{40}")
_SHOWN = 60


def dropped_trees(repo: Repo, run: str) -> frozenset[str]:
    """Return the evidence trees of ``run`` that were dropped on purpose; none where the list cannot be read."""
    text = _listed(repo, run) or ""
    return frozenset(line.partition(" ")[0] for line in text.splitlines())


def _listed(repo: Repo, run: str) -> str | None:
    """Return the list of what was dropped; empty without a ref, None if the ref leads to no list."""
    try:
        tip = repo.tip(refs.dropped_ref(run))
        content = b"" if tip is None else tree.read_file(repo, repo.commit(tip).tree, _LIST)
    except (SkillgitError, KeyError, ValueError, pygit2.GitError):
        return None
    return None if content is None else content.decode(errors="replace")


def dropping_problems(repo: Repo, run: str, records: Sequence[Recorded], chain: Collection[str]) -> Iterator[Finding]:
    """Yield where the list of dropped evidence is none, or names what is never dropped; ``chain`` has kept trees."""
    text, name = _listed(repo, run), refs.short(refs.dropped_ref(run))
    if text is None:
        sentence = f"{name} leads to no commit with the file '{_LIST}', which says what evidence was dropped"
        yield Finding(sentence=sentence)
        return
    lines = text.splitlines()
    for line in lines:
        if _LINE.fullmatch(line) is None:
            yield Finding(sentence=f"{name} has a line that names no evidence: '{line[:_SHOWN]}'")
    if not lines:
        return
    try:
        staying = spared(records, inheritance=False)
    except InvariantError:
        # the events contradict each other, which is reported where they are folded
        return
    trees = {line.partition(" ")[0] for line in lines}
    for record in records:
        if not record.evidence or record.commit not in staying:
            continue
        if f"{record.evidence} {record.commit}" in lines or (record.evidence in trees and record.evidence not in chain):
            sentence = (
                f"{name} names its evidence, and that of the first, the best and the last version is never dropped"
            )
            yield Finding(commit=record.commit, sentence=sentence)


def spared(records: Sequence[Recorded], *, inheritance: bool = True) -> frozenset[str]:
    """Return the commits of the plan and of first, best and last version; with ``inheritance``, of their scores too."""
    state = fold(record.event for record in records)
    versions, commits = {0, state.best, state.version}, history.versions(records)
    for version in tuple(versions) if inheritance else ():
        evaluation = state.versions[version].evaluation
        while isinstance(evaluation, Inherited):
            versions.add(evaluation.version)
            evaluation = state.versions[evaluation.version].evaluation
    staying = {record.commit for record in records if record.event.version in versions}
    merges = [record for record in records if record.commit in staying and record.event.kind is EventKind.SLOW_MERGED]
    return frozenset({*staying, *(parent for merge in merges for parent in merge.parents), commits[0]})


def droppable(
    repo: Repo, run: str, records: Sequence[Recorded], *, before: datetime, exempt: Collection[str]
) -> tuple[list[Recorded], int]:
    """Return the events of ``run`` whose evidence is older than ``before``, and the bytes that this frees.

    These are the bytes, before compression, of files that nothing else in the evidence of this run holds.
    """
    trees = kept_trees(repo, run)
    candidates = [record for record in records if record.evidence in trees]
    old = [record for record in candidates if record.time < before and record.commit not in exempt]
    old_trees = {record.evidence for record in old}
    staying = _blobs(repo, {record.evidence for record in candidates} - old_trees)
    return old, sum(tree.size_of(repo, oid) for oid in _blobs(repo, old_trees) - staying)


def drop(
    repo: Repo, run: str, records: Sequence[Recorded], old: Sequence[Recorded], clock: Callable[[], datetime]
) -> None:
    """Rewrite the evidence chain of ``run`` without that of ``old`` events, and record that. Hold the run's lock."""
    tips, trees, signature = repo.tips(), kept_trees(repo, run), repo.signature(clock())
    commits = {record.commit for record in old}
    staying = [record for record in records if record.commit not in commits and record.evidence in trees]
    chain, notice = refs.evidence_ref(run), refs.dropped_ref(run)

    def note() -> list[RefUpdate]:
        before = tips.get(notice)
        lines = (tree.read_file(repo, repo.commit(before).tree, _LIST) or b"").decode().splitlines() if before else []
        lines += [f"{record.evidence} {record.commit}" for record in old]
        files = {_LIST: "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode()}
        message = f"evidence of {len(old)} event{'' if len(old) == 1 else 's'} of {run} dropped\n"
        commit = repo.write_commit(signature, message, tree.write_files(repo, files).id, [before])
        return [RefUpdate(name=notice, new=commit, old=before)]

    # what is dropped is written down before it goes: a process that dies in between has dropped nothing
    reason = f"skillgit: drop evidence of {run}"
    write_refs(repo, note, reason=reason)
    write_refs(
        repo, lambda: [RefUpdate(name=chain, new=rebuilt_chain(repo, staying), old=tips.get(chain))], reason=reason
    )


def rebuilt_chain(repo: Repo, records: Sequence[Recorded]) -> str | None:
    """Rewrite the evidence chain of ``records`` as their writer wrote it, and return its end."""
    end: str | None = None
    for record in records:
        if record.evidence:
            end = evidence_commit(repo, record, repo.commit(record.commit).committer, end)
    return end


def _blobs(repo: Repo, trees: Collection[str]) -> set[str]:
    blobs: set[str] = set()
    waiting, oids = list(trees), set(trees)
    while waiting:
        folder = repo.raw.get(waiting.pop())
        if not isinstance(folder, pygit2.Tree):
            continue
        for entry in folder:
            oid = str(entry.id)
            if entry.type_str == "blob":
                blobs.add(oid)
            elif oid not in oids:
                oids.add(oid)
                waiting.append(oid)
    return blobs
