"""``skillgit push``: send runs to another repository, and say what happened to each ref.

What goes is one moment of every run. The trunk goes first, for the first branch that a host gets becomes what visitors
see, and the tags of releases with it; then branches and tags of the runs, all or none; then notes; then hidden refs,
which a host may refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from skillgit.app.exchange.connection import Listener, holds_credential, line_for
from skillgit.app.exchange.requests import PushRequest
from skillgit.app.recorded.run_record import start_record
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.skills_here import train_hint
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ConflictError, RemoteError, RevisionNotFoundError, SkillgitError, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.redaction import redact
from skillgit.store import refs
from skillgit.store.evidence import plan_commit
from skillgit.store.exchange.remotes import Remote, fetch_notes, find_remote, join_notes, releases
from skillgit.store.exchange.sending import (
    Parcel,
    RefState,
    RefusalCause,
    RejectedMode,
    advertised,
    by_run,
    held_with,
    parcel,
    plan,
    send,
    snapshot,
    usual,
)
from skillgit.store.exchange.sending import SentRef as SentRef  # noqa: PLC0414 - what a push returns
from skillgit.store.repo import Repo
from skillgit.store.transaction import RefUpdate, update_refs
from skillgit.store.trunk import is_plain, trunk

with loaded_on_use():  # most pushes that fail do so before it
    from skillgit.app.exchange import push_check

_SHORT = 12
_SHOWN = 3  # branches of a host that are named
_SUBJECTS = {
    refs.RefKind.ATTIC: "rejected candidates",
    refs.RefKind.EVIDENCE: "evidence",
    refs.RefKind.DROPPED: "list of dropped evidence",
    refs.RefKind.PLAN: "configuration",
}
"""What the hidden refs of a run hold."""
MANY_BRANCHES = 5000
"""Branches of a repository from which on hosts become slow, or take no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    remote: str
    url: str  # its address, without credentials
    dry_run: bool
    refs: tuple[SentRef, ...]
    warnings: tuple[str, ...]  # what the user should know though the push went on

    @property
    def error(self) -> SkillgitError | None:
        """The error to end with: that of the first ref which was not taken and should have been."""
        refusals = [ref for ref in self.refs if ref.state is RefState.REJECTED and not ref.optional]
        mover = next((ref for ref in refusals if ref.cause is RefusalCause.MOVED), None)
        if mover is not None:
            remote = quote(self.remote)
            name = f"run {mover.run}" if mover.run else refs.short(mover.ref)
            hint = f"skillgit pull {remote}, then push again"
            if refs.is_release(mover.ref):
                hint = f"release yours under another version; git fetch -f {remote} tag {quote(name)} takes theirs"
            return ConflictError(f"{name} was not pushed: {mover.reason}", hint=hint)
        host = next((ref for ref in refusals if ref.cause is RefusalCause.HOST), None)
        if host is None:
            return None
        hint = "its host has rules of its own; its answer is above"
        if any(word in host.reason.lower() for word in ("limit", "too many", "maximum")):
            hint = "skillgit gc --fold makes one hidden ref of the branches of rejected candidates"
        return RemoteError(f"{self.remote} refused {refs.short(host.ref)}: {host.reason}", hint=hint)


def push(context: Context, request: PushRequest, listener: Listener | None = None) -> Pushed:
    """Send runs to another repository. A ref that is refused is reported in the result, not raised."""
    with Workspace(context) as workspace:
        return _Push(workspace, request, listener or Listener()).carry_out()


def _open_remote(repo: Repo, name: str | None) -> Remote:
    """Return the remote; refuse one whose address to push to shows a credential in git's configuration."""
    remote = find_remote(repo, name)
    key, addresses = remote.configured_push_urls(repo)
    if url := next(filter(holds_credential, addresses), ""):
        command = f"git remote set-url {'--push ' * (key == 'pushurl')}{quote(remote.name)} URL"
        if len(addresses) > 1:  # git wants to know which one, by a pattern
            command += f" {quote(redact(re.split(r'[?#]', url.rpartition('@')[2])[0]))}"
        raise UsageError(
            f"the address of {remote.name} in git's configuration holds a password or a token",
            hint=f"{command} sets one without it; git asks for it then, and git help credentials says how it is"
            " remembered safely",
        )
    return remote


