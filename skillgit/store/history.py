"""Where the history of a run begins to be read, whichever repository its refs are in, and the refs that follow from it.

A run that was trained here has branches. In a fresh clone it has only remote-tracking branches, and then those are its
history. A local branch always comes before a tracking branch of the same name, and a branch before the attic, which
keeps candidates whose branches were folded.

Someone else may have gone on with a run from where this repository has it too. What they refused after that place is
no part of the history here, or the run would have two outcomes of one step as soon as their branches are fetched.

Version tags and the best branch follow from the events and could be computed again.

The attic of a run, ``refs/skillgit/attic/<run>``, holds one commit for each folded candidate, with the parents
*(attic before, candidate)*; the first one has the candidate alone. So every candidate stays reachable, and the subject
says which branch it was on. The commits are signed as their candidates are, so that two clones that fold the same run
get the same chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision
from skillgit.errors import HistoryError
from skillgit.store import refs, trailers
from skillgit.store.commit_message import Recorded
from skillgit.store.repo import Repo, first_parents, message_of
from skillgit.store.transaction import RefUpdate, update_refs, write_refs

_SUBJECT = re.compile(r"fold (?P<branch>rejected/\S+)\n")
_LINKED = 2
"""Parents of an attic commit that is not the first: the attic before it, and the candidate."""


def read_attic(repo: Repo, tip: str) -> dict[str, str]:
    """Return branch to candidate in the chain that ends at ``tip``, oldest first; a HistoryError for any other one."""
    candidates: list[tuple[str, str]] = []
    end: str | None = tip
    while end is not None:
        commit = repo.commit(end)
        parents = [str(parent) for parent in commit.parent_ids]
        match = _SUBJECT.match(message_of(commit))
        branch = f"refs/heads/{match['branch']}" if match else ""
        ref = refs.parse(branch)
        if ref is None or ref.kind is not refs.RefKind.REJECTED or not 1 <= len(parents) <= _LINKED:
            raise HistoryError(f"commit {end[:12]} of the attic folds no candidate", hint="skillgit fsck")
        candidates.append((branch, parents[-1]))
        end = parents[0] if len(parents) == _LINKED else None
    return dict(reversed(candidates))


def foldable(run: str, tips: Mapping[str, str]) -> dict[str, str]:
    """Return the local branches with refused candidates of ``run``, in order, with their commits."""
    own = {name: ref for name in sorted(tips) if (ref := refs.parse(name)) and ref.run == run and not ref.remote}
    return {name: tips[name] for name, ref in own.items() if ref.kind is refs.RefKind.REJECTED}


def fold(repo: Repo, run: str) -> dict[str, str]:
    """Move refused candidates into the attic and return them; it grows first, so a kill in between loses nothing."""
    tips, attic, reason = repo.tips(), refs.attic_ref(run), f"skillgit: fold {run}"
    tip, moving = tips.get(attic), foldable(run, tips)
    there = read_attic(repo, tip) if tip else {}
    for branch, commit in moving.items():
        if there.get(branch, commit) != commit:
            raise HistoryError(
                f"{refs.short(branch)} is not the candidate that the attic has under that name",
                hint=f"look at both: git show {there[branch][:12]} {commit[:12]}; then delete the wrong one",
            )
    new, end = {branch: commit for branch, commit in moving.items() if branch not in there}, tip
    if new:

        def write() -> list[RefUpdate]:
            return [RefUpdate(name=attic, new=extended(repo, tip, new), old=tip)]

        (grown,) = write_refs(repo, write, reason=reason)
        end = grown.new
    deletions = [RefUpdate(name=branch, new=None, old=commit) for branch, commit in moving.items()]
    if deletions:
        update_refs(repo, [RefUpdate(name=attic, new=end, old=end), *deletions], reason=reason)
    return moving


def extended(repo: Repo, tip: str | None, candidates: Mapping[str, str]) -> str | None:
    """Append ``candidates`` to the chain that ends at ``tip`` and return its new end; no ref moves."""
    for branch, oid in candidates.items():
        candidate = repo.commit(oid)
        message = f"fold {refs.short(branch)}\n\n{message_of(candidate).partition(chr(10))[0]}\n"
        tip = repo.write_commit(candidate.committer, message, candidate.tree_id, [tip, oid])
    return tip


def unfold(repo: Repo, run: str) -> dict[str, str]:
    """Restore the branch of every candidate in the attic of ``run`` and remove the attic; return the candidates."""
    tips, attic, reason = repo.tips(), refs.attic_ref(run), f"skillgit: unfold {run}"
    tip = tips.get(attic)
    if tip is None:
        return {}
    candidates = read_attic(repo, tip)
    missing = {branch: commit for branch, commit in candidates.items() if tips.get(branch) != commit}
    branches = [RefUpdate(name=branch, new=commit, old=None) for branch, commit in missing.items()]
    update_refs(repo, [RefUpdate(name=attic, new=tip, old=tip), *branches], reason=reason)
    update_refs(repo, [RefUpdate(name=attic, new=None, old=tip)], reason=reason)
    return candidates


_PREFERRED_REMOTE = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    ref: refs.Ref  # the branch as it is called in the repository of the run's writer
    actual: str
    tip: str
    is_folded: bool = False


def run_names(tips: Iterable[str]) -> list[str]:
    """Return the names of all runs that have an accepted line among the refs ``tips``."""
    entries = (refs.parse(name) for name in tips)
    return sorted({ref.run for ref in entries if ref is not None and ref.kind is refs.RefKind.RUN})


def sources(repo: Repo, run: str, tips: Mapping[str, str]) -> list[Source]:
    """Return the branches that hold the history of ``run``, its accepted line first; empty if there is none.

    Side branches that only a remote has count as long as the remote's accepted line is part of the local one: git makes
    only the accepted line of a clone local if someone checks it out.
    """
    by_remote = _by_remote(repo, run, tips)
    line = refs.run_branch(run)
    local = by_remote.pop("", {})
    attic = refs.attic_ref(run)
    attic_sources = _candidates(repo, attic, tips[attic]) if attic in tips else {}
    branches = {branch: replace(source, is_folded=True) for branch, source in attic_sources.items()} | local
    for remote in sorted(by_remote, key=lambda name: (name != _PREFERRED_REMOTE, name)):
        theirs = by_remote[remote]
        if line not in theirs:
            continue
        if line not in branches:
            branches = theirs | branches
        elif repo.reaches(branches[line].tip, theirs[line].tip):
            branches = _before_the_parting(repo, theirs, branches, line) | branches
    if line not in branches:
        return []
    return [branches.pop(line), *(branches[name] for name in sorted(branches))]


def _before_the_parting(
    repo: Repo, theirs: Mapping[str, Source], ours: Mapping[str, Source], line: str
) -> dict[str, Source]:
    """Return those of ``theirs`` that belong to steps before the first one that only this repository has."""
    if all(name in ours for name in theirs):
        return {}

    steps = [
        source.ref.number
        for name, source in ours.items()
        if source.ref.kind is refs.RefKind.REJECTED and name not in theirs
    ]
    for commit in first_parents(repo, ours[line].tip):
        if str(commit.id) == theirs[line].tip:
            break
        if trailers.has_trailers(message_of(commit)) and trailers.parse_block(message_of(commit)).one("Step"):
            steps.append(trailers.parse_block(message_of(commit)).integer("Step"))
    parting = min(steps, default=None)
    return {
        name: source
        for name, source in theirs.items()
        if source.ref.kind is not refs.RefKind.REJECTED or parting is None or source.ref.number < parting
    }


def _by_remote(repo: Repo, run: str, tips: Mapping[str, str]) -> dict[str, dict[str, Source]]:
    """Return remote, empty for this repository, to local branch name to source."""
    remotes: dict[str, dict[str, Source]] = {}
    for name, tip in tips.items():
        ref = refs.parse(name)
        if ref is None or ref.run != run or not ref.kind.is_truth:
            continue
        theirs = remotes.setdefault(ref.remote, {})
        if ref.kind is not refs.RefKind.ATTIC:
            theirs[ref.local] = Source(ref=ref, actual=name, tip=tip)
        elif ref.remote:
            for branch, source in _candidates(repo, name, tip).items():
                theirs.setdefault(branch, source)
    return remotes


def _candidates(repo: Repo, attic: str, tip: str) -> dict[str, Source]:
    """Return branch to source for candidates in another repository's attic; writing an event makes them branches."""
    pairs = ((oid, refs.parse(branch)) for branch, oid in read_attic(repo, tip).items())
    return {ref.local: Source(ref=ref, actual=attic, tip=oid) for oid, ref in pairs if ref is not None}


