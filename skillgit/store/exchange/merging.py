"""What was fetched becomes ours: unknown runs are made, known ones and the trunk go forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from shlex import quote

from skillgit.domain.run_state import fold
from skillgit.errors import ConflictError, HistoryError, SkillgitError
from skillgit.store import history, history_reader, refs
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import event_of, joined_chain
from skillgit.store.exchange.sending import RejectedMode, candidates
from skillgit.store.git_binary import git, keep, until_kept
from skillgit.store.lock import RunLock
from skillgit.store.promotion import move_trunk
from skillgit.store.repo import Repo
from skillgit.store.seals import note_elsewhere
from skillgit.store.transaction import RefUpdate, update_refs


def adopt_trunk(repo: Repo, remote: str, name: str, theirs: str | None, *, dry_run: bool = False) -> Joined | None:
    """Fast-forward the branch ``name`` to ``theirs``, if any; what prevents that is in the result, not raised."""
    if theirs is None:
        return None
    mine, reason = repo.tip(name), f"skillgit: pull from {remote}"
    if mine == theirs:
        return Joined(run="", state=Joining.UP_TO_DATE)
    if mine is None:
        if not dry_run:
            update_refs(repo, [RefUpdate(name=name, new=theirs, old=None)], reason=reason)
        return Joined(run="", state=Joining.NEW, moved=1)
    if _reaches(repo, mine, theirs):
        return Joined(run="", state=Joining.AHEAD)
    if not _reaches(repo, theirs, mine):
        short = refs.short(name)
        problem = f"{short} went on here and on {remote}; git merge {quote(f'{remote}/{short}')} brings both together"
        return Joined(run="", state=Joining.DIVERGED, reason=problem)
    try:
        if not dry_run:
            move_trunk(repo, name, mine, theirs, reason=reason)
    except ConflictError as error:
        return Joined(run="", state=Joining.REFUSED, reason=error.message)
    return Joined(run="", state=Joining.FORWARD, moved=1)


def _reaches(repo: Repo, tip: str, ancestor: str) -> bool:
    """Say whether ``ancestor`` is ``tip`` or one of its ancestors; git reads dates that libgit2 takes for damage."""
    return git(repo, "merge-base", "--is-ancestor", ancestor, tip).code == 0


_LINES = {refs.RefKind.RUN, refs.RefKind.SLOW}


class Joining(StrEnum):
    NEW = "new"
    FORWARD = "forward"
    UP_TO_DATE = "up_to_date"
    AHEAD = "ahead"
    DIVERGED = "diverged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What happened to a run of another repository here, or would."""

    run: str
    state: Joining
    moved: int = 0
    reason: str = ""  # why it stays as it is, where it does
    note: str = ""  # what the user should know of it all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTerms:
    remote: str
    rejected_mode: RejectedMode
    clock: Callable[[], datetime]
    dry_run: bool = False


class _DivergedError(Exception):
    """Both sides went on with a run."""


def adopt(repo: Repo, run: str, theirs: Mapping[str, str], mine: Mapping[str, str], terms: MergeTerms) -> Joined:
    """Take in ``run``, whose refs are ``theirs`` there and ``mine`` here; hindrances are returned, so others go on."""
    try:
        adoption = _Adoption(repo, run, theirs, mine, terms)
        if adoption.is_idle() or terms.dry_run:
            # a run that is being trained here does not matter as long as there is nothing new
            return adoption.join(write=False)
        with RunLock(repo, run, terms.clock):
            return adoption.join(write=True)
    except _DivergedError as error:
        return Joined(run=run, state=Joining.DIVERGED, reason=str(error))
    except ConflictError as error:
        return Joined(run=run, state=Joining.REFUSED, reason=error.message)
    except HistoryError as error:
        return Joined(run=run, state=Joining.REFUSED, reason=f"its history cannot be read: {error.message}")