class _Push:
    def __init__(self, workspace: Workspace, request: PushRequest, listener: Listener) -> None:
        self._context, self._workspace, self._request = workspace.context, workspace, request
        self._repo = workspace.repo
        self._line = line_for(workspace.context, listener)
        self._remote = _open_remote(self._repo, self._request.remote)
        self._tips = snapshot(self._repo)
        self._there: Mapping[str, str] = {}
        self._warnings: list[str] = []

    def carry_out(self) -> Pushed:
        runs, remote = self._runs(), self._remote
        same = remote.url == remote.push_url
        self._there = advertised(self._repo, self._line, remote.name if same else remote.push_url)
        here, there = by_run(self._tips), by_run(self._there)
        parcels = [self._parcel(run, here[run], there.get(run, {})) for run in runs]
        main = self._plan(self._trunk())
        own_tags = {} if self._request.runs else releases(self._repo, self._tips.get(trunk(self._repo)))
        tags = [ref for tag in own_tags.items() for ref in self._plan(dict([tag]))]
        lines = [ref for each in parcels for ref in self._plan(each.refs)]
        hidden = held_with([ref for each in parcels for ref in self._plan(each.hidden, optional=True)], lines)
        notes = self._plan(self._notes())
        self._count_branches(lines)
        self._look_through([*main, *tags, *lines, *notes, *hidden])
        main = self._send(main)
        tags, lines, notes = (self._send(part) for part in (held_with(tags, main), lines, notes))
        hidden = self._send(held_with(hidden, lines))
        self._follow(hidden)
        self._tell_of(hidden)
        return Pushed(
            remote=remote.name,
            url=redact(remote.push_url),
            dry_run=self._request.dry_run,
            refs=(*main, *tags, *lines, *notes, *hidden),
            warnings=tuple(self._warnings),
        )

    def _trunk(self) -> dict[str, str]:
        """Return the trunk if it goes along: with all runs, or to a host without a branch of people's.

        A host that has such branches and not this one gets no second trunk by the way; that is reported.
        """
        name = trunk(self._repo)
        branches = sorted(refs.short(ref) for ref in self._there if is_plain(ref))
        if name not in self._tips or (branches and self._request.runs):
            return {}
        if branches and name not in self._there:
            short, remote = refs.short(name), self._remote.name
            self._warnings.append(
                f"{short} was not pushed: {remote} has no such branch, but {', '.join(branches[:_SHOWN])};"
                f" git push {quote(remote)} {quote(short)} makes it one"
            )
            return {}
        return {name: self._tips[name]}

    def _runs(self) -> list[str]:
        parts = map(refs.parse, self._tips)
        own = sorted(ref.run for ref in parts if ref is not None and ref.kind is refs.RefKind.RUN)
        if not self._request.runs:
            if not own and trunk(self._repo) not in self._tips:
                raise RevisionNotFoundError("there is nothing to push yet", hint=train_hint(self._repo))
            return own
        names = list(dict.fromkeys(find_run(self._workspace, name) for name in self._request.runs))
        strange = [name for name in names if name not in own]
        if strange:
            raise UsageError(
                f"run {strange[0]} is another repository's, and was only fetched from there",
                hint="skillgit pull makes it one of this repository",
            )
        return names

    def _parcel(self, run: str, here: Mapping[str, str], there: Mapping[str, str]) -> Parcel:
        choice = self._request.rejected_mode
        part = RejectedMode(choice) if choice else usual(run, there)
        start = start_record(self._workspace, run)
        plan = plan_commit(self._repo, start) if start is not None else None
        return parcel(self._repo, run, here, there, part, plan=plan, evidence=self._request.evidence)

    def _plan(self, targets: Mapping[str, str], *, optional: bool = False) -> list[SentRef]:
        return plan(self._repo, targets, self._there, remote=self._remote.name, optional=optional)

    def _send(self, refs_to_send: Sequence[SentRef]) -> list[SentRef]:
        if self._request.dry_run:
            return list(refs_to_send)
        return send(self._repo, self._line, self._remote.name, refs_to_send, verify=self._request.verify)

    def _look_through(self, refs_to_send: Iterable[SentRef]) -> None:
        tips = [ref.new for ref in refs_to_send if ref.state is RefState.PUSHED]
        if not tips or not self._request.verify:
            return
        result = push_check.scan_commits(self._workspace, tips, self._there.values())
        try:
            push_check.check(result)
        except SkillgitError as error:
            error.result = result
            raise
        self._warnings += [
            f"commit {finding.commit[:_SHORT]} {finding.path or 'message'}: {finding.sentence}"
            for finding in result.warnings
        ]
        self._warnings += result.unchecked

    def _notes(self) -> dict[str, str]:
        mine, theirs = self._tips.get(refs.NOTES), self._there.get(refs.NOTES)
        if mine is None:
            return {}
        if theirs is not None and theirs != mine and not self._request.dry_run:
            if not self._repo.has_object(theirs):
                fetch_notes(self._repo, self._line, self._remote.name)
            join_notes(self._repo, theirs, time=self._context.clock())
            mine = self._repo.tip(refs.NOTES) or mine
        return {refs.NOTES: mine}

    def _follow(self, hidden: Iterable[SentRef]) -> None:
        if self._request.dry_run:
            return
        name = self._remote.name
        updates = [
            RefUpdate(name=refs.tracking(name, ref.ref), new=ref.new, is_derived=True)
            for ref in hidden
            if ref.state is RefState.PUSHED
        ]
        if updates:
            update_refs(self._repo, updates, reason=f"skillgit: push to {name}")

    def _tell_of(self, hidden: Iterable[SentRef]) -> None:
        for ref in hidden:
            if ref.state is RefState.REJECTED and ref.cause is not RefusalCause.HELD:
                kind = refs.short(ref.ref).split("/")[1]
                subject = _SUBJECTS[refs.RefKind(kind)]
                away = "; --rejected branches sends them as branches" if kind == refs.RefKind.ATTIC else ""
                self._warnings.append(
                    f"{self._remote.name} did not take the {subject} of run {ref.run} ({ref.reason}){away}"
                )

    def _count_branches(self, lines: Iterable[SentRef]) -> None:
        names = {*self._there, *(ref.ref for ref in lines if ref.state is RefState.PUSHED)}
        branches = sum(name.startswith("refs/heads/") for name in names)
        if branches > MANY_BRANCHES and len(names) > len(self._there):
            self._warnings.append(
                f"{self._remote.name} has {branches:,} branches with these, and hosts advise against more than"
                f" {MANY_BRANCHES:,}: skillgit gc --fold, or --rejected attic, makes one hidden ref of many"
            )