def versions(records: Iterable[Recorded]) -> dict[int, str]:
    """Return version to commit: of a version that occurs twice, as after ``git cherry-pick``, the first one."""
    commits: dict[int, str] = {}
    for record in records:
        version = record.event.new_version
        if version is not None:
            commits.setdefault(version, record.commit)
    return commits


def derived_refs(run: str, records: Iterable[Recorded], commits: Mapping[int, str]) -> dict[str, str]:
    """Return the derived refs that ``records`` imply, and their targets; ``commits`` has those of all versions."""
    targets: dict[str, str] = {}
    for record in records:
        event, version = record.event, record.event.new_version
        if version is not None:
            targets[refs.version_tag(run, version)] = record.commit
        is_best = event.version is not None and event.decision is Decision.ACCEPT_NEW_BEST
        if is_best or event.kind is EventKind.RUN_STARTED:
            best = record.commit if version is not None else commits.get(record.at, record.commit)
            targets[refs.best_branch(run)] = best
    return targets


def derived_moves(
    run: str, records: Iterable[Recorded], commits: Mapping[int, str], tips: Mapping[str, str]
) -> list[RefUpdate]:
    targets = derived_refs(run, records, commits)
    return [
        RefUpdate(name=name, new=commit, is_derived=True)
        for name, commit in targets.items()
        if tips.get(name) != commit
    ]


def derived_updates(run: str, records: Sequence[Recorded], tips: Mapping[str, str]) -> list[RefUpdate]:
    """Return the moves of derived refs to where ``records`` imply; tags of versions not in it go."""
    commits = versions(records)
    strays = [
        RefUpdate(name=name, new=None, is_derived=True)
        for name in tips
        if (ref := refs.parse(name)) is not None
        and ref.kind is refs.RefKind.TAG
        and ref.run == run
        and ref.number not in commits
    ]
    return derived_moves(run, records, commits, tips) + strays
