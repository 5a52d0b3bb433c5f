"""The history of a run is written here: one event, one commit, one transaction over all refs that it moves.

Objects come first and are garbage if the process dies. Then the event is checked against the events before it. Only
then do refs move, all at once, each compared with what this writer had seen. The work tree and the index are never
touched.

Someone may let git prune meanwhile (``git_activity``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import pygit2

from skillgit.domain.address import version_label
from skillgit.domain.event import CANDIDATES, Event
from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.domain.proposal import Origin
from skillgit.domain.protected_regions import slow_guidance, with_slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import storable, verbatim
from skillgit.errors import ConcurrentWriteError, ConflictError, InvariantError
from skillgit.store import commit_message, history, history_reader, refs, tree
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import evidence_commit, last_link, write_evidence
from skillgit.store.git_binary import keep, until_kept, write_again
from skillgit.store.repo import Repo
from skillgit.store.seals import note_own
from skillgit.store.transaction import RefUpdate, update_refs
from skillgit.store.work_tree import ATTRIBUTES

_Written = tuple["Recorded", str | None]
"""An event as it reads, and the end of the evidence chain with it."""


class RunWriter:
    """Appends events to a run whose lock is held since before its history was read; fails if anything else moved it."""

    def __init__(self, repo: Repo, run: str, clock: Callable[[], datetime]) -> None:
        self._repo = repo
        self._run = run
        self._clock = clock
        tips = repo.tips()
        self._heads = {
            source.ref.local: source.tip for source in history.sources(repo, run, tips) if not source.is_folded
        }
        self._tips = {name: tip for name, tip in tips.items() if (ref := refs.parse(name)) and ref.run == run}
        self._records = history_reader.read_run(repo, run) if self._heads else []
        self._versions = history.versions(self._records)
        self._evidence: str | None = None
        self._is_resumed = False

    def store_evidence(self, evidence: Mapping[str, bytes]) -> None:
        """Write the artefacts (path to content) of a later :meth:`append` ahead of time, from any thread."""
        until_kept(self._repo, lambda: write_evidence(self._repo, evidence))

    def append(
        self,
        event: Event,
        skill: Skill | None,
        evidence: Mapping[str, bytes],
        *,
        start: str = "",
        merge_parent: str = "",
        check: Callable[[Event], object] | None = None,
        local: Mapping[str, object] | None = None,
    ) -> Recorded:
        """Write ``event``, make it visible and return it as every reader will see it.

        Args:
            skill: What the commit's skill folder holds; absent where the tree stays, or is made from the event.
            start: The commit that a run starts on; a run without one starts a history of its own.
            merge_parent: The commit of another line that an intervention merges; it becomes the second parent.
            check: Called with the event as it will be read, before it is visible; what it raises keeps the event out.
            local: For the start of a run whose configuration is this user's own: its settings of this machine.
        """
        self._check_turn(event)
        write_again()
        signature = self._repo.signature(self._clock())
        parents, end = self._parents(event, start, merge_parent), self._evidence_end()

        def write() -> _Written:
            proof = write_evidence(self._repo, evidence)
            record = history_reader.read_commit(self._repo, self._write_commit(event, skill, proof, parents, signature))
            return record, evidence_commit(self._repo, record, signature, end) if record.evidence else end

        record, chain_end = until_kept(self._repo, write)
        if check is not None:
            check(record.event)
        if local is not None:
            note_own(self._repo, record.commit, local)
        self._publish(record, chain_end, write)
        return record

    def _check_turn(self, event: Event) -> None:
        """Refuse an event that was computed from another state of the run than the one that it would follow."""
        name = event.kind
        if event.run != self._run:
            raise InvariantError(f"{name} of run {event.run} written to run {self._run}", hint="skillgit fsck")
        if event.kind is EventKind.RUN_STARTED:
            if self._records:
                raise ConflictError(f"run {self._run} exists already", hint="choose another name with --run")
            return
        if not self._records:
            raise InvariantError(f"{name} of run {self._run}, which has not started", hint="skillgit runs")
        if event.kind is EventKind.EDITED:
            raise InvariantError(
                f"{version_label(event.version)} is an edit, which only its author can commit", hint="git commit"
            )
        if self._is_late(event):
            raise ConcurrentWriteError(
                f"run {self._run} went on while {name} was computed; nothing was written", hint="resume the run"
            )

    def _is_late(self, event: Event) -> bool:
        """Say whether the run is past the point that ``event`` was computed for."""
        step, current = self._records[-1].event.step, max(self._versions)
        if event.kind is EventKind.MEASURED:
            return (event.step, event.version) != (step, current)
        if event.kind in CANDIDATES:
            at = event.version - 1 if event.kind is EventKind.ACCEPTED else event.at_version
            if at != current:
                return True
        elif event.base is not None and event.base != current:
            return True
        if event.is_step:
            return event.step <= step
        return event.step < step or self._is_done(event)

    def _is_done(self, event: Event) -> bool:
        """Say whether the epoch of ``event`` was reflected on already, or another intervention has its number."""
        origin = event.origin
        if origin is Origin.STEP:
            return False
        events = (record.event for record in self._records if record.event.origin is not Origin.STEP)
        if origin is Origin.META:
            return any(earlier.origin is origin and earlier.epoch >= event.epoch for earlier in events)
        return event.number <= max((earlier.number for earlier in events), default=0)

    def _write_commit(
        self, event: Event, skill: Skill | None, proof: str, parents: list[str], signature: pygit2.Signature
    ) -> str:
        root = self._repo.commit(parents[0]).tree if parents else None
        content = self._tree(event, skill, root)
        message = commit_message.encode(event, proof)
        return self._repo.write_commit(signature, message, content.id, parents)

    def _parents(self, event: Event, start: str, merge_parent: str) -> list[str]:
        line, slow = refs.run_branch(self._run), refs.slow_branch(self._run)
        match event.kind:
            case EventKind.RUN_STARTED:
                return [start] if start else []
            case EventKind.REJECTED:
                return [self._versions[event.base]]
            case EventKind.SLOW_PROPOSED:
                return [self._heads.get(slow) or self._versions[0]]
            case EventKind.SLOW_MERGED:
                if slow not in self._heads:
                    raise InvariantError(f"run {self._run} merges guidance that was not proposed", hint="skillgit fsck")
                return [self._heads[line], self._heads[slow]]
            case EventKind.ACCEPTED if event.origin is Origin.STEP:
                return [self._heads[line], *(self._versions[version] for version in event.other_lines)]
            case _:
                return [self._heads[line], *([merge_parent] if merge_parent else [])]

    def _tree(self, event: Event, skill: Skill | None, root: pygit2.Tree | None) -> pygit2.Tree:
        if event.kind is EventKind.SLOW_PROPOSED and root is not None:
            return _slow_tree(self._repo, root, event)
        if skill is not None:
            beside = {} if root is not None else {".gitattributes": ATTRIBUTES}
            return tree.with_skill(self._repo, root, event.skill, skill, beside)
        if root is None or not TRAITS[event.kind].keeps_text:
            raise InvariantError(f"{event.kind} of run {self._run} has no skill", hint="skillgit fsck")
        return root

    def _publish(self, record: Recorded, chain_end: str | None, write: Callable[[], _Written]) -> None:
        branch = record.branch
        moves = {branch: RefUpdate(name=branch, new=record.commit, old=self._tips.get(branch))}
        for name, tip in self._heads.items():
            # Side branches of a clone become local with the first event; the two lines must not move behind our back.
            if name not in self._tips or name in {refs.run_branch(self._run), refs.slow_branch(self._run)}:
                moves.setdefault(name, RefUpdate(name=name, new=tip, old=self._tips.get(name)))
        updates = [*moves.values(), *self._derived(record)]
        chain = refs.evidence_ref(self._run)
        if chain_end is not None and chain_end != self._tips.get(chain):
            updates.append(RefUpdate(name=chain, new=chain_end, old=self._tips.get(chain)))
        reason = f"skillgit: {record.event.kind}"
        update_refs(self._repo, updates, reason=reason)
        keep(self._repo, write)
        self._remember(record, updates, chain_end)

    def _derived(self, record: Recorded) -> list[RefUpdate]:
        """Return the moves of tags and best; the first event of a process repairs what an earlier one left undone."""
        if self._is_resumed:
            commits = self._versions | history.versions([record])
            return history.derived_moves(self._run, [record], commits, self._tips)
        return history.derived_updates(self._run, [*self._records, record], self._tips)

    def _evidence_end(self) -> str | None:
        """Return the end of the evidence chain, repaired first if an earlier process was killed while refs moved."""
        if self._is_resumed or not self._records:
            return self._evidence
        last = self._records[-1]
        link = last_link(self._repo, self._run, frozenset(record.commit for record in self._records))
        end = link.commit if link is not None else None
        is_behind = link is None or link.event != last.commit
        if is_behind and last.evidence and self._repo.has_object(last.evidence):
            return evidence_commit(self._repo, last, self._repo.signature(last.time), end)
        return end

    def _remember(self, record: Recorded, updates: list[RefUpdate], chain_end: str | None) -> None:
        for update in updates:
            if update.new is None:
                self._tips.pop(update.name, None)
            else:
                self._tips[update.name] = update.new
        self._heads[record.branch] = record.commit
        self._records.append(record)
        self._versions |= history.versions([record])
        self._evidence = chain_end
        self._is_resumed = True


def _slow_tree(repo: Repo, root: pygit2.Tree, event: Event) -> pygit2.Tree:
    skill = tree.read_skill(repo, root, event.skill)
    if event.guidance.strip() or slow_guidance(skill.document):
        guidance = verbatim(storable(event.guidance))
        skill = skill.with_text(DOCUMENT, with_slow_guidance(skill.document, guidance))
    return tree.with_skill(
        repo, root, event.skill, skill, {history_reader.MEMORY: storable(event.memory).encode() or None}
    )
