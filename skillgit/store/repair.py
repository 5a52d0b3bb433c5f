"""What ``fsck --repair`` mends: refs that follow from the history, and files that dead processes left behind."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.event import Rejected
from skillgit.errors import SkillgitError
from skillgit.files import write_file
from skillgit.store import archive, history, history_reader, refs
from skillgit.store.evidence import EvidenceLink, dropped_trees, read_chain, rebuilt_chain
from skillgit.store.git_activity import git_is_at_work, until_kept
from skillgit.store.integrity import missing_files
from skillgit.store.lock import repo_lock
from skillgit.store.rewind import DERIVED, REASON, earlier_tips, moved_refs
from skillgit.store.seals import is_own
from skillgit.store.transaction import RefUpdate, file_mark, update_refs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

_SHORT = 12
_PATIENCE_S = 1.0
"""How long a lock file has to stand unchanged while nobody of skillgit's writes, to be taken for left over."""
_PACKED = re.compile(rb"#.*|(?:[0-9a-f]{40} refs/[^\s\0]+|\^[0-9a-f]{40}) *")


def packed_damage(repo: Repo) -> str:
    """Return what is wrong with the file in which git keeps most refs; empty if nothing is, or there is none."""
    bad = sum(not good for _, good in _packed_lines(repo))
    return f"packed-refs has {bad} line{'s' * (bad != 1)} that git cannot read" if bad else ""


def mend_packed(repo: Repo) -> list[str]:
    """Keep the readable lines of ``packed-refs`` and set the whole file aside; return what was mended."""
    with repo_lock(repo):
        if not (damage := packed_damage(repo)):
            return []
        path, folder = repo.common_dir / "packed-refs", repo.private_dir / "damaged"
        folder.mkdir(exist_ok=True)
        aside = folder / f"packed-refs-{time.time_ns()}"
        write_file(aside, path.read_bytes())
        write_file(path, b"".join(line + b"\n" for line, good in _packed_lines(repo) if good))
    return [f"{damage}; kept the others and set the file aside as {aside}; other branches and tags of it are lost here"]


def _packed_lines(repo: Repo) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of ``packed-refs``, each with whether git can read it; one without an end may have been longer.

    The peeled line after an unreadable ref goes with it.
    """
    try:
        content = (repo.common_dir / "packed-refs").read_bytes()
    except OSError:
        return
    good = True
    *lines, rest = content.split(b"\n")
    for line in lines:
        good = _PACKED.fullmatch(line) is not None and (good or not line.startswith(b"^"))
        yield line, good
    if rest:
        yield rest, False


def logged_runs(repo: Repo) -> list[str]:
    """Return the runs whose branch has a reflog, which git removes with a branch that is deleted."""
    folder = repo.common_dir / "logs" / refs.run_branch("")
    return [path.name for path in folder.glob("*") if path.is_file() and refs.parse(refs.run_branch(path.name))]


def lost_candidates(repo: Repo, run: str) -> dict[str, str]:
    """Return branch to commit for refused candidates that only a reflog or the evidence still names.

    git removes the reflog of a branch that is deleted. Damaged refs are not among them.
    """
    tips, logs = repo.tips(run), repo.common_dir / "logs"
    attic = tips.get(refs.attic_ref(run))
    branches = {
        *tips,
        *repo.damaged_refs(run),
        *(candidate.branch for candidate in (archive.read_attic(repo, attic) if attic else ())),
    }
    log_names = {path.relative_to(logs).as_posix() for path in (logs / "refs/heads/rejected" / run).glob("*")}
    commits = [tip for name in sorted(log_names - branches) for tip in earlier_tips(repo, name)]
    candidates: dict[str, str] = {}
    for oid in (*commits, *(link.event for link in read_chain(repo, run) if link.event)):
        try:
            record = history_reader.read_commit(repo, oid)
        except (SkillgitError, pygit2.GitError, KeyError):
            continue
        if isinstance(record.event, Rejected) and record.event.run == run and record.branch not in branches:
            candidates.setdefault(record.branch, oid)
    return candidates


def restore_candidates(repo: Repo, run: str) -> list[str]:
    """Bring back the branches that :func:`lost_candidates` names; return what was mended. Hold the run's lock."""
    candidates = lost_candidates(repo, run)
    updates = [RefUpdate(name=name, new=oid, old=None) for name, oid in sorted(candidates.items())]
    if updates:
        update_refs(repo, updates, reason=REASON)
    return [f"brought {refs.short(name)} back, at commit {oid[:_SHORT]}" for name, oid in sorted(candidates.items())]