class _Adoption:
    def __init__(
        self, repo: Repo, run: str, theirs: Mapping[str, str], mine: Mapping[str, str], terms: MergeTerms
    ) -> None:
        self._repo, self._run, self._terms = repo, run, terms
        self._theirs, self._mine = theirs, dict(mine)
        self._moves: dict[str, str] = {}
        self._chains: list[Callable[[], str | None]] = []
        self._ahead = False
        self._note = ""
        self._line = refs.run_branch(run)
        for name in sorted(theirs, key=lambda ref: ref != self._line):
            self._look_at(name)

    def is_idle(self) -> bool:
        return not self._moves

    def join(self, *, write: bool) -> Joined:
        """Check that both sides make one history, and fast-forward ours."""
        if self.is_idle():
            state = Joining.AHEAD if self._ahead else Joining.UP_TO_DATE
            return Joined(run=self._run, state=state, note=self._note)
        if self._line in self._moves:
            self._repo.check_movable(self._line)
        records = self._records(self._mine | self._moves)
        self._check(records)
        own = [RefUpdate(name=name, new=oid, old=self._mine.get(name)) for name, oid in self._moves.items()]
        updates = [*own, *history.derived_updates(self._run, records, self._mine)]
        if write:
            note_elsewhere(self._repo, self._run, self._without_evidence(records))
            reason = f"skillgit: pull from {self._terms.remote}"
            update_refs(self._repo, updates, reason=reason)
            for chain in self._chains:
                keep(self._repo, chain)
        state = Joining.FORWARD if self._line in self._mine else Joining.NEW
        return Joined(run=self._run, state=state, moved=len(updates), note=self._note)

    def _look_at(self, name: str) -> None:
        ref, their, mine = refs.parse(name), self._theirs[name], self._mine.get(name)
        if ref is None or their == mine:
            return
        if ref.kind in _LINES:
            if mine is None or self._repo.reaches(their, mine):
                self._moves[name] = their
            elif self._repo.reaches(mine, their):
                self._ahead = True
            else:
                raise _DivergedError(f"{refs.short(name)} went on here and on {self._terms.remote}")
        elif ref.kind is refs.RefKind.REJECTED and self._terms.rejected_mode is RejectedMode.BRANCHES:
            self._look_at_candidate(name, their)
        elif ref.kind is refs.RefKind.ATTIC and self._terms.rejected_mode is not RejectedMode.NONE:
            self._look_at_attic(name, their)
        elif ref.kind in {refs.RefKind.EVIDENCE, refs.RefKind.DROPPED}:
            self._look_at_bulk(name, their, mine)
        elif ref.kind is refs.RefKind.PLAN and (mine is None or not self._is_of_line(mine)):
            self._moves[name] = their

    def _look_at_candidate(self, name: str, their: str) -> None:
        mine = self._known().get(name)
        if mine is None:
            self._moves[name] = their
        elif mine != their:
            raise _DivergedError(f"{refs.short(name)} is another candidate here than on {self._terms.remote}")

    def _look_at_attic(self, name: str, their: str) -> None:
        attic, commits = candidates(self._repo, their), self._known()
        if attic is None:
            raise HistoryError(f"the attic of run {self._run} on {self._terms.remote} is damaged", hint="skillgit fsck")
        for branch, commit in attic.items():
            if commits.get(branch, commit) != commit:
                raise _DivergedError(f"{refs.short(branch)} is another candidate here than on {self._terms.remote}")
        missing = {branch: commit for branch, commit in attic.items() if branch not in commits}
        if not missing:
            return
        mine = self._mine.get(name)
        forward = mine is None or self._repo.reaches(their, mine)
        end = their if forward else self._chained(partial(history.extended, self._repo, mine, missing))
        if end is not None:
            self._moves[name] = end

    def _chained(self, write: Callable[[], str | None]) -> str | None:
        self._chains.append(write)
        return until_kept(self._repo, write)

    def _look_at_bulk(self, name: str, their: str, mine: str | None) -> None:
        if mine is None or self._repo.reaches(their, mine):
            self._moves[name] = their
        elif self._repo.reaches(mine, their):
            return
        elif name == refs.evidence_ref(self._run) and refs.dropped_ref(self._run) not in {*self._mine, *self._theirs}:
            # a chain of both would bring back what either side dropped on purpose
            end = self._chained(partial(joined_chain, self._repo, mine, their))
            self._moves[name] = end or their
        else:
            copy = refs.tracking(self._terms.remote, name)
            self._note = f"{refs.short(name)} is another chain here; theirs stays at {refs.short(copy)}"

    def _is_of_line(self, plan: str) -> bool:
        """Say whether a plan is of an event of the run's line, and not of a run that had its name before."""
        event, line = event_of(self._repo.commit(plan)), self._moves.get(self._line) or self._mine.get(self._line, "")
        return bool(event) and self._repo.reaches(line, event)

    def _known(self) -> dict[str, str]:
        tip = self._mine.get(refs.attic_ref(self._run))
        attic = (candidates(self._repo, tip) or {}) if tip else {}
        return attic | {name: oid for name, oid in (self._mine | self._moves).items() if "/rejected/" in name}

    def _check(self, records: Sequence[Recorded]) -> None:
        """Refuse ``records`` if the events of both sides make no history together."""
        if _holds_together(records):
            return
        if self._line in self._mine and _holds_together(self._records(self._mine)):
            raise _DivergedError(f"what {self._terms.remote} has does not follow what is here")
        self._note = self._note or "rejected candidates are missing: it can be read, not continued or forked"

    def _without_evidence(self, records: Sequence[Recorded]) -> list[str]:
        is_here = self._line in self._mine
        before = {record.commit for record in self._records(self._mine)} if is_here else set()
        fresh = (record for record in records if record.commit not in before and record.evidence)
        return [record.commit for record in fresh if not self._repo.has_object(record.evidence)]

    def _records(self, tips: Mapping[str, str]) -> list[Recorded]:
        return history_reader.read_new(self._repo, self._run, {}, tips)


def _holds_together(records: Sequence[Recorded]) -> bool:
    try:
        fold(record.event for record in records)
    except SkillgitError:
        return False
    return True
