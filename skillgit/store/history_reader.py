"""History is read here: runs, their events, the skills of their versions.

A run is one walk along its accepted line and its slow line, back to the event that started it, plus one look at each
rejected candidate. What precedes the start is someone else's history and is not touched.

On the line, a commit without trailers that changes the skill folder is a version that a person made; one that leaves it
alone is not an event. A commit whose trailers are broken or out of place is an error, for it may be a forged event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import pygit2

from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import changed_texts
from skillgit.domain.protected_regions import slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import (
    HistoryError,
    InvariantError,
    NoBeginningError,
    RevisionNotFoundError,
    SkillError,
    TrailerError,
)
from skillgit.store import commit_message, history, refs, trailers, tree
from skillgit.store.commit_message import Decoded, Recorded, SlowText
from skillgit.store.history import Source
from skillgit.store.repo import REPAIR, UNSHALLOW, Repo, author_of, first_parents, message_of

Link = tuple[pygit2.Commit, Decoded | None]
"""A commit, and what its trailers say, if it has any."""


class LinePosition(NamedTuple):
    run: str
    skill: str
    version: int = -1  # the current version; -1 before the first event


def decoded(repo: Repo, commit: pygit2.Commit) -> Decoded:
    """Return what the trailers of ``commit`` say; a HistoryError if it has none, or they cannot be read."""
    try:
        return commit_message.decode(message_of(commit), lambda skill: _slow_text(repo, commit.tree, skill))
    except HistoryError as error:
        raise type(error)(f"commit {str(commit.id)[:12]}: {error.message}", hint=error.hint) from error


def _links(repo: Repo, branch: Source, boundary: AbstractSet[str]) -> tuple[list[Link], str | None]:
    """Return the commits of ``branch``, oldest first, and the commit of ``boundary`` that they follow, if any.

    The walk ends at the event that started the run, or before a commit in ``boundary``. A line without a beginning is a
    HistoryError, and in a shallow clone, which lacks it, a RevisionNotFoundError.
    """
    chain: list[Link] = []
    # what a shallow clone lacks may come
    dead_ends = {} if boundary or repo.raw.is_shallow else repo.dead_ends
    end: HistoryError | None = None
    for commit in first_parents(repo, branch.tip):
        if str(commit.id) in boundary:
            return chain[::-1], str(commit.id)
        if str(commit.id) in dead_ends:
            end = dead_ends[str(commit.id)]
            break
        try:
            content = decoded(repo, commit) if trailers.has_trailers(message_of(commit)) else None
        except HistoryError as error:
            end = dead_ends[str(commit.id)] = type(error)(error.message, hint=error.hint)
            break
        chain.append((commit, content))
        if content is not None and content.event.kind is EventKind.RUN_STARTED:
            return chain[::-1], None
    dead_ends.update((str(commit.id), end) for commit, _ in chain)
    if end is not None:
        raise type(end)(end.message, hint=end.hint)
    if repo.raw.is_shallow:
        raise RevisionNotFoundError(
            f"this is a shallow clone, which lacks the beginning of run {branch.ref.run}", hint=UNSHALLOW
        )
    sentence = f"run {branch.ref.run} has no beginning on {refs.short(branch.actual)}"
    raise NoBeginningError(sentence, hint="skillgit fsck")


def place_of(repo: Repo, oid: str) -> LinePosition:
    """Return run, skill and version at the commit ``oid`` of a line."""
    bare: list[pygit2.Commit] = []
    for commit in first_parents(repo, oid):
        if not trailers.has_trailers(message_of(commit)):
            bare.append(commit)
            continue
        block = trailers.parse_block(message_of(commit))
        if block.one("Version"):
            skill = block.token("Skill")
            edits = sum(changes_skill(candidate, skill) for candidate in bare)
            return LinePosition(block.token("Run"), skill, block.integer("Version") + edits)
    raise TrailerError(f"commit {oid[:12]} is on no run's line", hint="skillgit log shows the commits that are")


def changes_skill(commit: pygit2.Commit, skill: str) -> bool:
    """Say whether ``commit`` has another skill folder than its first parent."""
    parents = commit.parents
    return bool(parents) and tree.entry_id(commit, skill) != tree.entry_id(parents[0], skill)


def placed(repo: Repo, chain: Iterable[Link], before: LinePosition, sides: Sequence[Recorded]) -> Iterator[Recorded]:
    """Yield the events of the line; an edit comes after those of ``sides``, side events on older versions."""
    version, step, epoch = before.version, 0, 0
    for commit, content in chain:
        if content is None:
            if changes_skill(commit, before.skill):
                earlier = [(side.event.step, side.event.epoch) for side in sides if side.at <= version]
                step, epoch = max([(step, epoch), *earlier])
                version += 1
                yield _edit(repo, commit, LinePosition(before.run, before.skill, version), step, epoch)
            continue
        event = content.event
        _check_place(commit, event)
        step, epoch = max((step, epoch), (event.step, event.epoch))
        # Counted, not taken from the trailers: a forged number must not change the order of events.
        version += event.new_version is not None
        yield recorded(commit, content, version)


def _check_place(commit: pygit2.Commit, event: Event) -> None:
    """Refuse a line that leads through a side branch, as does a merge with its parents swapped."""
    branch = refs.branch_of(event)
    if branch != refs.run_branch(event.run):
        line = refs.short(refs.run_branch(event.run))
        raise InvariantError(
            f"commit {str(commit.id)[:12]} belongs to {refs.short(branch)}, and {line} leads through it",
            hint="skillgit fsck",
        )


def _edit(repo: Repo, commit: pygit2.Commit, position: LinePosition, step: int, epoch: int) -> Recorded:
    """Return the edit that a person made with ``commit``, after which the run is at ``position``."""
    body = commit_message.read_free_body(message_of(commit))
    try:
        before, after = (tree.read_texts(repo, side.tree, position.skill) for side in (commit.parents[0], commit))
    except SkillError as error:
        sentence = f"commit {str(commit.id)[:12]}: {error.message}"
        raise HistoryError(sentence, hint=f"git show --stat {str(commit.id)[:12]}") from error
    event = Event(
        kind=EventKind.EDITED,
        run=position.run,
        skill=position.skill,
        epoch=epoch,
        step=step,
        **body,
        version=position.version,
        base=position.version - 1,
        author=author_of(commit),
        changes=changed_texts(before, after),
    )
    return recorded(commit, Decoded(event=event, evidence=""), position.version)


def recorded(commit: pygit2.Commit, content: Decoded, at: int) -> Recorded:
    """Return the event of ``commit``; ``at`` is the version that the run is at."""
    return Recorded(
        event=content.event,
        commit=str(commit.id),
        parents=tuple(str(parent) for parent in commit.parent_ids),
        time=datetime.fromtimestamp(commit.commit_time, UTC),
        evidence=content.evidence,
        tree=str(commit.tree_id),
        branch=refs.branch_of(content.event),
        at=at,
    )


@contextmanager
def bulk_reading() -> Iterator[None]:
    """Let a block, and processes that it forks, read objects without hashing or keeping them."""
    _hash_and_keep(is_enabled=False)
    try:
        yield
    finally:
        _hash_and_keep(is_enabled=True)


def _hash_and_keep(*, is_enabled: bool) -> None:
    pygit2.settings.enable_strict_hash_verification(is_enabled)
    pygit2.settings.enable_caching(is_enabled)


MEMORY = "META.md"
"""The file on the slow line that holds what the optimizer remembers."""


def runs(repo: Repo) -> list[str]:
    """Return the names of all runs, including those that only a remote-tracking branch has."""
    return history.run_names(repo.tips())


def read_run(repo: Repo, run: str) -> list[Recorded]:
    """Return the events of ``run`` in their order; a RevisionNotFoundError without such a run."""
    return read_new(repo, run, {})


def read_new(repo: Repo, run: str, since: Mapping[str, str], now: Mapping[str, str] | None = None) -> list[Recorded]:
    """Return the events of ``run``, in their order, that are not reached from the tips ``since``.

    If a tip is not an ancestor of what its ref points to now, the whole branch is returned. ``now`` are the refs of the
    run, if the caller has them.
    """
    branches = history.sources(repo, run, repo.tips(run) if now is None else now)
    if not branches:
        raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    boundary = frozenset(since.values())
    chain, stop = _links(repo, branches[0], boundary)
    on_line = {str(commit.id) for commit, _ in chain}
    records = {record.commit: record for branch in branches[1:] for record in _side(repo, branch, boundary)}
    # A branch that someone moved may lead to an event that another one has already.
    sides = [record for commit, record in records.items() if commit not in on_line]
    if stop is not None and chain:
        before = place_of(repo, stop)
    else:
        first = chain[0][1] if chain else None
        before = LinePosition(run, first.event.skill if first is not None else "")
    if stop is not None and any(content is None and changes_skill(commit, before.skill) for commit, content in chain):
        # The step of an edit depends on everything before it.
        fresh = {*on_line, *(record.commit for record in sides)}
        return [record for record in read_new(repo, run, {}, now) if record.commit in fresh]
    return sorted((*placed(repo, chain, before, sides), *sides), key=lambda record: record.order)


def _side(repo: Repo, branch: history.Source, boundary: frozenset[str]) -> list[Recorded]:
    """Return the events of a side branch of the run that are not reached from ``boundary``."""
    if branch.ref.kind is refs.RefKind.REJECTED:
        return [] if branch.tip in boundary else [read_commit(repo, branch.tip)]
    records: list[Recorded] = []
    for commit in first_parents(repo, branch.tip):
        if str(commit.id) in boundary:
            break
        content = decoded(repo, commit)
        if content.event.kind is not EventKind.SLOW_PROPOSED:
            break
        records.append(recorded(commit, content, content.event.base))
    return records[::-1]


def read_commit(repo: Repo, oid: str) -> Recorded:
    """Return the event of the commit ``oid``; that of a person's edit is looked up in the history of its run."""
    commit = repo.commit(oid)
    if not trailers.has_trailers(message_of(commit)):
        run = place_of(repo, oid).run
        for record in read_run(repo, run):
            if record.commit == oid:
                return record
        raise TrailerError(
            f"commit {oid[:12]} does not belong to run {run}", hint="skillgit log shows the commits that are"
        )
    content = decoded(repo, commit)
    at = content.event.at_version
    return recorded(commit, content, place_of(repo, oid).version if at is None else at)