def repair_run(repo: Repo, run: str) -> list[str]:
    """Bring the derived refs of ``run`` and its evidence chain to where they belong. Hold the run's lock."""
    records = history_reader.read_run(repo, run)
    return [*_mend_derived(repo, run, records), *_mend_evidence(repo, run, records)]


def left_locks(repo: Repo) -> list[str]:
    """Return the lock files of refs that belong to no living process, as paths in the git folder.

    A process that is killed while it moves refs leaves them, and then nobody can move those refs.
    """
    with repo_lock(repo):
        return [path.relative_to(repo.common_dir).as_posix() for path in _left(repo)]


def remove_locks(repo: Repo) -> list[str]:
    """Remove the files that :func:`left_locks` names; return what was mended."""
    with repo_lock(repo):
        locks = _left(repo)
        for path in locks:
            path.unlink(missing_ok=True)
    return [f"removed {path.relative_to(repo.common_dir).as_posix()}, which a dead process left" for path in locks]


def _left(repo: Repo) -> list[Path]:
    packed_lock = repo.common_dir / "packed-refs.lock"
    paths = [*(repo.common_dir / "refs").rglob("*.lock"), *([packed_lock] if packed_lock.exists() else [])]
    marks = {path: file_mark(path) for path in paths}
    # git may hold locks for as long as a hook takes
    if not marks or git_is_at_work(repo):
        return []
    time.sleep(_PATIENCE_S)
    return sorted(path for path, mark in marks.items() if mark is not None and file_mark(path) == mark)


def _mend_derived(repo: Repo, run: str, records: Sequence[Recorded]) -> Iterator[str]:
    if refs.run_branch(run) not in repo.tips():
        return
    with repo_lock(repo):
        for name in repo.damaged_refs(run):
            ref = refs.parse(name)
            if ref is not None and ref.kind in DERIVED:
                # nobody could move it
                (repo.common_dir / name).unlink(missing_ok=True)
                yield f"removed the file of {refs.short(name)}, which held no commit"
    tips = repo.tips(run)
    updates = history.derived_updates(run, records, tips)
    if updates:
        update_refs(repo, updates, reason=REASON)
    yield from moved_refs(updates)


def _mend_evidence(repo: Repo, run: str, records: Sequence[Recorded]) -> Iterator[str]:
    """Write the chain anew if it keeps evidence of other runs, or not all of this one's that is here."""
    if repo.tip(refs.evidence_ref(run)) is None and not is_own(repo, start=records[0].commit):
        return
    chain, drops = read_chain(repo, run), dropped_trees(repo, run)
    trees, commits = {link.tree for link in chain}, {record.commit for record in records}
    present: set[str] = set()
    due = [entry for entry in records if entry.evidence and (entry.evidence in trees or entry.evidence not in drops)]
    # Another run's evidence is kept by its own ref; that of events which this run has lost may be all that is left.
    strays = [link for link in chain if link.event not in commits]
    own = _own(repo, run, strays)
    missing = [
        entry for entry in due if entry.evidence not in trees and not any(missing_files(repo, entry.evidence, present))
    ]
    if not missing and len(own) == len(strays):
        return
    staying = [entry for entry in due if entry.evidence in trees]
    write = partial(rebuilt_chain, repo, sorted((*staying, *missing, *own), key=lambda record: record.order))
    new = until_kept(repo, write)
    name = refs.evidence_ref(run)
    update_refs(repo, [RefUpdate(name=name, new=new, old=repo.tip(name))], reason=REASON, write=write)
    if missing:
        yield f"{refs.short(name)} keeps the evidence of {len(missing)} more event{'s' * (len(missing) > 1)}"
    if len(own) < len(strays):
        yield f"{refs.short(name)} no longer keeps what is not of run {run}"


def _own(repo: Repo, run: str, links: Sequence[EvidenceLink]) -> list[Recorded]:
    records: list[Recorded] = []
    for link in links:
        try:
            record = history_reader.read_commit(repo, link.event)
        except SkillgitError:
            continue
        if record.event.run == run:
            records.append(record)
    return records