def message(repo: Repo, oid: str) -> str:
    return message_of(repo.commit(oid))


def skill_at(repo: Repo, oid: str, path: str) -> Skill:
    """Return the skill in the folder ``path`` of the commit ``oid``; a HistoryError if an object of it is damaged."""
    try:
        return tree.read_skill(repo, repo.commit(oid).tree, path)
    except (pygit2.GitError, KeyError) as error:
        raise HistoryError(f"git cannot read {path} of commit {oid[:12]}: {error}", hint=REPAIR) from error


def resolve(repo: Repo, name: str) -> str:
    """Return the commit that git calls ``name``; a RevisionNotFoundError if there is none."""
    try:
        obj = repo.raw.revparse_single(name)
        return str(obj.peel(pygit2.Commit).id)
    except (KeyError, ValueError, pygit2.GitError) as error:
        raise RevisionNotFoundError(f"there is no revision '{name}'", hint="skillgit log") from error


def _slow_text(repo: Repo, root: pygit2.Tree, skill: str) -> SlowText:
    """Return guidance and memory in the tree ``root`` of a commit on the slow line."""
    names = (f"{skill}/{DOCUMENT}", MEMORY)
    document, memory = ((tree.read_file(repo, root, name) or b"").decode(errors="replace") for name in names)
    return SlowText(guidance=slow_guidance(document), memory=memory)
